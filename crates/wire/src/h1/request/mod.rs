//! Request heads, server role (RFC 9112 sections 2 to 6).
//!
//! `parse_request` reads a buffer from its first byte and stops at the end of the head. When it is
//! called again with more bytes, it continues at the first incomplete line. Only that line is read
//! again, and the rules limit its length. Ambiguous heads are refused here, in nginx's order of
//! checks.

use super::error::HeadError;
use super::field::{self, Line, LineRules};
use super::request_line::{self, RequestLine};
use crate::message::{
    self, BodyLength, Connection, Field, Fields, HeadRules, InvalidFields, Known, Method,
    Strictness, TargetForm, Version, decimal, is_token_byte, trim,
};
use crate::{Span, host};

#[cfg(test)]
mod tests;

/// The result of a parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadStep {
    /// The head is complete; it takes `RequestHead::head_len` bytes.
    Complete,
    /// The empty line has not come yet.
    Incomplete {
        /// The value for the next call, with the same head and a buffer that begins with the same
        /// bytes.
        scanned: usize,
    },
}

/// The framing of a body (RFC 9112 section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    #[default]
    None,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`
    Chunked,
}

impl Framing {
    /// The length of the body by this framing.
    #[must_use]
    pub fn body_length(self) -> BodyLength {
        match self {
            Framing::None => BodyLength::None,
            Framing::Length(length) => BodyLength::Bytes(length),
            Framing::Chunked => BodyLength::Unknown,
        }
    }
}

impl From<BodyLength> for Framing {
    /// The framing of a body of that length.
    fn from(length: BodyLength) -> Framing {
        match length {
            BodyLength::None => Framing::None,
            BodyLength::Bytes(length) => Framing::Length(length),
            BodyLength::Unknown => Framing::Chunked,
        }
    }
}

/// A request head as spans of the caller's buffer; to be reused from request to request.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    pub method: Method,
    /// The method as written.
    pub method_span: Span,
    /// The whole request line without its line end.
    pub line: Span,
    /// The request target as written.
    pub target: Span,
    pub form: TargetForm,
    /// Path, query and fragment as written, without scheme and authority: nginx's `$request_uri`.
    pub origin: Span,
    /// The raw path, without query and fragment; `/` if the target has none.
    pub path: Span,
    /// Whether the path is already in normal form, so that it needs no
    /// [`normalise`](crate::target::normalise).
    pub path_clean: bool,
    /// The raw query without the question mark and the fragment; `None` without a question mark.
    pub query: Option<Span>,
    /// The version the message is handled as.
    pub version: Version,
    /// The protocol as written; empty in HTTP/0.9.
    pub protocol: Span,
    /// The header lines in order.
    pub fields: Vec<Field>,
    /// Header lines left out because of their names, for the log: at most the first 32.
    pub ignored: Vec<Span>,
    /// Bytes the head takes in the buffer, with empty lines before it and the one after it.
    pub head_len: usize,
    /// The framing of the body.
    pub framing: Framing,
    /// The options of `Connection`.
    pub connection: Connection,
    /// Whether the client waits for `100 Continue` (RFC 9110 section 10.1.1).
    pub expect_continue: bool,
    /// The host of the request, from the target or else from `Host`, without port and final dot, in
    /// its original case.
    pub host: Option<Span>,
    /// Port that came with the host; 0 if none.
    pub host_port: u16,
    /// Whether the host holds upper-case letters.
    pub host_upper: bool,
    /// Whether parsing has begun since the last `clear`.
    begun: bool,
    seen: u64,
    resume: usize,
    line_start: usize,
    line_done: bool,
    fault: Span,
    fault_previous: usize,
}

impl RequestHead {
    /// Empties the head and keeps its memory.
    pub fn clear(&mut self) {
        let (mut fields, mut ignored) = (
            std::mem::take(&mut self.fields),
            std::mem::take(&mut self.ignored),
        );
        fields.clear();
        ignored.clear();
        *self = RequestHead {
            fields,
            ignored,
            ..RequestHead::default()
        };
    }

    /// Takes spare room from `head` for the head that is read next, which will replace all of it.
    pub fn borrow_room(&mut self, head: &mut message::RequestHead) {
        head.fields.lend_room(&mut self.fields);
        if self.ignored.capacity() == 0 {
            std::mem::swap(&mut self.ignored, &mut head.ignored);
            self.ignored.clear();
        }
    }

    /// Moves a complete head, which was parsed from `buffer` at `start`, into `head`. The buffer
    /// itself moves if few bytes follow the head. Returns the offset of the rest in the buffer.
    pub fn move_to(
        &mut self,
        head: &mut message::RequestHead,
        buffer: &mut Vec<u8>,
        start: usize,
    ) -> usize {
        let end = (start + self.head_len).min(buffer.len());
        let moves = start == 0 && buffer.len() - end <= end;
        if moves {
            head.fields
                .take(&mut self.fields, self.seen, buffer, self.head_len);
        } else {
            let text = buffer.get(start..end).unwrap_or_default();
            head.fields.copy_from(&mut self.fields, self.seen, text);
        }
        self.write_parts(head);
        if moves { 0 } else { end }
    }

    /// Copies the parts of an incomplete or refused head into `head`; `text` is the parsed text.
    pub fn copy_to(&mut self, head: &mut message::RequestHead, text: &[u8]) {
        head.fields.copy_from(&mut self.fields, self.seen, text);
        self.write_parts(head);
    }

    /// Makes `head` the result of this second parse of its own bytes, by other rules.
    pub fn replace(&mut self, head: &mut message::RequestHead) {
        head.fields.read_again(&mut self.fields, self.seen);
        self.write_parts(head);
    }

    /// Writes all parts of the head except the fields and the bytes.
    fn write_parts(&mut self, head: &mut message::RequestHead) {
        head.method = self.method;
        head.version = self.version;
        head.form = self.form;
        head.has_line = self.line_done;
        head.path_is_clean = self.path_clean;
        head.host_port = self.host_port;
        head.body = self.framing.body_length();
        head.expects_continue = self.expect_continue;
        head.is_extended_connect = false;
        head.connection = self.connection;
        head.method_text = self.method_span;
        head.line = self.line;
        head.origin = self.origin;
        head.path = self.path;
        head.query = self.query.unwrap_or_default();
        head.protocol = self.protocol;
        head.host = self.host;
        std::mem::swap(&mut head.ignored, &mut self.ignored);
        self.write_host(&mut head.fields);
    }

    /// Makes the target's host that of `Host`, whose own is ignored (RFC 9112 section 3.2.2), so
    /// that nobody behind sees another one.
    fn write_host(&self, fields: &mut Fields) {
        let (TargetForm::Absolute { authority, .. } | TargetForm::Authority { authority }) =
            self.form
        else {
            return;
        };
        // It is checked before any field is read; one that is refused is the host of nothing.
        if self.host.is_some() && !fields.set_value(Known::Host, authority) {
            let authority = authority.of(fields.bytes()).to_vec();
            fields.add(b"Host", &authority);
        }
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

    /// Whether `Connection` names this field; such a field is not passed on (RFC 9110 section
    /// 7.6.1).
    #[must_use]
    pub fn is_connection_option(&self, buffer: &[u8], name: &[u8]) -> bool {
        self.connection.options > 0 && field::is_connection_option(&self.fields, buffer, name)
    }

    /// Whether the client allows the connection to stay open after the response (RFC 9112 section
    /// 9.3).
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.connection.is_kept(self.version)
    }

    /// The part of a refused head that caused the refusal: the header line up to the offending
    /// byte, or the value. Used by [`HeadError::write_log`].
    #[must_use]
    pub fn fault(&self) -> Span {
        self.fault
    }

    /// The earlier line of a refused duplicate; the duplicate is the last of `fields`.
    #[must_use]
    pub fn fault_previous(&self) -> Option<&Field> {
        self.fields.get(self.fault_previous)
    }
}

/// Parses the request head at the start of `buffer`, after any empty lines.
///
/// `scanned` is 0 for a new head, and otherwise the value from the last call. A malformed part is
/// reported at once, even if the head is incomplete; `head` then keeps the parsed parts, for the
/// log. An HTTP/0.9 request ends with its line.
///
/// # Errors
/// One [`HeadError`] for each cause.
pub fn parse_request(
    buffer: &[u8],
    scanned: usize,
    rules: &HeadRules,
    head: &mut RequestHead,
) -> Result<HeadStep, HeadError> {
    if head.begun && (scanned == 0 || head.resume > buffer.len()) {
        head.clear();
    }
    head.begun = true;
    let more = HeadStep::Incomplete {
        scanned: buffer.len(),
    };
    if !head.line_done && !take_request_line(buffer, rules, head)? {
        return Ok(more);
    }
    if head.version == Version::Http09 {
        head.head_len = head.resume;
        return Ok(HeadStep::Complete);
    }
    if !take_fields(buffer, rules, head)? {
        return Ok(more);
    }
    finish(buffer, rules, head)?;
    Ok(HeadStep::Complete)
}

/// Parses the request line if it is complete; `false` asks for more bytes.
fn take_request_line(
    buffer: &[u8],
    rules: &HeadRules,
    head: &mut RequestHead,
) -> Result<bool, HeadError> {
    let mut start = head.resume;
    while matches!(buffer.get(start), Some(b'\r' | b'\n')) {
        start += 1;
    }
    if start > rules.head_bytes_max {
        return Err(HeadError::HeadTooLarge);
    }
    head.resume = start;
    head.line_start = start;
    let limit = start.saturating_add(rules.line_bytes_max.min(rules.head_bytes_max));
    let window = &buffer[..buffer.len().min(limit)];
    let mut parts = RequestLine::default();
    let result = request_line::parse(window, start, rules.strictness, &mut parts);
    if result.is_err() {
        parts.line = started_line(window, start);
    }
    head.method = parts.target.method;
    head.method_span = parts.target.method_span;
    head.line = parts.line;
    head.target = parts.target.written;
    head.form = parts.target.form;
    head.origin = parts.target.origin;
    head.path = parts.target.path;
    head.path_clean = parts.target.path_clean;
    head.query = parts.target.query;
    head.version = parts.version;
    head.protocol = parts.protocol;
    match result {
        Ok(next) => {
            head.resume = next;
            head.line_done = true;
        }
        Err(request_line::Stop::Refused(error)) => return Err(error),
        Err(request_line::Stop::More) if buffer.len() >= limit => {
            return Err(HeadError::LineTooLong);
        }
        Err(request_line::Stop::More) => return Ok(false),
    }
    if head.version == Version::Http09 && !rules.http09 {
        return Err(HeadError::Http09Refused);
    }
    if let TargetForm::Absolute { authority, .. } | TargetForm::Authority { authority } = head.form
    {
        take_host(buffer, authority, head).map_err(|_| HeadError::InvalidTargetHost)?;
    }
    Ok(true)
}

/// The part of an incomplete or refused request line that has come, for the log.
fn started_line(window: &[u8], start: usize) -> Span {
    let rest = window.get(start..).unwrap_or(&[]);
    let len = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
    Span::new(start, start + len)
}

/// Parses header lines up to the empty one; `false` asks for more bytes.
fn take_fields(
    buffer: &[u8],
    rules: &HeadRules,
    head: &mut RequestHead,
) -> Result<bool, HeadError> {
    let head_limit = head.line_start.saturating_add(rules.head_bytes_max);
    let manner = LineRules::of_request(rules.strictness);
    loop {
        let start = head.resume;
        let limit = start.saturating_add(rules.line_bytes_max).min(head_limit);
        let window = &buffer[..buffer.len().min(limit)];
        let (line, next) = match field::parse_line(window, start, manner) {
            Ok(parsed) => parsed,
            Err(field::Stop::Bad(at)) => {
                head.fault = Span::new(start, at);
                return Err(HeadError::InvalidField);
            }
            Err(field::Stop::More) if buffer.len() < limit => return Ok(false),
            Err(field::Stop::More) => {
                head.fault = Span::new(start, limit);
                let by_line = limit < head_limit;
                let error = if by_line {
                    HeadError::FieldTooLong
                } else {
                    HeadError::HeadTooLarge
                };
                return Err(error);
            }
        };
        head.resume = next;
        match line {
            Line::Field(mut field) => {
                field.valid &= rules.underscores || !field.underscore;
                if !field.valid && rules.invalid_fields == InvalidFields::Ignore {
                    ignore(head, Span::new(field.name.start(), field.value.end()));
                    continue;
                }
                take_field(buffer, rules, field, head)?;
            }
            Line::Empty => {
                head.head_len = next;
                return Ok(true);
            }
        }
    }
}

/// The most lines left out of a request that are kept for the log.
const IGNORED_MAX: usize = 32;

#[cold]
fn ignore(head: &mut RequestHead, line: Span) {
    if head.ignored.len() < IGNORED_MAX {
        head.ignored.push(line);
    }
}

fn take_field(
    buffer: &[u8],
    rules: &HeadRules,
    field: Field,
    head: &mut RequestHead,
) -> Result<(), HeadError> {
    if head.fields.len() >= rules.fields_max {
        return Err(HeadError::TooManyFields);
    }
    head.fields.push(field);
    let bit = field.known.bit();
    if bit & ACTED_ON == 0 {
        head.seen |= bit;
        return Ok(());
    }
    let is_unique = match rules.strictness {
        Strictness::Rfc => UNIQUE,
        Strictness::Nginx => UNIQUE | Known::TransferEncoding.bit(),
    };
    if bit & is_unique & head.seen != 0 {
        let earlier = head
            .fields
            .iter()
            .position(|earlier| earlier.known == field.known);
        head.fault_previous = earlier.unwrap_or_default();
        return Err(match field.known {
            Known::Host => HeadError::DuplicateHost,
            _ => HeadError::DuplicateField,
        });
    }
    head.seen |= bit;
    match field.known {
        Known::Host => take_host(buffer, field.value, head).map_err(|_| HeadError::InvalidHost),
        Known::Connection => {
            let value = field.value.of(buffer);
            if take_connection(value, rules.strictness, &mut head.connection) {
                Ok(())
            } else {
                Err(HeadError::TooManyOptions)
            }
        }
        _ => Ok(()),
    }
}

/// The names that may occur only once. By nginx's rules `Transfer-Encoding` is one more; by the RFC
/// its lines are one list.
const UNIQUE: u64 = bits(&Known::ONCE);

const ACTED_ON: u64 = UNIQUE | bits(&[Known::Connection, Known::TransferEncoding]);

const fn bits(names: &[Known]) -> u64 {
    let mut set = 0;
    let mut index = 0;
    while index < names.len() {
        set |= 1u64 << (names[index] as u8);
        index += 1;
    }
    set
}

/// Checks a host, and keeps it unless the target has one.
fn take_host(buffer: &[u8], written: Span, head: &mut RequestHead) -> Result<(), host::HostError> {
    let host = host::validate(written.of(buffer))?;
    if head.host.is_none() {
        head.host = Some(Span::new(written.start(), written.start() + host.len));
        head.host_port = host.port;
        head.host_upper = host.upper;
    }
    Ok(())
}

/// Most options of `Connection` beyond the known ones. Each field is compared with each option
/// before it is passed on, so many of both would block the lane. Real messages have a few.
const OPTIONS_MAX: u16 = 64;

/// Takes a `Connection` line; `false` if there are too many options.
pub(super) fn take_connection(
    value: &[u8],
    strictness: Strictness,
    connection: &mut Connection,
) -> bool {
    if value.eq_ignore_ascii_case(b"keep-alive") {
        // Nearly all lines are this one.
        connection.close &= strictness == Strictness::Rfc;
        connection.keep_alive = true;
        return true;
    }
    let mut line = Connection::default();
    for option in value.split(|byte| *byte == b',').map(trim) {
        match option.len() {
            5 if option.eq_ignore_ascii_case(b"close") => line.close = true,
            10 if option.eq_ignore_ascii_case(b"keep-alive") => line.keep_alive = true,
            7 if option.eq_ignore_ascii_case(b"upgrade") => line.upgrade = true,
            _ => line.options = line.options.saturating_add(1),
        }
    }
    connection.options = connection.options.saturating_add(line.options);
    let few = connection.options <= OPTIONS_MAX;
    if strictness == Strictness::Rfc {
        connection.close |= line.close;
        connection.keep_alive |= line.keep_alive;
        connection.upgrade |= line.upgrade;
        return few;
    }
    connection.upgrade |= contains(value, b"upgrade");
    if contains(value, b"close") {
        connection.close = true;
        connection.keep_alive = false;
    } else if contains(value, b"keep-alive") {
        connection.close = false;
        connection.keep_alive = true;
    }
    few
}

fn contains(value: &[u8], word: &[u8]) -> bool {
    value.len() >= word.len()
        && value
            .windows(word.len())
            .any(|window| window.eq_ignore_ascii_case(word))
}

/// Makes the checks that need the complete head.
fn finish(buffer: &[u8], rules: &HeadRules, head: &mut RequestHead) -> Result<(), HeadError> {
    if head.version == Version::Http11 && head.seen & Known::Host.bit() == 0 {
        return Err(HeadError::MissingHost);
    }
    if head.seen & TOLD_AT_END != 0 {
        finish_framing(buffer, rules, head)?;
        head.expect_continue = head.version == Version::Http11
            && head
                .find(Known::Expect)
                .is_some_and(|field| field.value.of(buffer).eq_ignore_ascii_case(b"100-continue"));
    }
    match head.method {
        Method::Connect if head.version != Version::Http11 || !rules.connect => {
            Err(HeadError::ConnectRefused)
        }
        Method::Connect if !matches!(head.framing, Framing::None | Framing::Length(0)) => {
            Err(HeadError::ConnectWithBody)
        }
        Method::Trace => Err(HeadError::TraceRefused),
        _ => Ok(()),
    }
}

const TOLD_AT_END: u64 = bits(&[Known::ContentLength, Known::TransferEncoding, Known::Expect]);

fn finish_framing(
    buffer: &[u8],
    rules: &HeadRules,
    head: &mut RequestHead,
) -> Result<(), HeadError> {
    if let Some(field) = head.find(Known::ContentLength) {
        let length = decimal(field.value.of(buffer));
        head.framing = Framing::Length(length.ok_or(HeadError::InvalidContentLength)?);
    }
    if let Some(field) = head.find(Known::TransferEncoding) {
        let value = field.value;
        if head.version < Version::Http11 {
            return Err(HeadError::TransferEncodingIn10);
        }
        let own = |field: &&Field| field.known == Known::TransferEncoding;
        let is_list = head.fields.iter().filter(own).count() > 1;
        if is_list || !value.of(buffer).eq_ignore_ascii_case(b"chunked") {
            head.fault = value;
            let values = head.fields.iter().filter(own);
            let values: Vec<&[u8]> = values.map(|field| field.value.of(buffer)).collect();
            return Err(match rules.strictness {
                Strictness::Nginx => HeadError::UnknownTransferEncoding,
                Strictness::Rfc => refused_coding(&values.join(&b',')),
            });
        }
        if head.framing != Framing::None {
            return Err(HeadError::LengthAndTransferEncoding);
        }
        head.framing = Framing::Chunked;
    }
    Ok(())
}

/// Why a `Transfer-Encoding` other than `chunked` is refused: the end of the body is known only if
/// `chunked` is at the end of the list and nowhere else (RFC 9112 section 6.3). An empty element is
/// refused too, since other parsers may read such a list differently.
fn refused_coding(value: &[u8]) -> HeadError {
    let mut codings = value.split(|byte| *byte == b',').map(trim).peekable();
    while let Some(coding) = codings.next() {
        let name = coding
            .split(|byte| matches!(byte, b';' | b' ' | b'\t'))
            .next();
        let name = name.unwrap_or_default();
        let chunked = name.eq_ignore_ascii_case(b"chunked");
        let is_last = codings.peek().is_none();
        let whole = !chunked || name.len() == coding.len();
        if name.is_empty() || !name.iter().all(|&byte| is_token_byte(byte)) {
            return HeadError::InvalidTransferEncoding;
        }
        if chunked != is_last || !whole {
            return HeadError::InvalidTransferEncoding;
        }
    }
    HeadError::UnknownTransferEncoding
}
