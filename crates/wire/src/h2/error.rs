//! Error codes (RFC 9113 section 7), and what ends a whole connection.

/// Why a stream or a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    NoError,
    ProtocolError,
    InternalError,
    FlowControlError,
    SettingsTimeout,
    StreamClosed,
    FrameSizeError,
    RefusedStream,
    Cancel,
    CompressionError,
    ConnectError,
    EnhanceYourCalm,
    InadequateSecurity,
    Http11Required,
}

impl ErrorCode {
    /// Every code, at its number.
    pub const ALL: [ErrorCode; 14] = [
        ErrorCode::NoError,
        ErrorCode::ProtocolError,
        ErrorCode::InternalError,
        ErrorCode::FlowControlError,
        ErrorCode::SettingsTimeout,
        ErrorCode::StreamClosed,
        ErrorCode::FrameSizeError,
        ErrorCode::RefusedStream,
        ErrorCode::Cancel,
        ErrorCode::CompressionError,
        ErrorCode::ConnectError,
        ErrorCode::EnhanceYourCalm,
        ErrorCode::InadequateSecurity,
        ErrorCode::Http11Required,
    ];

    /// The number in a frame.
    #[must_use]
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The code of a number. One that nobody knows is as good as an internal error (RFC 9113
    /// section 7).
    #[must_use]
    pub fn of(number: u32) -> ErrorCode {
        let known = usize::try_from(number)
            .ok()
            .and_then(|at| Self::ALL.get(at));
        known.copied().unwrap_or(ErrorCode::InternalError)
    }
}

/// A connection error (RFC 9113 section 5.4.1): the peer is told by GOAWAY, then the connection is
/// closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    pub code: ErrorCode,
    /// What the peer has done, for the log, in nginx's words where it has some.
    pub reason: &'static str,
}

impl ConnectionError {
    /// What the peer has done, said of an upstream server.
    #[must_use]
    pub fn said_of_upstream(self) -> String {
        match self.reason.strip_prefix("client ") {
            Some(deed) => format!("upstream {deed}"),
            None => self.reason.to_owned(),
        }
    }

    pub(super) fn new(code: ErrorCode, reason: &'static str) -> ConnectionError {
        ConnectionError { code, reason }
    }

    pub(super) fn protocol(reason: &'static str) -> ConnectionError {
        ConnectionError::new(ErrorCode::ProtocolError, reason)
    }

    pub(super) fn flow_control(reason: &'static str) -> ConnectionError {
        ConnectionError::new(ErrorCode::FlowControlError, reason)
    }

    pub(super) fn size(reason: &'static str) -> ConnectionError {
        ConnectionError::new(ErrorCode::FrameSizeError, reason)
    }
}
