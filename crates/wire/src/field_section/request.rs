//! The head of a request, built from the fields of a section (RFC 9113 section 8.3, RFC 9114
//! section 4.3, RFC 8441, RFC 9220).
//!
//! Fields are checked as they come, in one pass; checks that need the complete block follow at its
//! end. A refused block is still read to its end, because the table must match the sender's.

use super::FieldSink;
use crate::message::{
    BodyLength, HeadRules, InvalidFields, Known, METHOD_BYTES_MAX, Method, Priority, RequestHead,
    RequestTarget, Strictness, TargetStop, Version, decimal, holds_control, is_token_byte, trim,
};
use crate::{Span, host};

#[cfg(test)]
mod tests;

/// The most fields left out because of their names that are kept for the log of one request.
const IGNORED_MAX: usize = 32;

/// The protocol that a stream may be a tunnel for (RFC 8441 section 5).
const WEBSOCKET: &[u8] = b"websocket";

/// Why the head of a request is refused. The stream gets a status; if the head is malformed by the
/// RFC, the stream is reset after that (RFC 9113 section 8.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadFault {
    UnknownPseudoHeader,
    PseudoHeaderBehindField,
    DuplicatePseudoHeader,
    MissingMethod,
    MissingScheme,
    MissingPath,
    InvalidMethod,
    /// A method that is longer than any (RFC 9110 section 9.1).
    UnknownMethod,
    InvalidScheme,
    InvalidPath,
    InvalidAuthority,
    /// Neither `:authority` nor `Host`.
    MissingHost,
    /// `:authority` and `Host` name different hosts.
    DifferentHosts,
    InvalidName,
    InvalidValue,
    /// A field that is for connections of HTTP/1 only (RFC 9113 section 8.2.2).
    ConnectionField,
    /// A second field with a name that may occur only once.
    DuplicateField,
    InvalidContentLength,
    /// `:protocol` without CONNECT, or not a name of a protocol (RFC 8441 section 4).
    InvalidProtocol,
    TooManyFields,
    /// The section, or a text in it, is larger than the rules allow. HTTP/2 ends the connection.
    TooLarge,
    /// A CONNECT with other pseudo-header fields than RFC 9113 section 8.5 allows, or whose
    /// authority is no host with a port.
    MalformedConnect,
    ConnectRefused,
    /// An extended CONNECT for another protocol than `websocket`.
    ProtocolRefused,
    TraceRefused,
}

impl HeadFault {
    /// The status of the answer; 494 is nginx's own code, which is sent as 400.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            HeadFault::TooManyFields | HeadFault::TooLarge => 494,
            HeadFault::ConnectRefused | HeadFault::TraceRefused => 405,
            HeadFault::ProtocolRefused | HeadFault::UnknownMethod => 501,
            _ => 400,
        }
    }

    /// Whether the request is malformed by the RFC. Other faults are well-formed requests that are
    /// not served.
    #[must_use]
    pub fn is_malformed(self) -> bool {
        !matches!(
            self,
            HeadFault::TooManyFields
                | HeadFault::TooLarge
                | HeadFault::UnknownMethod
                | HeadFault::ConnectRefused
                | HeadFault::ProtocolRefused
                | HeadFault::TraceRefused
                | HeadFault::MissingHost
        )
    }

    /// The log message.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            HeadFault::UnknownPseudoHeader => "client sent unknown pseudo-header",
            HeadFault::PseudoHeaderBehindField => "client sent out of order pseudo-headers",
            HeadFault::DuplicatePseudoHeader => "client sent duplicate pseudo-header",
            HeadFault::MissingMethod => "client sent no :method header",
            HeadFault::MissingScheme => "client sent no :scheme header",
            HeadFault::MissingPath => "client sent no :path header",
            HeadFault::InvalidMethod => "client sent invalid method",
            HeadFault::UnknownMethod => "client sent unknown method",
            HeadFault::InvalidScheme => "client sent invalid :scheme header",
            HeadFault::InvalidPath => "client sent invalid :path header",
            HeadFault::InvalidAuthority => "client sent invalid host header",
            HeadFault::MissingHost => "client sent neither \":authority\" nor \"Host\" header",
            HeadFault::DifferentHosts => {
                "client sent \":authority\" and \"Host\" headers with different values"
            }
            HeadFault::InvalidName => "client sent invalid header name",
            HeadFault::InvalidValue => "client sent header with invalid value",
            HeadFault::ConnectionField => "client sent connection-specific header",
            HeadFault::DuplicateField => "client sent duplicate header line",
            HeadFault::InvalidContentLength => "client sent invalid \"Content-Length\" header",
            HeadFault::InvalidProtocol => "client sent invalid :protocol header",
            HeadFault::TooManyFields => "client sent too many header lines",
            HeadFault::TooLarge => "client sent too large header",
            HeadFault::MalformedConnect => "client sent invalid CONNECT request",
            HeadFault::ConnectRefused => "client sent CONNECT method",
            HeadFault::ProtocolRefused => {
                "client sent CONNECT method with a :protocol other than \"websocket\""
            }
            HeadFault::TraceRefused => "client sent TRACE method",
        }
    }
}

/// The kind of a header block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// A head whose pseudo-header fields may still come.
    #[default]
    Pseudo,
    /// A head after its pseudo-header fields.
    Fields,
    /// Trailers.
    Trailers,
    /// A block whose fields are not used.
    Waste,
}

/// Reads the fields of header blocks into heads; it is reused.
#[derive(Default)]
pub struct RequestReader {
    /// The head, after [`RequestReader::finish`]; trailers are its only fields.
    pub head: RequestHead,
    /// The value of the `priority` field; `None` if there is none.
    pub priority: Option<Priority>,
    /// The bytes of the current header block.
    pub block_bytes: usize,
    version: Version,
    rules: HeadRules,
    part: Part,
    fault: Option<HeadFault>,
    method: Option<Span>,
    scheme: Option<Span>,
    authority: Option<Span>,
    path: Option<Span>,
    protocol: Option<Span>,
    /// The parts of split cookies, as one value.
    cookie: Vec<u8>,
    /// The bytes of names and values.
    list_bytes: usize,
    /// Whether the list, or a text in it, is larger than the rules allow.
    is_too_large: bool,
}

impl RequestReader {
    /// Prepares for the head of a request of this version.
    pub(crate) fn begin(&mut self, version: Version, rules: &HeadRules) {
        self.clear(Part::Pseudo);
        self.version = version;
        self.rules = *rules;
    }

    /// Prepares for trailers.
    pub(crate) fn begin_trailers(&mut self, rules: &HeadRules) {
        self.clear(Part::Trailers);
        self.rules = *rules;
    }

    /// Prepares for a block whose fields are not used.
    pub(crate) fn begin_waste(&mut self, rules: &HeadRules) {
        self.clear(Part::Waste);
        self.rules = *rules;
    }

    fn clear(&mut self, part: Part) {
        self.head.clear();
        self.cookie.clear();
        self.priority = None;
        self.part = part;
        self.fault = None;
        (self.method, self.scheme, self.authority) = (None, None, None);
        (self.path, self.protocol) = (None, None);
        self.list_bytes = 0;
        self.is_too_large = false;
    }

    /// Whether the list of fields is larger than the rules allow.
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// The fault of trailers, if they have one.
    pub(crate) fn trailers_fault(&self) -> Option<HeadFault> {
        self.fault
    }

    /// Completes the head. `ends`: no body follows.
    ///
    /// # Errors
    /// The fault; the head then holds the parsed parts.
    pub(crate) fn finish(&mut self, ends: bool) -> Result<(), HeadFault> {
        let whole = self.whole(ends);
        self.head.version = self.version;
        match self.fault {
            Some(fault) => Err(fault),
            None => whole,
        }
    }

    fn whole(&mut self, ends: bool) -> Result<(), HeadFault> {
        if !self.cookie.is_empty() {
            self.head.fields.add(b"cookie", &self.cookie);
        }
        self.request_line()?;
        self.scheme.ok_or(HeadFault::MissingScheme)?;
        self.take_host()?;
        self.head.body = match (ends, self.head.known(Known::ContentLength)) {
            (_, Some(value)) => {
                let length = decimal(value).ok_or(HeadFault::InvalidContentLength)?;
                if ends && length > 0 {
                    return Err(HeadFault::InvalidContentLength);
                }
                BodyLength::Bytes(length)
            }
            (true, None) => BodyLength::None,
            (false, None) => BodyLength::Unknown,
        };
        let expect = self.head.known(Known::Expect).unwrap_or_default();
        self.head.expects_continue = !ends && expect.eq_ignore_ascii_case(b"100-continue");
        if let Some(protocol) = self.protocol {
            return self.extended_connect(protocol);
        }
        match self.head.method {
            Method::Trace => Err(HeadFault::TraceRefused),
            _ => Ok(()),
        }
    }

    /// Completes an extended CONNECT: what comes on the stream is the other protocol's and no body.
    fn extended_connect(&mut self, protocol: Span) -> Result<(), HeadFault> {
        if self.head.known(Known::ContentLength).is_some() {
            return Err(HeadFault::InvalidContentLength);
        }
        let fields = &mut self.head.fields;
        // Any other protocol could carry requests that no location sees, as h2c does.
        if !protocol.of(fields.bytes()).eq_ignore_ascii_case(WEBSOCKET) {
            return Err(HeadFault::ProtocolRefused);
        }
        fields.add(b"Upgrade", WEBSOCKET);
        fields.add(b"Connection", b"upgrade");
        self.head.connection.upgrade = true;
        self.head.is_extended_connect = true;
        self.head.body = BodyLength::None;
        self.head.expects_continue = false;
        Ok(())
    }

    /// The method: GET for an extended CONNECT, as HTTP/1 asks for the same.
    fn take_method(&mut self) -> Result<Span, HeadFault> {
        let method = self.method.ok_or(HeadFault::MissingMethod)?;
        let is_connect = method.of(self.head.fields.bytes()) == b"CONNECT";
        match (is_connect, self.protocol) {
            (false, None) => Ok(method),
            (false, Some(_)) => Err(HeadFault::InvalidProtocol),
            (true, Some(_)) => Ok(self.head.fields.append(b"GET")),
            (true, None) => Err(self.connect_fault()),
        }
    }

    /// Why a CONNECT is not served, whose target is its authority and nothing else (RFC 9113
    /// section 8.5): forward proxies serve one that is well-formed.
    fn connect_fault(&self) -> HeadFault {
        let bytes = self.head.fields.bytes();
        let has_port = |authority: &[u8]| {
            let colon = memchr::memrchr(b':', authority);
            let port = colon.and_then(|colon| authority.get(colon + 1..));
            host::validate(authority).is_ok()
                && port.is_some_and(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit))
        };
        let is_whole = self.authority.is_some_and(|span| has_port(span.of(bytes)));
        match (is_whole, self.scheme, self.path) {
            (true, None, None) => HeadFault::ConnectRefused,
            _ => HeadFault::MalformedConnect,
        }
    }

    /// Appends the line that logs show of the request, and takes the parts of the target from it.
    fn request_line(&mut self) -> Result<(), HeadFault> {
        let method = self.take_method()?;
        let path = self.path.ok_or(HeadFault::MissingPath)?;
        let version = self.version.name();
        let bytes = self.head.fields.buffer();
        let start = bytes.len();
        for span in [method, path] {
            bytes.extend_from_within(span.start()..span.end());
            bytes.push(b' ');
        }
        let protocol = bytes.len();
        bytes.extend_from_slice(version.as_bytes());
        let end = bytes.len();
        let mut target = RequestTarget::default();
        let read = target.parse(bytes, start, self.rules.strictness);
        let head = &mut self.head;
        head.line = Span::new(start, end);
        head.protocol = Span::new(protocol, end);
        head.method_text = Span::new(start, start + method.len());
        head.method = Method::of(head.method_text.of(head.fields.bytes()));
        head.origin = Span::new(start + method.len() + 1, protocol - 1);
        match read {
            Ok(_) => {}
            Err(TargetStop::UnknownMethod) if method.len() > METHOD_BYTES_MAX => {
                return Err(HeadFault::UnknownMethod);
            }
            // Methods of lower-case letters are 400 here, as from nginx: its tests show it.
            Err(TargetStop::UnknownMethod | TargetStop::InvalidMethod) => {
                return Err(HeadFault::InvalidMethod);
            }
            Err(TargetStop::More | TargetStop::InvalidTarget) => {
                return Err(HeadFault::InvalidPath);
            }
        }
        head.form = target.form;
        head.origin = target.origin;
        head.path = target.path;
        head.path_is_clean = target.path_clean;
        head.query = target.query.unwrap_or_default();
        head.has_line = true;
        Ok(())
    }

    /// Finds the host in `:authority` or `Host`, and writes it to both (RFC 9113 section 8.3.1).
    fn take_host(&mut self) -> Result<(), HeadFault> {
        let field = self
            .head
            .fields
            .spans()
            .iter()
            .find(|field| field.known == Known::Host);
        let field = field.map(|field| field.value);
        let bytes = self.head.fields.bytes();
        let written = match (self.authority, field) {
            (Some(authority), Some(field)) => {
                if !authority.of(bytes).eq_ignore_ascii_case(field.of(bytes)) {
                    return Err(HeadFault::DifferentHosts);
                }
                authority
            }
            (Some(written), None) | (None, Some(written)) => written,
            (None, None) => return Err(HeadFault::MissingHost),
        };
        let host = host::validate(written.of(bytes)).map_err(|_| HeadFault::InvalidAuthority)?;
        self.head.host = Some(Span::new(written.start(), written.start() + host.len));
        self.head.host_port = host.port;
        if field.is_none() {
            let authority = written.of(bytes).to_vec();
            self.head.fields.add(b"Host", &authority);
        }
        Ok(())
    }

    fn refuse(&mut self, fault: HeadFault) {
        self.fault.get_or_insert(fault);
    }

    fn pseudo_header(&mut self, name: &[u8], value: &[u8]) {
        if self.part != Part::Pseudo {
            return self.refuse(HeadFault::PseudoHeaderBehindField);
        }
        let fault = match name {
            b":method" => {
                if !value.is_empty() && value.iter().all(|&byte| is_token_byte(byte)) {
                    None
                } else {
                    Some(HeadFault::InvalidMethod)
                }
            }
            b":scheme" => {
                if is_scheme(value) {
                    None
                } else {
                    Some(HeadFault::InvalidScheme)
                }
            }
            b":path" => {
                if is_path(value) {
                    None
                } else {
                    Some(HeadFault::InvalidPath)
                }
            }
            b":protocol" => {
                if is_protocol(value) {
                    None
                } else {
                    Some(HeadFault::InvalidProtocol)
                }
            }
            b":authority" => {
                if holds_control(value) || value.is_empty() {
                    Some(HeadFault::InvalidAuthority)
                } else {
                    None
                }
            }
            _ => Some(HeadFault::UnknownPseudoHeader),
        };
        if let Some(fault) = fault {
            return self.refuse(fault);
        }
        let span = self.head.fields.append(value);
        let place = match name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":path" => &mut self.path,
            b":protocol" => &mut self.protocol,
            _ => &mut self.authority,
        };
        if place.replace(span).is_some() {
            self.refuse(HeadFault::DuplicatePseudoHeader);
        }
    }

    fn request_field(&mut self, name: &[u8], value: &[u8]) {
        let Some(validity) = Validity::of(name) else {
            return self.refuse(HeadFault::InvalidName);
        };
        let is_valid = match validity {
            Validity::Plain => true,
            Validity::Underscore => self.rules.underscores,
            Validity::Odd => false,
        };
        let Some(value) = self.within_space(value) else {
            return self.refuse(HeadFault::InvalidValue);
        };
        let may_not_hold = match self.rules.strictness {
            Strictness::Rfc => holds_control(value),
            Strictness::Nginx => memchr::memchr3(b'\r', b'\n', 0, value).is_some(),
        };
        if may_not_hold {
            return self.refuse(HeadFault::InvalidValue);
        }
        if !is_valid && self.rules.invalid_fields == InvalidFields::Ignore {
            return self.ignore(name, value);
        }
        let known = Known::of(name);
        match known {
            Known::Cookie => return self.cookie_crumb(value),
            known if is_of_connection(known) => return self.connection_field(),
            Known::Te if !value.eq_ignore_ascii_case(b"trailers") => {
                return self.connection_field();
            }
            Known::Other if name == b"priority" => self.priority = Some(Priority::parse(value)),
            _ => {}
        }
        if Known::ONCE.contains(&known) && self.head.known(known).is_some() {
            return self.refuse(HeadFault::DuplicateField);
        }
        if self.head.fields.len() >= self.rules.fields_max {
            return self.refuse(HeadFault::TooManyFields);
        }
        self.head.fields.add_as(name, value, is_valid);
    }

    /// A field behind the body. Those of a connection of HTTP/1, and those whose names are odd,
    /// are left out.
    fn trailer_field(&mut self, name: &[u8], value: &[u8]) {
        let Some(validity) = Validity::of(name) else {
            return self.refuse(HeadFault::InvalidName);
        };
        let value = self.within_space(value);
        let Some(value) = value.filter(|value| !holds_control(value)) else {
            return self.refuse(HeadFault::InvalidValue);
        };
        let is_plain = match validity {
            Validity::Plain => true,
            Validity::Underscore => self.rules.underscores,
            Validity::Odd => false,
        };
        if !is_plain || is_of_connection(Known::of(name)) {
            return;
        }
        if self.head.fields.len() >= self.rules.fields_max {
            return self.refuse(HeadFault::TooManyFields);
        }
        self.head.fields.add(name, value);
    }

    /// The value without white space around it. `None`: there may be none (RFC 9113 section 8.2.1).
    fn within_space<'a>(&self, value: &'a [u8]) -> Option<&'a [u8]> {
        let trimmed = trim(value);
        let is_allowed = self.rules.strictness == Strictness::Nginx || trimmed.len() == value.len();
        is_allowed.then_some(trimmed)
    }

    /// A cookie may be split into several fields; other protocols need it as one (RFC 9113 section
    /// 8.2.3).
    fn cookie_crumb(&mut self, value: &[u8]) {
        if !self.cookie.is_empty() {
            self.cookie.extend_from_slice(b"; ");
        }
        self.cookie.extend_from_slice(value);
    }

    /// Leaves the field out, as nginx does.
    fn connection_field(&mut self) {
        if self.rules.strictness == Strictness::Rfc {
            self.refuse(HeadFault::ConnectionField);
        }
    }

    #[cold]
    fn ignore(&mut self, name: &[u8], value: &[u8]) {
        if self.head.ignored.len() < IGNORED_MAX {
            let start = self.head.fields.append(name).start();
            self.head.fields.append(b": ");
            let end = self.head.fields.append(value).end();
            self.head.ignored.push(Span::new(start, end));
        }
    }
}

impl FieldSink for RequestReader {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.list_bytes = self.list_bytes.saturating_add(name.len() + value.len());
        let text_bytes_max = self.rules.line_bytes_max;
        self.is_too_large |= self.list_bytes > self.rules.head_bytes_max
            || name.len() > text_bytes_max
            || value.len() > text_bytes_max;
        if self.is_too_large || self.part == Part::Waste || self.fault.is_some() {
            return;
        }
        let is_pseudo = name.first() == Some(&b':');
        match self.part {
            Part::Trailers if is_pseudo => self.refuse(HeadFault::PseudoHeaderBehindField),
            Part::Trailers => self.trailer_field(name, value),
            _ if is_pseudo => self.pseudo_header(name, value),
            _ => {
                self.part = Part::Fields;
                self.request_field(name, value);
            }
        }
    }
}

/// Whether a field is for connections of HTTP/1 only (RFC 9113 section 8.2.2).
pub(super) fn is_of_connection(known: Known) -> bool {
    matches!(
        known,
        Known::Connection
            | Known::KeepAlive
            | Known::ProxyConnection
            | Known::TransferEncoding
            | Known::Upgrade
    )
}

/// The kind of bytes in a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Validity {
    Plain,
    Underscore,
    Odd,
}

impl Validity {
    /// `None` for a name with a forbidden byte (RFC 9113 section 8.2.1), such as an upper-case
    /// letter.
    pub(super) fn of(name: &[u8]) -> Option<Validity> {
        let mut validity = Validity::Plain;
        if name.is_empty() {
            return None;
        }
        for byte in name {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'-' => {}
                b'_' if validity == Validity::Plain => validity = Validity::Underscore,
                b'_' => {}
                ..=b' ' | b':' | b'A'..=b'Z' | 0x7f.. => return None,
                _ => validity = Validity::Odd,
            }
        }
        Some(validity)
    }
}

/// Whether a text is a scheme (RFC 3986 section 3.1).
fn is_scheme(value: &[u8]) -> bool {
    let Some((first, rest)) = value.split_first() else {
        return false;
    };
    let may_follow = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    first.is_ascii_alphabetic() && rest.iter().all(may_follow)
}

/// Whether a text names a protocol as in `Upgrade` (RFC 9110 section 7.8).
fn is_protocol(value: &[u8]) -> bool {
    let mut parts = value.splitn(2, |byte| *byte == b'/');
    parts.all(|part| !part.is_empty() && part.iter().all(|&byte| is_token_byte(byte)))
}

/// Whether a text may be a path. The parser of the request line checks its bytes.
fn is_path(value: &[u8]) -> bool {
    let is_target = value.starts_with(b"/") || value == b"*";
    is_target && !value.iter().any(|byte| *byte <= b' ' || *byte == 0x7f)
}
