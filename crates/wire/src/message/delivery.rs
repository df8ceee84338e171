//! The delivery of a response's body, as its head describes it.

/// The end of a response's body (RFC 9112 section 6.3, RFC 9113 section 8.1).
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

/// The compression of a response's body on its connection (RFC 9112 section 7.2). `chunked` is not
/// included, because it only marks the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferCoding {
    /// `gzip` or `x-gzip`
    Gzip,
    /// `deflate`
    Deflate,
}

/// The delivery of a response's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The end of the body.
    pub end: BodyEnd,
    /// The transfer coding to decode.
    pub coding: Option<TransferCoding>,
    /// Whether the connection can carry another request after the body.
    pub keeps_connection: bool,
}
