//! Rows of this family.

use turnpike_conf::{Arguments, Context, Repeat, Row, Value};

use crate::pass::rows::{FLAG_OFF, PASS, PLAIN, SIZE, TIME};
use crate::pass::settings;

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "tunnel_bind",
        value: Value::Checked(settings::check_bind),
        variables: Some(0),
        arguments: Arguments::between(1, 2),
        syntax: "address [transparent] | off",
        summary: "The local address for connections to servers.",
        ..PLAIN
    },
    Row {
        name: "tunnel_buffer_size",
        default: "16k",
        summary: "The number of bytes that are read from a server at a time.",
        ..SIZE
    },
    Row {
        name: "tunnel_connect_timeout",
        summary: "The timeout for connecting to a server.",
        ..TIME
    },
    Row {
        name: "tunnel_next_upstream",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::OneOf(&["error", "timeout", "off"]),
        syntax: "error | timeout | off ...",
        default: "error timeout",
        summary: "The cases in which the next server is tried: a failed connection, or a timeout.",
        ..PLAIN
    },
    Row {
        name: "tunnel_next_upstream_timeout",
        default: "0",
        summary: "The time during which servers are tried; 0 means no limit.",
        ..TIME
    },
    Row {
        name: "tunnel_next_upstream_tries",
        value: Value::Number,
        syntax: "number",
        default: "0",
        summary: "The maximum number of servers that are tried; 0 means no limit.",
        ..PLAIN
    },
    Row {
        name: "tunnel_pass",
        contexts: &[Context::Server, Context::Location, Context::IfInLocation],
        arguments: Arguments::between(0, 1),
        syntax: "[address]",
        default: "$host:$request_port",
        summary: "Opens a tunnel to a server for `CONNECT` of HTTP/1.1, and refuses other methods \
                  with 405. The default address is the one that the client requests. Restrict \
                  clients and addresses (`allow`, `auth_basic`, `map`); otherwise the server is \
                  an open proxy, also into your own network. Locations do not inherit it.",
        ..PASS
    },
    Row {
        name: "tunnel_read_timeout",
        summary: "The maximum pause of a server. After it the tunnel is closed.",
        ..TIME
    },
    Row {
        name: "tunnel_send_lowat",
        default: "0",
        summary: "Accepted for compatibility with nginx, without effect: Linux has no such \
            threshold.",
        ..SIZE
    },
    Row {
        name: "tunnel_send_timeout",
        summary: "The maximum time during which a server receives no data.",
        ..TIME
    },
    Row {
        name: "tunnel_socket_keepalive",
        summary: "Enables TCP keepalive probes on connections to servers.",
        ..FLAG_OFF
    },
    Row {
        name: "tunnel_socket_rcvbuf",
        default: "0",
        summary: "The receive buffer of connections to servers; 0 uses the kernel's default.",
        ..SIZE
    },
    Row {
        name: "tunnel_socket_sndbuf",
        default: "0",
        summary: "The send buffer of connections to servers; 0 uses the kernel's default.",
        ..SIZE
    },
];
