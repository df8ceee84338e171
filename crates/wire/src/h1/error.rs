//! Why a head was refused.

use crate::hex;

use super::request::RequestHead;

/// The causes; each is the client's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadError {
    /// The method is not a token. Under [`Strictness::Nginx`](super::Strictness): it holds a byte
    /// other than an upper-case letter, `-` or `_`.
    InvalidMethod,
    /// An unknown method that cannot be passed on either: it holds bytes other than upper-case
    /// letters, `-` and `_`, or is longer than any known one.
    UnknownMethod,
    /// The request line after the method does not follow the grammar.
    InvalidRequestLine,
    /// The major version is 2 or more.
    InvalidVersion,
    /// An HTTP/0.9 request with a method other than `GET`.
    InvalidHttp09Method,
    /// An HTTP/0.9 request where the rules allow none.
    Http09Refused,
    /// The request line is longer than `HeadRules::line_bytes_max`.
    LineTooLong,
    /// The host in an absolute request target is invalid.
    InvalidTargetHost,
    /// A header line is longer than `HeadRules::line_bytes_max`.
    FieldTooLong,
    /// The whole head is longer than `HeadRules::head_bytes_max`.
    HeadTooLarge,
    /// More header lines than `HeadRules::fields_max`.
    TooManyFields,
    /// A header line with a forbidden byte: a control byte or a space in the name, a NUL or a lone
    /// carriage return in the value, or an empty name.
    InvalidField,
    /// More than the limit of options in `Connection`.
    TooManyOptions,
    /// A second line of a header that may occur only once.
    DuplicateField,
    /// A second `Host` line.
    DuplicateHost,
    /// The value of `Host` is invalid.
    InvalidHost,
    /// An HTTP/1.1 request without `Host`.
    MissingHost,
    /// A `Content-Length` that is not a decimal number below 2^63.
    InvalidContentLength,
    /// `Content-Length` and `Transfer-Encoding` in one head (RFC 9112 section 6.1).
    LengthAndTransferEncoding,
    /// A `Transfer-Encoding` with an unknown coding before a final `chunked`; under
    /// [`Strictness::Nginx`](super::Strictness) any value other than `chunked`.
    UnknownTransferEncoding,
    /// A `Transfer-Encoding` that does not end with `chunked`, or is not a list of codings: the
    /// body has no known end (RFC 9112 section 6.3).
    InvalidTransferEncoding,
    /// `Transfer-Encoding` in an HTTP/1.0 request.
    TransferEncodingIn10,
    /// `CONNECT` where it is not allowed.
    ConnectRefused,
    /// `CONNECT` with a body.
    ConnectWithBody,
    /// `TRACE`, never allowed.
    TraceRefused,
}

impl HeadError {
    /// All causes, for tables and tests.
    pub const ALL: [HeadError; 25] = [
        HeadError::InvalidMethod,
        HeadError::UnknownMethod,
        HeadError::InvalidRequestLine,
        HeadError::InvalidVersion,
        HeadError::InvalidHttp09Method,
        HeadError::Http09Refused,
        HeadError::LineTooLong,
        HeadError::InvalidTargetHost,
        HeadError::FieldTooLong,
        HeadError::HeadTooLarge,
        HeadError::TooManyFields,
        HeadError::InvalidField,
        HeadError::TooManyOptions,
        HeadError::DuplicateField,
        HeadError::DuplicateHost,
        HeadError::InvalidHost,
        HeadError::MissingHost,
        HeadError::InvalidContentLength,
        HeadError::LengthAndTransferEncoding,
        HeadError::UnknownTransferEncoding,
        HeadError::InvalidTransferEncoding,
        HeadError::TransferEncodingIn10,
        HeadError::ConnectRefused,
        HeadError::ConnectWithBody,
        HeadError::TraceRefused,
    ];

    /// The status that nginx sends. 494 is its internal code for a head that is too large; the
    /// client gets 400.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            HeadError::InvalidVersion => 505,
            HeadError::LineTooLong => 414,
            HeadError::FieldTooLong | HeadError::HeadTooLarge | HeadError::TooManyFields => 494,
            HeadError::UnknownTransferEncoding | HeadError::UnknownMethod => 501,
            HeadError::ConnectRefused | HeadError::TraceRefused => 405,
            _ => 400,
        }
    }

    /// The first words of nginx's log message; `write_log` adds the client's text.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            HeadError::InvalidMethod => "client sent invalid method",
            HeadError::UnknownMethod => "client sent unknown method",
            HeadError::InvalidRequestLine => "client sent invalid request",
            HeadError::InvalidVersion => "client sent invalid version",
            HeadError::InvalidHttp09Method => "client sent invalid method in HTTP/0.9 request",
            HeadError::Http09Refused => "client sent HTTP/0.9 request",
            HeadError::LineTooLong => "client sent too long URI",
            HeadError::InvalidTargetHost => "client sent invalid host in request line",
            HeadError::FieldTooLong => "client sent too long header line",
            HeadError::HeadTooLarge => "client sent too large request",
            HeadError::TooManyFields => "client sent too many header lines",
            HeadError::InvalidField => "client sent invalid header line",
            HeadError::TooManyOptions => "client sent too many options in \"Connection\" header",
            HeadError::DuplicateField => "client sent duplicate header line",
            HeadError::DuplicateHost => "client sent duplicate host header",
            HeadError::InvalidHost => "client sent invalid host header",
            HeadError::MissingHost => "client sent HTTP/1.1 request without \"Host\" header",
            HeadError::InvalidContentLength => "client sent invalid \"Content-Length\" header",
            HeadError::LengthAndTransferEncoding => {
                "client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time"
            }
            HeadError::UnknownTransferEncoding => "client sent unknown \"Transfer-Encoding\"",
            HeadError::InvalidTransferEncoding => {
                "client sent invalid \"Transfer-Encoding\" header"
            }
            HeadError::TransferEncodingIn10 => {
                "client sent HTTP/1.0 request with \"Transfer-Encoding\" header"
            }
            HeadError::ConnectRefused => "client sent CONNECT method",
            HeadError::ConnectWithBody => "client sent CONNECT request with body",
            HeadError::TraceRefused => "client sent TRACE method",
        }
    }

    /// Appends nginx's complete log message to `out`: the reason and, where nginx shows it, the
    /// part of `buffer` that caused it. `head` is the head of the failed parse.
    pub fn write_log(self, buffer: &[u8], head: &RequestHead, out: &mut Vec<u8>) {
        out.extend_from_slice(self.reason().as_bytes());
        let fault = head.fault();
        match self {
            HeadError::FieldTooLong => {
                let line = fault.of(buffer);
                let shown = &line[..line.len().min(SHOWN_BYTES_MAX)];
                write_parts(out, &[b": \"", shown, b"...\""]);
            }
            HeadError::InvalidField => {
                write_parts(out, &[b": \"", fault.of(buffer)]);
                let byte = buffer.get(fault.end()).copied().unwrap_or_default();
                write_parts(out, &[b"\\x", &hex::pair(byte), b"...\""]);
            }
            HeadError::DuplicateField | HeadError::DuplicateHost => {
                let (Some(new), Some(old)) = (head.fields.last(), head.fault_previous()) else {
                    return;
                };
                write_parts(
                    out,
                    &[b": \"", new.name.of(buffer), b": ", new.value.of(buffer)],
                );
                write_parts(out, &[b"\", previous value: \"", old.name.of(buffer)]);
                write_parts(out, &[b": ", old.value.of(buffer), b"\""]);
            }
            HeadError::UnknownTransferEncoding | HeadError::InvalidTransferEncoding => {
                write_parts(out, &[b": \"", fault.of(buffer), b"\""]);
            }
            _ => {}
        }
    }
}

/// nginx cuts the line to its log record of 2048 bytes, less 300.
const SHOWN_BYTES_MAX: usize = 1748;

fn write_parts(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}
