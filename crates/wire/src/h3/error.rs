//! Error codes (RFC 9114 section 8.1, RFC 9204 section 6), and errors of a whole connection.

use std::fmt;

/// Why a stream or a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    NoError = 0x100,
    GeneralProtocolError = 0x101,
    InternalError = 0x102,
    StreamCreationError = 0x103,
    ClosedCriticalStream = 0x104,
    FrameUnexpected = 0x105,
    FrameError = 0x106,
    ExcessiveLoad = 0x107,
    IdError = 0x108,
    SettingsError = 0x109,
    MissingSettings = 0x10a,
    RequestRejected = 0x10b,
    RequestCancelled = 0x10c,
    RequestIncomplete = 0x10d,
    MessageError = 0x10e,
    ConnectError = 0x10f,
    VersionFallback = 0x110,
    QpackDecompressionFailed = 0x200,
    QpackEncoderStreamError = 0x201,
    QpackDecoderStreamError = 0x202,
}

impl ErrorCode {
    /// All codes.
    pub const ALL: [ErrorCode; 20] = [
        ErrorCode::NoError,
        ErrorCode::GeneralProtocolError,
        ErrorCode::InternalError,
        ErrorCode::StreamCreationError,
        ErrorCode::ClosedCriticalStream,
        ErrorCode::FrameUnexpected,
        ErrorCode::FrameError,
        ErrorCode::ExcessiveLoad,
        ErrorCode::IdError,
        ErrorCode::SettingsError,
        ErrorCode::MissingSettings,
        ErrorCode::RequestRejected,
        ErrorCode::RequestCancelled,
        ErrorCode::RequestIncomplete,
        ErrorCode::MessageError,
        ErrorCode::ConnectError,
        ErrorCode::VersionFallback,
        ErrorCode::QpackDecompressionFailed,
        ErrorCode::QpackEncoderStreamError,
        ErrorCode::QpackDecoderStreamError,
    ];

    /// The number in a frame of QUIC.
    #[must_use]
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The code of a number. An unknown one counts as no error (RFC 9114 section 9).
    #[must_use]
    pub fn of(number: u64) -> ErrorCode {
        let known = Self::ALL.iter().find(|code| code.number() == number);
        known.copied().unwrap_or(ErrorCode::NoError)
    }
}

/// The name of the RFC, as in `H3_NO_ERROR`.
impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ErrorCode::NoError => "H3_NO_ERROR",
            ErrorCode::GeneralProtocolError => "H3_GENERAL_PROTOCOL_ERROR",
            ErrorCode::InternalError => "H3_INTERNAL_ERROR",
            ErrorCode::StreamCreationError => "H3_STREAM_CREATION_ERROR",
            ErrorCode::ClosedCriticalStream => "H3_CLOSED_CRITICAL_STREAM",
            ErrorCode::FrameUnexpected => "H3_FRAME_UNEXPECTED",
            ErrorCode::FrameError => "H3_FRAME_ERROR",
            ErrorCode::ExcessiveLoad => "H3_EXCESSIVE_LOAD",
            ErrorCode::IdError => "H3_ID_ERROR",
            ErrorCode::SettingsError => "H3_SETTINGS_ERROR",
            ErrorCode::MissingSettings => "H3_MISSING_SETTINGS",
            ErrorCode::RequestRejected => "H3_REQUEST_REJECTED",
            ErrorCode::RequestCancelled => "H3_REQUEST_CANCELLED",
            ErrorCode::RequestIncomplete => "H3_REQUEST_INCOMPLETE",
            ErrorCode::MessageError => "H3_MESSAGE_ERROR",
            ErrorCode::ConnectError => "H3_CONNECT_ERROR",
            ErrorCode::VersionFallback => "H3_VERSION_FALLBACK",
            ErrorCode::QpackDecompressionFailed => "QPACK_DECOMPRESSION_FAILED",
            ErrorCode::QpackEncoderStreamError => "QPACK_ENCODER_STREAM_ERROR",
            ErrorCode::QpackDecoderStreamError => "QPACK_DECODER_STREAM_ERROR",
        })
    }
}

/// A connection error (RFC 9114 section 8): QUIC's CONNECTION_CLOSE takes its code to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    pub code: ErrorCode,
    /// The peer's error, for the log.
    pub reason: &'static str,
}

impl ConnectionError {
    pub(super) fn new(code: ErrorCode, reason: &'static str) -> ConnectionError {
        ConnectionError { code, reason }
    }

    pub(super) fn unexpected(reason: &'static str) -> ConnectionError {
        ConnectionError::new(ErrorCode::FrameUnexpected, reason)
    }

    pub(super) fn frame(reason: &'static str) -> ConnectionError {
        ConnectionError::new(ErrorCode::FrameError, reason)
    }

    pub(super) fn id(reason: &'static str) -> ConnectionError {
        ConnectionError::new(ErrorCode::IdError, reason)
    }
}
