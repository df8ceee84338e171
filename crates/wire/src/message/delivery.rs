//! What the head of a response says of what follows it.

/// How the end of a response's body is told (RFC 9112 section 6.3, RFC 9113 section 8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyEnd {
    /// No body: a response to `HEAD`, a success of `CONNECT`, or a status of 1xx, 204 or 304.
    #[default]
    None,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// The protocol marks the end: by the last chunk of `Transfer-Encoding: chunked`, or the last
    /// frame of a stream.
    Marked,
    /// The body ends with the connection.
    UntilClose,
}

/// How a response's body was compressed for its way (RFC 9112 section 7.2). `chunked`, which tells
/// the end only, is none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferCoding {
    /// `gzip` or `x-gzip`
    Gzip,
    /// `deflate`
    Deflate,
}

/// How a response is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// How the end of the body is told.
    pub end: BodyEnd,
    /// What the body is to be expanded from.
    pub coding: Option<TransferCoding>,
    /// Whether the connection can carry another request after the body.
    pub keeps_connection: bool,
}
