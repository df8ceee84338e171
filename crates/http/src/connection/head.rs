//! The response head on the wire: nginx's fields in nginx's order.

use std::ops::Range;

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_wire::date;
use turnpike_wire::h1 as writer;
use turnpike_wire::message::{BodyLength, Fields, Version, holds_control, reason_phrase};
use turnpike_wire::target::{self, Escape};

use crate::exchange::Exchange;
use crate::response::{Body, Places, Response};
use crate::settings::ServerTokens;
use crate::{SERVER_NAME, SERVER_NAME_BUILD, SERVER_NAME_VERSION};
use turnpike_plan::Quoted;

/// Writes the head of the exchange's response into its output, and settles what only the head can
/// settle: whether the body is chunked and whether the connection is kept.
///
/// Returns whether the body is to be sent chunked.
pub(super) fn write(exchange: &mut Exchange) -> bool {
    exchange.matching_is_late();
    leave_out_controls(exchange);
    let mut out = std::mem::take(&mut exchange.output);
    out.clear();
    let has_body = exchange.head.body != BodyLength::None;
    if has_body && exchange.response.status < 300 && exchange.take_expect() {
        out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
    }
    if exchange.lane.ending.get() {
        exchange.keep_alive = false;
    }
    let chunked = settle_framing(exchange);
    exchange.chunked = chunked;
    if exchange.head.version != Version::Http09 {
        status_and_server(exchange, &mut out);
        entity(exchange, &mut out);
        connection(exchange, chunked, &mut out);
        let response = &exchange.response;
        if response.varies_by_coding {
            writer::field(&mut out, "Vary", b"Accept-Encoding");
        }
        if response.places == Places::default() {
            if !response.etag.is_empty() {
                writer::field(&mut out, "ETag", &response.etag);
            }
            if !is_made_absolute(exchange) {
                location(exchange, &mut out);
            }
            write_fields(&response.fields, 0..response.fields.len(), &mut out);
        } else {
            in_an_origins_order(exchange, &mut out);
        }
        if response.status == 405 && exchange.walk.error_status() == 405 {
            allow(response, &mut out);
        }
        writer::end(&mut out);
    }
    // Interim responses were sent before.
    exchange.account.head_written(out.len() as u64);
    exchange.output = out;
    chunked
}

/// Takes out of the response what no field may hold. Values are made of texts that a client may
/// have chosen (`$uri`, captures), so that a line end in one would begin a field of its own, or
/// another response. This is the one place that every head passes.
fn leave_out_controls(exchange: &mut Exchange) {
    let response = &exchange.response;
    let found = holds_control(&response.content_type)
        || holds_control(&response.etag)
        || holds_control(&response.reason)
        || response.fields.hold_control();
    if found {
        leave_out(exchange);
    }
}

#[cold]
fn leave_out(exchange: &mut Exchange) {
    if !may_send(exchange, b"Content-Type", &exchange.response.content_type) {
        exchange.response.content_type.clear();
    }
    if !may_send(exchange, b"ETag", &exchange.response.etag) {
        exchange.response.etag.clear();
    }
    if holds_control(&exchange.response.reason) {
        // The status says the same.
        exchange.response.reason.clear();
    }
    let mut kept = Fields::default();
    let mut escaped = Vec::new();
    for (name, value) in exchange.response.fields.iter() {
        if name.eq_ignore_ascii_case(b"Location") {
            escaped.clear();
            target::escape(value, Escape::Controls, &mut escaped);
            kept.add(name, &escaped);
        } else if may_send(exchange, name, value) {
            kept.add(name, value);
        }
    }
    exchange.response.fields = kept;
}

/// Whether a field can be sent; the log says so where it cannot.
pub(super) fn may_send(exchange: &Exchange, name: &[u8], value: &[u8]) -> bool {
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

/// A body of unknown length is chunked for HTTP/1.1, else it ends with the connection.
fn settle_framing(exchange: &mut Exchange) -> bool {
    if exchange.head.version == Version::Http09 {
        exchange.keep_alive = false;
        return false;
    }
    let response = &exchange.response;
    let streamed = matches!(response.body, Body::Stream(_));
    if response.content_length.is_some() || !streamed || matches!(response.status, 204 | 304) {
        return false;
    }
    let settings = &exchange.location().settings;
    if exchange.head.version == Version::Http11 && settings.chunked_transfer_encoding {
        return true;
    }
    exchange.keep_alive = false;
    false
}

fn status_and_server(exchange: &Exchange, out: &mut Vec<u8>) {
    let status = exchange.response.status;
    let name = match exchange.location().settings.server_tokens {
        ServerTokens::On => SERVER_NAME_VERSION,
        ServerTokens::Off => SERVER_NAME,
        ServerTokens::Build => SERVER_NAME_BUILD,
    };
    match std::str::from_utf8(&exchange.response.reason) {
        Ok(reason) if !reason.is_empty() => {
            writer::status_line(out, Version::Http11, status, reason);
        }
        _ => writer::status_line(out, Version::Http11, status, reason_phrase(status)),
    }
    let unsigned = exchange.response.unsigned;
    if !unsigned.server {
        writer::field(out, "Server", name.as_bytes());
    }
    if !unsigned.date {
        let date = match exchange.response.made {
            Some(seconds) => date::format(seconds),
            None => exchange.lane.clock.http_date(),
        };
        writer::field(out, "Date", &date);
    }
}

fn entity(exchange: &Exchange, out: &mut Vec<u8>) {
    let response = &exchange.response;
    if !response.content_type.is_empty() {
        writer::field(out, "Content-Type", &response.content_type);
    }
    if let Some(length) = response.content_length
        && !matches!(response.status, 100..=199 | 204 | 304)
    {
        writer::number_field(out, "Content-Length", length);
    }
    // An error's page is not what was asked for, so that its time would mislead.
    let is_wanted =
        matches!(response.status, 200 | 206 | 304) && response.places.last_modified.is_none();
    if let Some(modified) = response.last_modified.filter(|_| is_wanted) {
        writer::field(out, "Last-Modified", &date::format(modified));
    }
    if is_made_absolute(exchange) {
        location(exchange, out);
    }
}

/// The fields as an origin had them, those among them that are kept apart.
fn in_an_origins_order(exchange: &Exchange, out: &mut Vec<u8>) {
    let response = &exchange.response;
    let places = response.places;
    let mut others = [
        (places.etag.unwrap_or_default(), Apart::EntityTag),
        (
            places.last_modified.unwrap_or_default(),
            Apart::LastModified,
        ),
        (places.location.unwrap_or_default(), Apart::Location),
    ];
    others.sort_by_key(|(place, _)| *place);
    let fields = &response.fields;
    let mut written = 0;
    for (place, apart) in others {
        let until = place.fields.clamp(written, fields.len());
        write_fields(fields, written..until, out);
        written = until;
        match apart {
            Apart::EntityTag if response.etag.is_empty() => {}
            Apart::EntityTag => writer::field(out, "ETag", &response.etag),
            Apart::LastModified => {
                let time = response.last_modified;
                if let Some(time) = time.filter(|_| places.last_modified.is_some()) {
                    writer::field(out, "Last-Modified", &date::format(time));
                }
            }
            Apart::Location if is_made_absolute(exchange) => {}
            Apart::Location => location(exchange, out),
        }
    }
    write_fields(fields, written..fields.len(), out);
}

/// The fields of these numbers as lines.
fn write_fields(fields: &Fields, numbers: Range<usize>, out: &mut Vec<u8>) {
    for field in fields.spans().get(numbers).unwrap_or_default() {
        writer::write_field(out, fields.bytes(), field);
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
    exchange.response.location.starts_with(b"/") && exchange.location().settings.absolute_redirect
}

fn connection(exchange: &Exchange, chunked: bool, out: &mut Vec<u8>) {
    if chunked {
        writer::field(out, "Transfer-Encoding", b"chunked");
    }
    if exchange.response.status == 101 {
        writer::field(out, "Connection", b"upgrade");
        return;
    }
    if !exchange.keep_alive {
        writer::field(out, "Connection", b"close");
        return;
    }
    writer::field(out, "Connection", b"keep-alive");
    if let Some(seconds) = exchange.location().settings.keepalive_header_s {
        out.extend_from_slice(b"Keep-Alive: timeout=");
        crate::variables::append_number(out, seconds);
        out.extend_from_slice(b"\r\n");
    }
}

/// A 405 of our own names methods (RFC 9110 section 15.5.6): those that everything here has. The
/// configuration may name others.
fn allow(response: &Response, out: &mut Vec<u8>) {
    if response.fields.values(b"Allow").next().is_none() {
        writer::field(out, "Allow", b"GET, HEAD");
    }
}

/// Location, where there is one, with scheme, host and port, where it is a path and
/// `absolute_redirect` asks for them.
fn location(exchange: &Exchange, out: &mut Vec<u8>) {
    let settings = &exchange.location().settings;
    let value = &exchange.response.location;
    if value.is_empty() {
        return;
    }
    out.extend_from_slice(b"Location: ");
    if !is_made_absolute(exchange) {
        target::escape(value, Escape::Controls, out);
        out.extend_from_slice(b"\r\n");
        return;
    }
    out.extend_from_slice(exchange.scheme().as_bytes());
    out.extend_from_slice(b"://");
    let local = exchange.local_address();
    if settings.server_name_in_redirect {
        out.extend_from_slice(&exchange.server().name);
    } else if !exchange.host.is_empty() {
        out.extend_from_slice(&exchange.host);
    } else if let ListenAddress::Unix(path) = &exchange.listen().address {
        out.extend_from_slice(b"unix:");
        out.extend_from_slice(path);
    } else if let Some(local) = local {
        out.extend_from_slice(local.ip().to_string().as_bytes());
    }
    let port = local.map_or(0, |local| local.port());
    let usual = if exchange.tls.is_some() { 443 } else { 80 };
    if settings.port_in_redirect && port != 0 && port != usual {
        out.push(b':');
        crate::variables::append_number(out, u64::from(port));
    }
    target::escape(value, Escape::Controls, out);
    out.extend_from_slice(b"\r\n");
}
