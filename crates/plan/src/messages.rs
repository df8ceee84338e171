//! Messages of the error log that both protocols write, in nginx's words. A message of one protocol
//! stands where it is written.

/// A client neither sent nor took data in time.
pub const CLIENT_TIMED_OUT: &str = "client timed out (110: Connection timed out)";
