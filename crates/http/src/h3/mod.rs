//! What only HTTP/3 knows of its clients (RFC 9114): frames on streams of QUIC, and how these are
//! read and written. Its requests and their answers are [`crate::streams`]'s.
//!
//! ```text
//!  datagrams ─► quic::Connection ─► connection (frames of each stream; stepped by the lane's loop)
//!                                      │ a request: run at once, answered at once where it can be
//!                                      └─► answer (a future, where something must be waited for)
//! ```
//!
//! No future has a connection: its turns come with datagrams, deadlines and what answers have put
//! into its streams. The frames themselves are `wire::h3`'s.

pub(crate) mod connection;
pub(crate) mod flows;
pub(crate) mod frames;
pub(crate) mod process;
mod request_stream;
