//! The request that an upstream server gets: written anew from what was parsed, so that nothing
//! the client sent can be understood in two ways.

use turnpike_conf::{ConfError, bytes_of};
use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::Builder;
use turnpike_http::upstream::Upstream;
use turnpike_http::variables::Template;
use turnpike_lane::log::Level;
use turnpike_wire::message::{Known, Method, RequestWriter, Version, holds_control, unfold};
use turnpike_wire::target::{self, Escape};

use super::HttpOrigin;
use super::hops;
use crate::pass::names::Names;
use crate::pass::origin::{BodyFraming, Path, Question};
use crate::pass::response_store::Recorder;
use crate::pass::upgrade::{self, Upgrades};
use crate::pass::view::PassView;

/// What requests are made of.
pub(crate) struct Request {
    pub(crate) method: Option<Template>,
    pub(crate) version: Version,
    pub(crate) fields: Fields,
    /// Whether the servers are those of gRPC, which want to know that trailers are accepted.
    pub(crate) is_grpc: bool,
}

/// Fields of requests.
#[derive(Default)]
pub(crate) struct Fields {
    pub(crate) host: Option<Template>,
    /// `Content-Length` of requests without a body.
    pub(crate) length: Option<Template>,
    pub(crate) set: Vec<(Vec<u8>, Template)>,
    /// Whether `Connection` is among them.
    pub(crate) names_connection: bool,
    /// The client's that are not passed on.
    pub(crate) replaced: Names,
    /// Whether the operator sets `Via`.
    pub(crate) names_via: bool,
    /// Whether the operator sets `TE`.
    pub(crate) names_te: bool,
    /// Whether the operator says what becomes of `Upgrade`.
    pub(crate) names_upgrade: bool,
    /// Which upgrades are passed on although nobody sets their fields.
    pub(crate) upgrades: Upgrades,
}

/// Fields of a client's request that are not passed on as they are.
const REPLACED: &[&[u8]] = &[
    b"Host",
    b"Connection",
    b"Proxy-Connection",
    b"Content-Length",
    b"Transfer-Encoding",
    b"TE",
    b"Keep-Alive",
    b"Expect",
    b"Upgrade",
];

/// Fields that a response store has its own of.
const CONDITIONS: &[Known] = &[
    Known::IfModifiedSince,
    Known::IfUnmodifiedSince,
    Known::IfNoneMatch,
    Known::IfMatch,
    Known::Range,
    Known::IfRange,
];

impl Fields {
    /// Reads `..._set_header`.
    ///
    /// # Errors
    /// What is wrong with a variable in them.
    pub(crate) fn read(pass: PassView<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        let view = pass.view;
        let mut fields = Fields::default();
        for name in REPLACED {
            fields.replaced.add(name);
        }
        for entry in pass.nearest_all("set_header") {
            let name = bytes_of(entry.argument(0));
            let value = unfold(&bytes_of(entry.argument(1)));
            let value = builder.template(view, entry, &value)?;
            fields.replaced.add(&name);
            fields.names_via |= name.eq_ignore_ascii_case(b"Via");
            fields.names_te |= name.eq_ignore_ascii_case(b"TE");
            fields.names_upgrade |= name.eq_ignore_ascii_case(b"Upgrade");
            if name.eq_ignore_ascii_case(b"Host") {
                fields.host = Some(value);
            } else if name.eq_ignore_ascii_case(b"Content-Length") {
                // The length of a body that is passed is ours to say; this one is for requests
                // without.
                fields.length = Some(value);
            } else if name.eq_ignore_ascii_case(b"Transfer-Encoding") || value.text().is_empty() {
                // Framing is ours to say, and an empty value sends no field.
            } else {
                fields.names_connection |= name.eq_ignore_ascii_case(b"Connection");
                fields.set.push((name, value));
            }
        }
        Ok(fields)
    }
}

/// Appends the target: the one that the client wrote where it still holds, else the path with its
/// part for the location replaced.
pub(super) fn write_target(exchange: &Exchange, path: &Path<'_>, out: &mut Vec<u8>) {
    let Some(location) = path.location else {
        push_visible(path.written, out);
        return;
    };
    let origin = exchange.request().head().origin();
    // An absolute form may have a query and no path, which is "/" then (RFC 9112 section 3.2.1).
    if path.written.is_empty() && exchange.walk.target_holds() && origin.starts_with(b"/") {
        push_visible(origin, out);
        return;
    }
    let mut rest = exchange.walk.path();
    if exchange.walk.location_holds() && !path.written.is_empty() {
        push_visible(path.written, out);
        rest = rest.get(location.len()..).unwrap_or_default();
    }
    let decoded = exchange.walk.is_internal()
        || memchr::memchr(b'%', exchange.request().head().path()).is_some();
    if decoded {
        target::escape(rest, Escape::Path, out);
    } else {
        push_visible(rest, out);
    }
    if !exchange.walk.query().is_empty() {
        out.push(b'?');
        push_visible(exchange.walk.query(), out);
    }
}

/// Spaces and control bytes would end the target early: variables may have brought them in.
fn push_visible(text: &[u8], out: &mut Vec<u8>) {
    if target::needs_escaping(text, Escape::Target) {
        target::escape(text, Escape::Target, out);
    } else {
        out.extend_from_slice(text);
    }
}

/// What is to be known of a head that was written.
pub(super) struct Written {
    method: Method,
    /// Whether it announces that its connection is closed after the response (RFC 9112 section
    /// 9.6).
    says_close: bool,
}

/// Writes the head. `scratch` holds the target; its room is used for other texts behind that.
pub(super) fn write_head(
    exchange: &Exchange,
    origin: &HttpOrigin,
    question: &Question<'_>,
    scratch: &mut Vec<u8>,
    writer: &mut impl RequestWriter,
) -> Written {
    let (request, recorder) = (&origin.request, question.recorder);
    let mut written = Written {
        method: write_line(exchange, request, recorder, scratch, writer),
        says_close: false,
    };
    host(exchange, request, scratch, writer);
    written.says_close = set_fields(exchange, &request.fields.set, scratch, writer);
    if request.version == Version::Http11 {
        upgrade::write(exchange, request.fields.upgrades, scratch, writer);
    }
    match question.framing {
        BodyFraming::Length(length) => writer.number(b"Content-Length", length),
        BodyFraming::Unknown => writer.field(b"Transfer-Encoding", b"chunked"),
        BodyFraming::None => {
            if let Some(length) = &request.fields.length {
                own_length(&length.value(exchange), writer);
            }
        }
    }
    if let Some(recorder) = recorder {
        recorder.fields(exchange, &mut |name, value| {
            writer.field(name.name().as_bytes(), value);
        });
    }
    if question.passing.passes_fields {
        client_fields(exchange, request, recorder, writer);
    }
    if request.is_grpc && !request.fields.names_te && accepts_trailers(exchange) {
        writer.field(b"TE", b"trailers");
    }
    if let Some(name) = &origin.via
        && !request.fields.names_via
    {
        scratch.clear();
        hops::write_via(exchange.request().head().version, name, scratch);
        writer.field(b"Via", scratch);
    }
    written
}

/// Notes what was written.
pub(super) fn note(upstream: &mut Upstream, written: &Written) {
    if let Some(one) = upstream.last_try() {
        one.method = written.method;
        one.said_close = written.says_close;
    }
}

/// Writes the fields that the configuration sets; returns whether they announce that the connection
/// is closed.
fn set_fields(
    exchange: &Exchange,
    fields: &[(Vec<u8>, Template)],
    scratch: &mut Vec<u8>,
    writer: &mut impl RequestWriter,
) -> bool {
    // HTTP/1.0 knows no switching of protocols (RFC 9110 section 7.8), HTTP/2 only that of an
    // extended CONNECT.
    let head = exchange.request().head();
    let may_switch = head.version == Version::Http11 || head.is_extended_connect;
    let mut says_close = false;
    for (name, value) in fields {
        let is_upgrade = name.eq_ignore_ascii_case(b"Upgrade");
        if is_upgrade && !may_switch {
            continue;
        }
        scratch.clear();
        value.evaluate(exchange, scratch);
        if is_upgrade && upgrade::remove_http2(scratch) {
            exchange.log(
                Level::Info,
                format_args!("\"Upgrade: h2c\" is not passed on to the upstream"),
            );
        }
        if !scratch.is_empty() && may_send(exchange, name, scratch) {
            says_close |= name.eq_ignore_ascii_case(b"Connection") && holds_close(scratch);
            writer.field(name, scratch);
        }
    }
    says_close
}

/// Whether options of a connection say that it is closed.
fn holds_close(options: &[u8]) -> bool {
    let mut options = options.split(|byte| *byte == b',');
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// `proxy_set_header Content-Length` of a request without a body: no other number can be right.
fn own_length(value: &[u8], writer: &mut impl RequestWriter) {
    if value == b"0" {
        writer.field(b"Content-Length", b"0");
    }
}

/// Writes the request line; the target is all that `scratch` holds. Returns the method.
fn write_line(
    exchange: &Exchange,
    request: &Request,
    recorder: Option<&dyn Recorder>,
    scratch: &mut Vec<u8>,
    writer: &mut impl RequestWriter,
) -> Method {
    let kept = recorder.and_then(Recorder::method);
    let start = scratch.len();
    match (&request.method, kept) {
        (_, Some(method)) => scratch.extend_from_slice(method.name().as_bytes()),
        (Some(template), None) => template.evaluate(exchange, scratch),
        (None, None) => scratch.extend_from_slice(exchange.method_name()),
    }
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if scratch.len() == start || !scratch[start..].iter().all(is_token) {
        scratch.truncate(start);
        scratch.extend_from_slice(exchange.method_name());
    }
    let (target, method) = scratch.split_at(start);
    writer.line(method, target);
    Method::of(method)
}

/// Writes the host: the one that the configuration sets, or else that of the server. HTTP/1.1 and
/// HTTP/2 need one (RFC 9112 section 3.2, RFC 9113 section 8.3.1), so an empty one counts as none.
fn host(
    exchange: &Exchange,
    request: &Request,
    scratch: &mut Vec<u8>,
    writer: &mut impl RequestWriter,
) {
    let own = exchange.upstream.host();
    scratch.clear();
    match &request.fields.host {
        Some(template) => template.evaluate(exchange, scratch),
        None => scratch.extend_from_slice(own),
    }
    if scratch.trim_ascii().is_empty() || !may_send(exchange, b"Host", scratch) {
        scratch.clear();
    }
    let is_needed = request.version != Version::Http10;
    if scratch.is_empty() && is_needed && !holds_control(own) {
        scratch.extend_from_slice(own);
    }
    if is_needed || !scratch.is_empty() {
        writer.host(scratch);
    }
}

/// Whether a field can be sent; the log says so where it cannot. A line end in a value would begin
/// a field of the client's choice, or another request.
fn may_send(exchange: &Exchange, name: &[u8], value: &[u8]) -> bool {
    if exchange.may_send_value(value) {
        return true;
    }
    let (name, value) = (Quoted(name), Quoted(value));
    exchange.log(
        Level::Error,
        format_args!(
            "header \"{name}\" is left out of the request to the upstream: its value \"{value}\" \
             holds a control character; use a value that is still escaped, as $request_uri is"
        ),
    );
    false
}

/// Whether the client says that it takes trailers.
pub(crate) fn accepts_trailers(exchange: &Exchange) -> bool {
    let mut values = exchange.fields().values(b"TE");
    values.any(|value| {
        let mut codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        codings.any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
    })
}

fn client_fields(
    exchange: &Exchange,
    request: &Request,
    recorder: Option<&dyn Recorder>,
    writer: &mut impl RequestWriter,
) {
    let bytes = exchange.fields().bytes();
    let unconditional = recorder.is_some_and(Recorder::replaces_conditions);
    for field in exchange.fields().spans() {
        let name = field.name.of(bytes);
        if request.fields.replaced.has(field.known, name)
            || (unconditional && CONDITIONS.contains(&field.known))
            || exchange.is_connection_option(name)
        {
            continue;
        }
        let value = field.value.of(bytes);
        if hops::write_lowered(exchange, name, value, writer) || !may_send(exchange, name, value) {
            continue;
        }
        writer.span(bytes, field);
    }
}
