//! What this family does with a request.

use std::sync::Arc;

use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Logger, Verdict};
use turnpike_http::variables::{Template, VariableRow, append_named};
use turnpike_wire::hex;

use super::context::{Trace, TraceContext};
use super::exporter::Exporter;
use super::message::{self, Attribute, Message, SPAN_ATTRIBUTES, Times};

/// The variables.
pub(super) const VARIABLES: &[VariableRow] = &[
    VariableRow {
        name: "otel_trace_id",
        get: |exchange, out| put(own(exchange).map(|own| &own.trace[..]), out),
        set: None,
        summary: "The ID of the request's trace, in 32 hexadecimal digits.",
    },
    VariableRow {
        name: "otel_span_id",
        get: |exchange, out| put(own(exchange).map(|own| &own.span[..]), out),
        set: None,
        summary: "The ID of the request's span, in 16 hexadecimal digits.",
    },
    VariableRow {
        name: "otel_parent_id",
        get: |exchange, out| put(parent(exchange).map(|parent| &parent.span[..]), out),
        set: None,
        summary: "The ID of the parent span, in 16 hexadecimal digits.",
    },
    VariableRow {
        name: "otel_parent_sampled",
        get: |exchange, out| {
            let is_sampled = parent(exchange).is_some_and(|parent| parent.is_sampled);
            out.push(if is_sampled { b'1' } else { b'0' });
            true
        },
        set: None,
        summary: "`1` if the parent span is sampled, otherwise `0`.",
    },
];

fn own(exchange: &Exchange) -> Option<&TraceContext> {
    exchange.rooms.get::<Trace>()?.own.as_ref()
}

fn parent(exchange: &Exchange) -> Option<&TraceContext> {
    exchange.rooms.get::<Trace>()?.parent.as_ref()
}

fn put(number: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(hex::text(number.unwrap_or_default()).as_bytes());
    number.is_some()
}

/// What the directives of a location say.
pub(super) struct Settings {
    pub(super) trace: Option<Template>,
    pub(super) extracts: bool,
    pub(super) injects: bool,
    pub(super) span_name: Option<Template>,
    pub(super) attributes: Vec<(String, Template)>,
    pub(super) exporter: Option<Arc<Exporter>>,
}

/// Begins the span of a request.
pub(super) struct Begin(pub(super) Arc<Settings>);

impl Handler for Begin {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        // An internal redirect changes no decision, and a subrequest has its request's span.
        if exchange.walk.is_internal() {
            return Verdict::Declined;
        }
        let settings = &self.0;
        if own(exchange).is_none() {
            let parent = if settings.extracts {
                received(exchange)
            } else {
                None
            };
            let own = TraceContext::begin(parent.as_ref());
            *exchange.rooms.get_mut::<Trace>() = Trace { own, parent };
        }
        let mut value = exchange.lane.take_scratch();
        value.clear();
        if let Some(template) = &settings.trace {
            template.evaluate(exchange, &mut value);
        }
        let is_sampled = matches!(&*value, b"on" | b"1");
        exchange.lane.keep_scratch(value);
        let Some(own) = &mut exchange.rooms.get_mut::<Trace>().own else {
            return Verdict::Declined;
        };
        own.is_sampled = is_sampled;
        if settings.injects {
            let (text, state) = (own.text(), own.state.clone());
            exchange.change_fields(|fields| {
                fields.remove(b"traceparent");
                fields.remove(b"tracestate");
                fields.add(b"traceparent", text.as_bytes());
                if !state.is_empty() {
                    fields.add(b"tracestate", &state);
                }
            });
        }
        Verdict::Declined
    }
}

/// The context that the client has sent. Several fields of `traceparent` are none (W3C Trace
/// Context, section 4.3); those of `tracestate` are one list.
fn received(exchange: &Exchange) -> Option<TraceContext> {
    let fields = exchange.fields();
    let mut parents = fields.values(b"traceparent");
    let (parent, None) = (parents.next()?, parents.next()) else {
        return None;
    };
    let states: Vec<&[u8]> = fields.values(b"tracestate").collect();
    TraceContext::parse(parent, &states.join(&b","[..]))
}

/// Ends the span of a request.
pub(super) struct End(pub(super) Arc<Settings>);

impl Logger for End {
    fn log(&self, exchange: &Exchange) {
        let (Some(own), Some(exporter)) = (own(exchange), &self.0.exporter) else {
            return;
        };
        if !own.is_sampled || exchange.purpose() != Purpose::Request {
            return;
        }
        let clock = &exchange.lane.clock;
        let end_ms = clock.unix_ms();
        let took_ms = clock.now_ms().saturating_sub(exchange.account.started_ms());
        let times = Times {
            start_ns: end_ms.saturating_sub(took_ms) * 1_000_000,
            end_ns: end_ms * 1_000_000,
        };
        let mut name = Vec::new();
        match &self.0.span_name {
            Some(template) => template.evaluate(exchange, &mut name),
            None => name.extend_from_slice(&exchange.location().name),
        }
        let failed = number(exchange, "status").is_some_and(|status| status >= 500);
        let parent = parent(exchange).map(|parent| parent.span);
        exporter.add(message::span(own, parent, &name, &times, failed, |span| {
            add_usual(exchange, span);
            self.add_own(exchange, span);
        }));
    }
}

impl End {
    fn add_own(&self, exchange: &Exchange, span: &mut Message) {
        let mut value = Vec::new();
        for (name, template) in &self.0.attributes {
            value.clear();
            template.evaluate(exchange, &mut value);
            let is_field = ["http.request.header.", "http.response.header."]
                .iter()
                .any(|start| name.starts_with(start));
            let attribute = if is_field {
                Attribute::Texts(&value)
            } else {
                Attribute::Text(&value)
            };
            span.attribute(SPAN_ATTRIBUTES, name, attribute);
        }
    }
}

/// A variable as a number.
fn number(exchange: &Exchange, variable: &str) -> Option<u64> {
    let mut text = Vec::new();
    append_named(exchange, variable, &mut text).then_some(())?;
    std::str::from_utf8(&text).ok()?.parse().ok()
}

/// The attributes that every span has, and the variables that have their values: those of the
/// semantic conventions for HTTP 1.16, as in nginx's module.
const TEXTS: &[(&str, &str)] = &[
    ("http.method", "request_method"),
    ("http.target", "request_uri"),
    ("http.scheme", "scheme"),
    ("http.user_agent", "http_user_agent"),
    ("net.sock.peer.addr", "remote_addr"),
];

const NUMBERS: &[(&str, &str)] = &[
    ("http.response_content_length", "body_bytes_sent"),
    ("http.status_code", "status"),
    ("net.sock.peer.port", "remote_port"),
];

fn add_usual(exchange: &Exchange, span: &mut Message) {
    let mut add = |name: &str, value: Attribute<'_>| span.attribute(SPAN_ATTRIBUTES, name, value);
    let mut value = Vec::new();
    for (name, variable) in TEXTS {
        value.clear();
        if append_named(exchange, variable, &mut value) {
            add(name, Attribute::Text(&value));
        }
    }
    for (name, variable) in NUMBERS {
        if let Some(number) = number(exchange, variable).filter(|number| *number > 0) {
            add(name, Attribute::Number(number));
        }
    }
    let length = number(exchange, "content_length").unwrap_or_default();
    add("http.request_content_length", Attribute::Number(length));
    let route = &exchange.location().name;
    if !route.is_empty() {
        add("http.route", Attribute::Text(route));
    }
    value.clear();
    append_named(exchange, "server_protocol", &mut value);
    if let Some(version) = value.strip_prefix(b"HTTP/") {
        add("http.flavor", Attribute::Text(version));
    }
    let named = &exchange.server().name;
    let mut host = named.to_vec();
    if named.is_empty() {
        append_named(exchange, "host", &mut host);
    }
    add("net.host.name", Attribute::Text(&host));
    value.clear();
    append_named(exchange, "scheme", &mut value);
    let usual = if value == b"https" { 443 } else { 80 };
    if let Some(port) = number(exchange, "server_port").filter(|port| *port != usual) {
        add("net.host.port", Attribute::Number(port));
    }
}
