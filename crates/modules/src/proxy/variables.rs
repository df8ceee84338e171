//! The family's variables.

use turnpike_http::exchange::Exchange;
use turnpike_http::variables::{VariableRow, append_address};
use turnpike_lane::sys::socket::PeerAddress;

use super::forwarded;

pub(super) const ROWS: &[VariableRow] = &[
    VariableRow {
        name: "proxy_add_forwarded",
        get: forwarded::add,
        set: None,
        summary: "The client's Forwarded field (RFC 7239) with the client's address and protocol \
            appended. A field that does not follow the grammar is left out.",
    },
    VariableRow {
        name: "proxy_add_x_forwarded_for",
        get: add_forwarded_for,
        set: None,
        summary: "The client's X-Forwarded-For field with the client's address appended.",
    },
    VariableRow {
        name: "proxy_host",
        get: host,
        set: None,
        summary: "The host and port of `proxy_pass`.",
    },
    VariableRow {
        name: "proxy_port",
        get: port,
        set: None,
        summary: "The port of `proxy_pass`, or the default port of its protocol.",
    },
    VariableRow {
        name: "proxy_internal_body_length",
        get: internal,
        set: None,
        summary: "Always empty: nginx uses it internally for the request to the server.",
    },
    VariableRow {
        name: "proxy_internal_chunked",
        get: internal,
        set: None,
        summary: "Always empty: nginx uses it internally for the request to the server.",
    },
];

/// What only nginx's own template for requests to servers uses.
fn internal(_: &Exchange, _: &mut Vec<u8>) -> bool {
    false
}

fn host(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(exchange.upstream.host());
    !exchange.upstream.host().is_empty()
}

fn port(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(exchange.upstream.port());
    !exchange.upstream.port().is_empty()
}

fn add_forwarded_for(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    for value in exchange.fields().values(b"X-Forwarded-For") {
        out.extend_from_slice(value);
        out.extend_from_slice(b", ");
    }
    match exchange.requester.peer() {
        PeerAddress::Inet(address) => append_address(out, address.ip()),
        PeerAddress::Unix => out.extend_from_slice(b"unix:"),
    }
    true
}
