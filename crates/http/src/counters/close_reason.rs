//! Why a connection is no more.

/// The reason; the metric's label derives from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum CloseReason {
    /// The last answer was sent, and the connection was not to be kept.
    Answered,
    /// The client closed it between two requests, or without any.
    ClientClosed,
    /// The client closed it in the middle of a request or of its answer.
    ClientAborted,
    /// The client has reset it.
    ClientReset,
    /// The connection waited too long for its next request.
    IdleTimeout,
    /// A request head did not come in time.
    HeaderTimeout,
    /// The client did not take its answer, or send its body, in time.
    ClientTimeout,
    /// The configuration closes it without an answer, or it began with the wrong bytes.
    Refused,
    /// A body that was to be sent could not be had to its end.
    CutShort,
    /// The TLS handshake failed, or the client broke it off.
    HandshakeFailed,
    /// What went through it as a tunnel has ended.
    TunnelEnded,
    /// Room was needed for new ones.
    MadeRoom,
    /// The server drains, and it has asked for nothing more.
    Drained,
    /// An operator has closed its request.
    Commanded,
    /// The server ended or reloaded, and `worker_shutdown_timeout` has passed since.
    ShutdownTimeout,
    /// A fault of ours, or of the machine.
    Failed,
}

impl CloseReason {
    /// All of them.
    pub const ALL: [CloseReason; 16] = [
        CloseReason::Answered,
        CloseReason::ClientClosed,
        CloseReason::ClientAborted,
        CloseReason::ClientReset,
        CloseReason::IdleTimeout,
        CloseReason::HeaderTimeout,
        CloseReason::ClientTimeout,
        CloseReason::Refused,
        CloseReason::CutShort,
        CloseReason::HandshakeFailed,
        CloseReason::TunnelEnded,
        CloseReason::MadeRoom,
        CloseReason::Drained,
        CloseReason::Commanded,
        CloseReason::ShutdownTimeout,
        CloseReason::Failed,
    ];

    /// The label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::ClientClosed => "client_closed",
            Self::ClientAborted => "client_aborted",
            Self::ClientReset => "client_reset",
            Self::IdleTimeout => "idle_timeout",
            Self::HeaderTimeout => "header_timeout",
            Self::ClientTimeout => "client_timeout",
            Self::Refused => "refused",
            Self::CutShort => "cut_short",
            Self::HandshakeFailed => "handshake_failed",
            Self::TunnelEnded => "tunnel_ended",
            Self::MadeRoom => "made_room",
            Self::Drained => "drained",
            Self::Commanded => "commanded",
            Self::ShutdownTimeout => "shutdown_timeout",
            Self::Failed => "failed",
        }
    }

    /// Of a connection on which this error was seen.
    pub fn of(error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::TimedOut => Self::ClientTimeout,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Self::ClientReset,
            ErrorKind::ConnectionAborted => Self::ClientAborted,
            ErrorKind::UnexpectedEof => Self::CutShort,
            _ => Self::Failed,
        }
    }
}
