//! Response heads, client role (RFC 9112 sections 4 to 6), for the load generator and the proxy.
//!
//! A status line may lack its reason. A second length or transfer coding is refused, because its
//! meaning is ambiguous. Under [`Strictness::Nginx`](super::Strictness) header lines are read as
//! nginx reads them from its upstreams, which accepts more than it does from clients.

use super::field::{self, Line, LineRules};
use super::request::{HeadStep, take_connection};
use crate::Span;
use crate::message::{
    BodyEnd, Connection, Delivery, Field, Head, HeadRules, Known, Method, Strictness,
    TransferCoding, Version, decimal,
};

mod cgi;
#[cfg(test)]
mod tests;

pub use cgi::{parse_cgi_response, read_cgi_response};

/// Why a response head was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseError {
    /// The first line is not a status line of HTTP/1.
    InvalidStatusLine,
    /// The `Status` of a CGI response is not a final status.
    InvalidStatus,
    /// A header line with a forbidden byte.
    InvalidField,
    /// The head, or a line of it, is longer than the rules allow.
    TooLarge,
    /// More header lines than `HeadRules::fields_max`.
    TooManyFields,
    /// More than the limit of options in `Connection`.
    TooManyOptions,
    /// A second `Content-Length`.
    DuplicateContentLength,
    /// A `Content-Length` that is not a decimal number below 2^63.
    InvalidContentLength,
    /// A second `Transfer-Encoding`.
    DuplicateTransferEncoding,
    /// A `Transfer-Encoding` with an unknown coding, with more than one coding before `chunked`, or
    /// with one after it.
    UnknownTransferEncoding,
    /// `Content-Length` and `Transfer-Encoding` in one head.
    LengthAndTransferEncoding,
}

impl ResponseError {
    /// The words that nginx logs for the cause.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            ResponseError::InvalidStatusLine => "upstream sent no valid HTTP/1.0 header",
            ResponseError::InvalidStatus => "upstream sent invalid status",
            ResponseError::InvalidField => "upstream sent invalid header",
            ResponseError::TooLarge => "upstream sent too big header",
            ResponseError::TooManyFields => "upstream sent too many header lines",
            ResponseError::TooManyOptions => "upstream sent too many options in \"Connection\"",
            ResponseError::DuplicateContentLength | ResponseError::DuplicateTransferEncoding => {
                "upstream sent duplicate header line"
            }
            ResponseError::InvalidContentLength => {
                "upstream sent invalid \"Content-Length\" header"
            }
            ResponseError::UnknownTransferEncoding => "upstream sent unknown \"Transfer-Encoding\"",
            ResponseError::LengthAndTransferEncoding => {
                "upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers \
                 at the same time"
            }
        }
    }
}

/// A response head as spans of the caller's buffer; to be reused from response to response.
#[derive(Clone, Debug, Default)]
pub struct ResponseHead {
    /// The status code, three digits.
    pub status: u16,
    /// The reason as written, possibly empty.
    pub reason: Span,
    /// The version the message is handled as.
    pub version: Version,
    /// The header lines in order; names may hold any byte except controls, spaces and colons.
    pub fields: Vec<Field>,
    /// Bytes the head takes in the buffer, with the empty line.
    pub head_len: usize,
    /// The framing of the body.
    pub framing: BodyEnd,
    /// The transfer coding to decode after the framing. A list of several codings is refused: it
    /// has no practical use, and each coding multiplies the size that a few bytes can expand to.
    pub coding: Option<TransferCoding>,
    /// `Content-Length` as given, also where there is no body, as for `HEAD`.
    pub content_length: Option<u64>,
    /// The options of `Connection`.
    pub connection: Connection,
    /// Whether parsing has begun since the last `clear`.
    begun: bool,
    seen: u64,
    resume: usize,
    line_done: bool,
    chunked: bool,
    /// Whether the head belongs to a CGI response.
    cgi: bool,
}

impl ResponseHead {
    /// Empties the head and keeps its memory.
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = ResponseHead {
            fields,
            ..ResponseHead::default()
        };
    }

    /// Makes a complete head that of `head`, with a copy of its bytes, which stand at the front of
    /// `bytes`. Framing and length can still be read here.
    pub fn copy_to(&mut self, head: &mut Head, bytes: &[u8]) {
        self.write_parts(head);
        let text = bytes.get(..self.head_len).unwrap_or(bytes);
        head.fields.copy_from(&mut self.fields, self.seen, text);
    }

    /// Writes all parts of the head except the fields and the bytes.
    fn write_parts(&self, head: &mut Head) {
        head.clear();
        head.status = self.status;
        head.reason = self.reason;
        head.version = self.version;
        head.connection = self.connection;
    }

    /// The first line of a known name.
    #[must_use]
    pub fn find(&self, known: Known) -> Option<&Field> {
        field::find(&self.fields, self.seen, known)
    }

    /// The first line with the name `name`, in any case; `buffer` is the parsed one.
    #[must_use]
    pub fn find_name(&self, buffer: &[u8], name: &[u8]) -> Option<&Field> {
        field::find_name(&self.fields, buffer, name)
    }

    /// Whether this is an interim response, after which another head follows (RFC 9110 section
    /// 15.2). `101` is final: another protocol follows.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }

    /// Whether `Connection` names this field; such a field is not passed on (RFC 9110 section
    /// 7.6.1).
    #[must_use]
    pub fn is_connection_option(&self, buffer: &[u8], name: &[u8]) -> bool {
        self.connection.options > 0 && field::is_connection_option(&self.fields, buffer, name)
    }

    /// The delivery of the bytes after the head, which is complete.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        Delivery {
            end: self.framing,
            coding: self.coding,
            keeps_connection: self.keep_alive(),
        }
    }

    /// Whether the connection can carry another request after the body.
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        if self.framing == BodyEnd::UntilClose || self.status == 101 {
            return false;
        }
        // SCGI and uwsgi have one request on a connection. FastCGI's records say it themselves.
        if self.cgi {
            return false;
        }
        // An HTTP/1.0 sender does not know chunks (RFC 9112 section 6.1).
        if self.framing == BodyEnd::Marked && self.version != Version::Http11 {
            return false;
        }
        self.connection.is_kept(self.version)
    }
}

/// Parses the response head at the start of `buffer`, the answer to a request with `method`.
///
/// `scanned` is 0 for a new head, and otherwise the value from the last call. Only the limits and
/// the strictness of the rules apply: underscores are accepted, and lines with odd names are kept,
/// with `Field::valid` unset.
///
/// # Errors
/// One [`ResponseError`] for each cause.
pub fn parse_response(
    buffer: &[u8],
    scanned: usize,
    rules: &HeadRules,
    method: Method,
    head: &mut ResponseHead,
) -> Result<HeadStep, ResponseError> {
    if head.begun && (scanned == 0 || head.resume > buffer.len()) {
        head.clear();
    }
    head.begun = true;
    let more = HeadStep::Incomplete {
        scanned: buffer.len(),
    };
    if !head.line_done && !take_status_line(buffer, rules, head)? {
        return Ok(more);
    }
    if !take_fields(buffer, rules, head)? {
        return Ok(more);
    }
    head.framing = framing(head, method)?;
    Ok(HeadStep::Complete)
}

/// Reads as [`parse_response`] does, and copies the head into `head` when it is complete. `parsed`
/// keeps the data about the body and the connection, and how many of the bytes are the head's.
///
/// # Errors
/// Those of [`parse_response`].
pub fn read_response(
    bytes: &[u8],
    scanned: usize,
    rules: &HeadRules,
    method: Method,
    parsed: &mut ResponseHead,
    head: &mut Head,
) -> Result<HeadStep, ResponseError> {
    begin(scanned, parsed, head);
    let step = parse_response(bytes, scanned, rules, method, parsed)?;
    if step == HeadStep::Complete {
        parsed.copy_to(head, bytes);
    }
    Ok(step)
}

/// Makes ready for a head of which nothing was looked at.
fn begin(scanned: usize, parsed: &mut ResponseHead, head: &mut Head) {
    if scanned == 0 {
        parsed.clear();
        head.fields.lend_room(&mut parsed.fields);
    }
}

/// Parses the status line if it is complete; `false` asks for more bytes.
fn take_status_line(
    buffer: &[u8],
    rules: &HeadRules,
    head: &mut ResponseHead,
) -> Result<bool, ResponseError> {
    let limit = rules.line_bytes_max.min(rules.head_bytes_max);
    let window = &buffer[..buffer.len().min(limit)];
    match status_line(window, head) {
        Ok(next) => {
            head.resume = next;
            head.line_done = true;
            Ok(true)
        }
        Err(Stop::Refused) => Err(ResponseError::InvalidStatusLine),
        Err(Stop::More) if buffer.len() >= limit => Err(ResponseError::TooLarge),
        Err(Stop::More) => Ok(false),
    }
}

enum Stop {
    More,
    Refused,
}

/// Reads the version, spaces, three digits, and a reason after a space or a dot.
fn status_line(bytes: &[u8], head: &mut ResponseHead) -> Result<usize, Stop> {
    let peek = |at: usize| bytes.get(at).copied().ok_or(Stop::More);
    let mut at = version(bytes, head)?;
    while peek(at)? == b' ' {
        at += 1;
    }
    let mut status: u16 = 0;
    for _ in 0..3 {
        let digit = peek(at)?;
        if !digit.is_ascii_digit() {
            return Err(Stop::Refused);
        }
        status = status * 10 + u16::from(digit - b'0');
        at += 1;
    }
    head.status = status;
    if status < 100 || !matches!(peek(at)?, b' ' | b'.' | b'\r' | b'\n') {
        return Err(Stop::Refused);
    }
    let rest = &bytes[at..];
    let line_end = at + memchr::memchr2(b'\r', b'\n', rest).ok_or(Stop::More)?;
    head.reason = Span::new((at + 1).min(line_end), line_end);
    let line_feed = if bytes[line_end] == b'\r' {
        line_end + 1
    } else {
        line_end
    };
    if peek(line_feed)? == b'\n' {
        Ok(line_feed + 1)
    } else {
        Err(Stop::Refused)
    }
}

/// Reads `HTTP/`, digits, a dot, digits and a space; returns the offset after it.
fn version(bytes: &[u8], head: &mut ResponseHead) -> Result<usize, Stop> {
    let mut numbers = [0u32; 2];
    let mut at = 0;
    for expected in *b"HTTP/" {
        if *bytes.get(at).ok_or(Stop::More)? != expected {
            return Err(Stop::Refused);
        }
        at += 1;
    }
    for (number, end) in numbers.iter_mut().zip([b'.', b' ']) {
        let start = at;
        loop {
            let byte = *bytes.get(at).ok_or(Stop::More)?;
            if byte == end && at > start {
                break;
            }
            if !byte.is_ascii_digit() || *number > VERSION_NUMBER_MAX {
                return Err(Stop::Refused);
            }
            *number = *number * 10 + u32::from(byte - b'0');
            at += 1;
        }
        at += 1;
    }
    if numbers[0] == 0 {
        return Err(Stop::Refused);
    }
    head.version = if numbers > [1, 0] {
        Version::Http11
    } else {
        Version::Http10
    };
    Ok(at)
}

/// A version number with three digits takes no more digits, as in nginx.
const VERSION_NUMBER_MAX: u32 = 99;

/// Parses header lines up to the empty one; `false` asks for more bytes.
fn take_fields(
    buffer: &[u8],
    rules: &HeadRules,
    head: &mut ResponseHead,
) -> Result<bool, ResponseError> {
    loop {
        let start = head.resume;
        let limit = start
            .saturating_add(rules.line_bytes_max)
            .min(rules.head_bytes_max);
        let window = &buffer[..buffer.len().min(limit)];
        let (line, next) = match parse_line(window, start, rules.strictness) {
            Ok((Some(line), next)) => (line, next),
            Ok((None, next)) => {
                head.resume = next;
                continue;
            }
            Err(field::Stop::Bad(_)) => return Err(ResponseError::InvalidField),
            Err(field::Stop::More) if buffer.len() < limit => return Ok(false),
            Err(field::Stop::More) => return Err(ResponseError::TooLarge),
        };
        head.resume = next;
        match line {
            Line::Field(field) => take_field(buffer, rules, field, head)?,
            Line::Empty => {
                head.head_len = next;
                return Ok(true);
            }
        }
    }
}

/// A line of the section; `None` for a second status line, which old origins send and nginx
/// accepts.
fn parse_line(
    bytes: &[u8],
    start: usize,
    strictness: Strictness,
) -> Result<(Option<Line>, usize), field::Stop> {
    let rest = bytes.get(start..).unwrap_or(&[]);
    if strictness == Strictness::Nginx && rest.starts_with(b"HTTP/") {
        let line_feed = memchr::memchr(b'\n', rest).ok_or(field::Stop::More)?;
        return Ok((None, start + line_feed + 1));
    }
    let manner = LineRules::of_response(strictness);
    field::parse_line(bytes, start, manner).map(|(line, next)| (Some(line), next))
}

fn take_field(
    buffer: &[u8],
    rules: &HeadRules,
    field: Field,
    head: &mut ResponseHead,
) -> Result<(), ResponseError> {
    if head.fields.len() >= rules.fields_max {
        return Err(ResponseError::TooManyFields);
    }
    head.fields.push(field);
    let value = field.value.of(buffer);
    let again = head.seen & field.known.bit() != 0;
    head.seen |= field.known.bit();
    match field.known {
        Known::Connection | Known::TransferEncoding if head.cgi => {}
        Known::Connection if !take_connection(value, rules.strictness, &mut head.connection) => {
            return Err(ResponseError::TooManyOptions);
        }
        Known::ContentLength if again => return Err(ResponseError::DuplicateContentLength),
        Known::ContentLength => {
            let length = decimal(value).ok_or(ResponseError::InvalidContentLength)?;
            head.content_length = Some(length);
        }
        Known::TransferEncoding if again && head.chunked => {
            return Err(ResponseError::DuplicateTransferEncoding);
        }
        Known::TransferEncoding => take_codings(value, head)?,
        _ => {}
    }
    Ok(())
}

/// Takes the codings of one line, in the order in which they were applied (RFC 9112 section 6.1).
fn take_codings(value: &[u8], head: &mut ResponseHead) -> Result<(), ResponseError> {
    let unknown = Err(ResponseError::UnknownTransferEncoding);
    let names = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut count = 0;
    for name in names.filter(|name| !name.is_empty()) {
        count += 1;
        let is = |text: &[u8]| name.eq_ignore_ascii_case(text);
        if head.chunked {
            return unknown;
        }
        if is(b"chunked") {
            head.chunked = true;
            continue;
        }
        let coding = match () {
            () if is(b"gzip") || is(b"x-gzip") => TransferCoding::Gzip,
            () if is(b"deflate") => TransferCoding::Deflate,
            () => return unknown,
        };
        if head.coding.replace(coding).is_some() {
            return unknown;
        }
    }
    if count == 0 { unknown } else { Ok(()) }
}

fn framing(head: &ResponseHead, method: Method) -> Result<BodyEnd, ResponseError> {
    let encoded = head.chunked || head.coding.is_some();
    if encoded && head.content_length.is_some() {
        return Err(ResponseError::LengthAndTransferEncoding);
    }
    let tunnel = method == Method::Connect && (200..300).contains(&head.status);
    let bodiless = matches!(head.status, 100..=199 | 204 | 304);
    if method == Method::Head || bodiless || tunnel {
        return Ok(BodyEnd::None);
    }
    Ok(match head.content_length {
        _ if head.chunked => BodyEnd::Marked,
        Some(length) => BodyEnd::Length(length),
        None => BodyEnd::UntilClose,
    })
}
