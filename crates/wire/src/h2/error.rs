//! Error codes (RFC 9113 section 7), and errors of a whole connection.

use std::fmt;

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
    /// All codes, each at the index of its number.
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

    /// The code of a number. An unknown one counts as an internal error (RFC 9113 section 7).
    #[must_use]
    pub fn of(number: u32) -> ErrorCode {
        let known = usize::try_from(number)
            .ok()
            .and_then(|at| Self::ALL.get(at));
        known.copied().unwrap_or(ErrorCode::InternalError)
    }
}

/// The name of RFC 9113, as in `PROTOCOL_ERROR`.
impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ErrorCode::NoError => "NO_ERROR",
            ErrorCode::ProtocolError => "PROTOCOL_ERROR",
            ErrorCode::InternalError => "INTERNAL_ERROR",
            ErrorCode::FlowControlError => "FLOW_CONTROL_ERROR",
            ErrorCode::SettingsTimeout => "SETTINGS_TIMEOUT",
            ErrorCode::StreamClosed => "STREAM_CLOSED",
            ErrorCode::FrameSizeError => "FRAME_SIZE_ERROR",
            ErrorCode::RefusedStream => "REFUSED_STREAM",
            ErrorCode::Cancel => "CANCEL",
            ErrorCode::CompressionError => "COMPRESSION_ERROR",
            ErrorCode::ConnectError => "CONNECT_ERROR",
            ErrorCode::EnhanceYourCalm => "ENHANCE_YOUR_CALM",
            ErrorCode::InadequateSecurity => "INADEQUATE_SECURITY",
            ErrorCode::Http11Required => "HTTP_1_1_REQUIRED",
        })
    }
}

/// A connection error (RFC 9113 section 5.4.1): GOAWAY sends it to the peer, then the connection is
/// closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    pub code: ErrorCode,
    /// The peer's error, for the log, in nginx's words if it has some.
    pub reason: &'static str,
}

impl ConnectionError {
    /// The message about an upstream server instead of a client.
    #[must_use]
    pub fn upstream_reason(self) -> String {
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
