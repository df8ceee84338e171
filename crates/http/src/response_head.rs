//! The response head, whatever protocol it leaves by: nginx's fields in nginx's order.

use std::ops::Range;

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_wire::date;
use turnpike_wire::message::{Digits, Field, Fields, holds_control, reason_phrase};
use turnpike_wire::target::{self, Escape};

use crate::exchange::Exchange;
use crate::response::{Body, FieldPlaces};
use turnpike_plan::Quoted;

/// Writes a head in the form of its protocol: the status first, then field by field.
pub(crate) trait HeadWriter {
    /// The status, and its reason for protocols that have one.
    fn status(&mut self, status: u16, reason: &str);

    fn field(&mut self, name: &str, value: &[u8]);

    /// A field as spans of the bytes that it stands in.
    fn span(&mut self, bytes: &[u8], field: &Field);

    /// The place of fields that are of the connection (RFC 9110 section 7.6.1), where the protocol
    /// has such.
    fn connection(&mut self, _exchange: &Exchange) {}
}

/// What a head is settled by, before it is written, in every protocol: texts that no field may hold
/// are taken out of the response.
pub(crate) fn prepare(exchange: &mut Exchange) {
    exchange.matching_is_late();
    leave_out_controls(exchange);
}

/// Whether the body's length is not known before it ends.
pub(crate) fn has_unknown_length(exchange: &Exchange) -> bool {
    let response = &exchange.response;
    matches!(response.body(), Body::Stream(_) | Body::Text)
        && response.content_length().is_none()
        && !matches!(response.status(), 204 | 304)
}

/// Passes the head of the exchange's response to `writer`.
pub(crate) fn write(exchange: &Exchange, writer: &mut impl HeadWriter) {
    status_and_server(exchange, writer);
    entity(exchange, writer);
    writer.connection(exchange);
    let response = &exchange.response;
    if response.varies_by_coding() {
        writer.field("Vary", b"Accept-Encoding");
    }
    if response.places() == FieldPlaces::default() {
        if !response.etag().is_empty() {
            writer.field("ETag", response.etag());
        }
        if !is_made_absolute(exchange) {
            location(exchange, writer);
        }
        fields(response.fields(), 0..response.fields().len(), writer);
    } else {
        in_an_origins_order(exchange, writer);
    }
    // A 405 of our own names methods (RFC 9110 section 15.5.6): those that everything here has. The
    // configuration may name others.
    if response.status() == 405
        && exchange.walk.error_status() == 405
        && response.fields().values(b"Allow").next().is_none()
    {
        writer.field("Allow", b"GET, HEAD");
    }
}

/// Takes out of the response what no field may hold. Values are made of texts that a client may
/// have chosen (`$uri`, captures), so that a line end in one would begin a field of its own, or
/// another response. This is the one place that every head passes.
fn leave_out_controls(exchange: &mut Exchange) {
    let response = &exchange.response;
    let found = holds_control(response.content_type())
        || holds_control(response.etag())
        || holds_control(response.reason())
        || response.fields().hold_control();
    if found {
        leave_out(exchange);
    }
}

#[cold]
fn leave_out(exchange: &mut Exchange) {
    if !may_send(exchange, b"Content-Type", exchange.response.content_type()) {
        exchange.response.content_type_mut().clear();
    }
    if !may_send(exchange, b"ETag", exchange.response.etag()) {
        exchange.response.etag_mut().clear();
    }
    if holds_control(exchange.response.reason()) {
        // The status says the same.
        exchange.response.reason_mut().clear();
    }
    let mut kept = Fields::default();
    let mut escaped = Vec::new();
    for (name, value) in exchange.response.fields().iter() {
        if name.eq_ignore_ascii_case(b"Location") {
            escaped.clear();
            target::escape(value, Escape::Controls, &mut escaped);
            kept.add(name, &escaped);
        } else if may_send(exchange, name, value) {
            kept.add(name, value);
        }
    }
    *exchange.response.fields_mut() = kept;
}

/// Whether a field can be sent; the log says so where it cannot.
pub(crate) fn may_send(exchange: &Exchange, name: &[u8], value: &[u8]) -> bool {
    if !holds_control(name) && exchange.may_send_value(value) {
        return true;
    }
    let (name, value) = (Quoted(name), Quoted(value));
    exchange.log(
        Level::Error,
        format_args!(
            "header \"{name}\" is left out of the response: its value \"{value}\" holds a control \
             character; use a value that is still escaped, as $request_uri is"
        ),
    );
    false
}

fn status_and_server(exchange: &Exchange, writer: &mut impl HeadWriter) {
    let response = &exchange.response;
    let status = response.status();
    match std::str::from_utf8(response.reason()) {
        Ok(reason) if !reason.is_empty() => writer.status(status, reason),
        _ => writer.status(status, reason_phrase(status)),
    }
    if !response.omitted_fields().server {
        let product = exchange.location().settings.product;
        writer.field("Server", product.as_bytes());
    }
    if !response.omitted_fields().date {
        let date = match response.made_unix_s() {
            Some(seconds) => date::format(seconds),
            None => exchange.lane.clock.http_date(),
        };
        writer.field("Date", &date);
    }
}

fn entity(exchange: &Exchange, writer: &mut impl HeadWriter) {
    let response = &exchange.response;
    if !response.content_type().is_empty() {
        writer.field("Content-Type", response.content_type());
    }
    if let Some(length) = response.content_length()
        && !matches!(response.status(), 100..=199 | 204 | 304)
    {
        writer.field("Content-Length", Digits::of(length).text());
    }
    // An error's page is not what was asked for, so that its time would mislead.
    let is_wanted =
        matches!(response.status(), 200 | 206 | 304) && response.places().last_modified.is_none();
    if let Some(modified) = response.last_modified().filter(|_| is_wanted) {
        writer.field("Last-Modified", &date::format(modified));
    }
    if is_made_absolute(exchange) {
        location(exchange, writer);
    }
}

/// The fields as an origin had them, those among them that are kept apart.
fn in_an_origins_order(exchange: &Exchange, writer: &mut impl HeadWriter) {
    let response = &exchange.response;
    let places = response.places();
    let mut others = [
        (places.etag.unwrap_or_default(), Apart::EntityTag),
        (
            places.last_modified.unwrap_or_default(),
            Apart::LastModified,
        ),
        (places.location.unwrap_or_default(), Apart::Location),
    ];
    others.sort_by_key(|(place, _)| *place);
    let mut written = 0;
    for (place, apart) in others {
        let until = place.fields.clamp(written, response.fields().len());
        fields(response.fields(), written..until, writer);
        written = until;
        match apart {
            Apart::EntityTag if response.etag().is_empty() => {}
            Apart::EntityTag => writer.field("ETag", response.etag()),
            Apart::LastModified => {
                let time = response.last_modified();
                if let Some(time) = time.filter(|_| places.last_modified.is_some()) {
                    writer.field("Last-Modified", &date::format(time));
                }
            }
            Apart::Location if is_made_absolute(exchange) => {}
            Apart::Location => location(exchange, writer),
        }
    }
    fields(response.fields(), written..response.fields().len(), writer);
}

/// The fields of these numbers.
fn fields(fields: &Fields, numbers: Range<usize>, writer: &mut impl HeadWriter) {
    for field in fields.spans().get(numbers).unwrap_or_default() {
        writer.span(fields.bytes(), field);
    }
}

/// Fields that are not among the others of a response.
#[derive(Clone, Copy)]
enum Apart {
    EntityTag,
    LastModified,
    Location,
}

/// Whether Location is a path that gets scheme and host: nginx has it in another place then.
fn is_made_absolute(exchange: &Exchange) -> bool {
    exchange.response.location().starts_with(b"/") && exchange.location().settings.absolute_redirect
}

/// Location, where there is one, with scheme, host and port, where it is a path and
/// `absolute_redirect` asks for them.
fn location(exchange: &Exchange, writer: &mut impl HeadWriter) {
    if exchange.response.location().is_empty() {
        return;
    }
    let mut text = exchange.lane.take_scratch();
    append_location(exchange, &mut text);
    writer.field("Location", &text);
    exchange.lane.keep_scratch(text);
}

/// Appends the value of Location as it is sent.
pub(crate) fn append_location(exchange: &Exchange, out: &mut Vec<u8>) {
    if is_made_absolute(exchange) {
        write_origin(exchange, out);
    }
    target::escape(exchange.response.location(), Escape::Controls, out);
}

/// Scheme, host and port that a path is made absolute with.
fn write_origin(exchange: &Exchange, out: &mut Vec<u8>) {
    let settings = &exchange.location().settings;
    out.extend_from_slice(exchange.scheme().as_bytes());
    out.extend_from_slice(b"://");
    let local = exchange.local_address();
    if settings.server_name_in_redirect {
        out.extend_from_slice(&exchange.server().name);
    } else if !exchange.named_host().0.is_empty() {
        exchange.append_host(out);
    } else if let ListenAddress::Unix(path) = &exchange.listen().address {
        out.extend_from_slice(b"unix:");
        out.extend_from_slice(path);
    } else if let Some(local) = local {
        out.extend_from_slice(local.ip().to_string().as_bytes());
    }
    let port = local.map_or(0, |local| local.port());
    let usual = if exchange.requester.tls().is_some() {
        443
    } else {
        80
    };
    if settings.port_in_redirect && port != 0 && port != usual {
        out.push(b':');
        out.extend_from_slice(Digits::of(u64::from(port)).text());
    }
}
