//! The measurements of a run, and the clients' behaviour.

/// How much is measured.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Interleaved rounds of each server and mode.
    pub(super) rounds: usize,
    /// Seconds of each.
    pub(super) seconds: u64,
    /// Transactions over which calls and allocations are counted.
    pub(super) transactions: u64,
    /// Connections held idle.
    pub(super) idle: usize,
    /// The core of the serving process.
    pub(super) server_cpu: usize,
    /// The core of the client.
    pub(super) client_cpu: usize,
    /// The configuration both read.
    pub(super) configuration: String,
}

/// How a client uses its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// One request on each connection.
    OneRequest,
    /// Connections stay.
    KeepAlive,
}

impl Mode {
    pub(super) const ALL: [Mode; 2] = [Mode::OneRequest, Mode::KeepAlive];

    pub(super) fn text(self) -> &'static str {
        match self {
            Mode::OneRequest => "one request per connection",
            Mode::KeepAlive => "keep-alive",
        }
    }

    /// A name without spaces, for data.
    pub(super) fn key(self) -> &'static str {
        match self {
            Mode::OneRequest => "one_request",
            Mode::KeepAlive => "keep_alive",
        }
    }
}
