//! Rows of the client's real address.

use turnpike_conf::{Context, Repeat, Row, Value};

const PLAIN: Row = Row::PLAIN;

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "set_real_ip_from",
        repeat: Repeat::Many,
        syntax: "address | CIDR | hostname | unix:",
        summary: "Trusts the client addresses that proxies of this address or network send.",
        ..PLAIN
    },
    Row {
        name: "real_ip_header",
        syntax: "field | X-Real-IP | X-Forwarded-For | proxy_protocol",
        default: "X-Real-IP",
        summary: "Names the request header field that holds the client's address.",
        ..PLAIN
    },
    Row {
        name: "real_ip_recursive",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Uses the last address in the field that does not belong to a trusted proxy, \
            instead of the last address.",
        ..PLAIN
    },
];

/// The directive in `stream`, where the address is always in the PROXY protocol header.
pub(super) const STREAM: &[Row] = &[Row {
    contexts: &[Context::Stream, Context::StreamServer],
    summary: "Trusts the client addresses in the PROXY protocol headers of this address or \
        network.",
    ..ROWS[0]
}];
