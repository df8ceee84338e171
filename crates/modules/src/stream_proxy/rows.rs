//! Rows of the proxy of `stream`.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use crate::common::row_tables::all_in_stream;
use crate::common::row_tables::join;
use crate::pass::proxy_header::ADDITION_ROW;
use crate::pass::rows::tls_rows;
use crate::pass::settings::check_bind;

const PLAIN: Row = Row {
    contexts: &[Context::Stream, Context::StreamServer],
    ..Row::PLAIN
};

const TIME: Row = Row {
    value: Value::Milliseconds,
    syntax: "time",
    ..PLAIN
};

const FLAG_OFF: Row = Row {
    value: Value::Flag,
    syntax: "on | off",
    default: "off",
    ..PLAIN
};

const RATE: Row = Row {
    variables: Some(0),
    syntax: "rate",
    default: "0",
    ..PLAIN
};

const fn older_buffer_size(name: &'static str) -> Row {
    Row {
        name,
        value: Value::Size,
        syntax: "size",
        summary: "An older name of `proxy_buffer_size`, with a warning. A block may use only one \
            of the names.",
        ..PLAIN
    }
}

const TLS: &[Row] = tls_rows!("proxy", "TLS");

/// The directives.
pub(super) const ROWS: &[Row] =
    &join::<{ OWN.len() + TLS.len() }>(OWN, &all_in_stream::<{ TLS.len() }>(TLS));

/// The rows without those of TLS that HTTP's families have as well.
const OWN: &[Row] = &[
    Row {
        name: "proxy_pass",
        contexts: &[Context::StreamServer],
        merge: Merge::Own,
        variables: Some(0),
        syntax: "address",
        summary: "Passes connections to the server at this address, or to the servers of an \
            `upstream` block of this name.",
        ..PLAIN
    },
    Row {
        name: "proxy_bind",
        variables: Some(0),
        value: Value::Checked(check_bind),
        arguments: Arguments::between(1, 2),
        syntax: "address [transparent] | off",
        summary: "The local address of connections to servers.",
        ..PLAIN
    },
    Row {
        name: "proxy_buffer_size",
        value: Value::Size,
        syntax: "size",
        default: "16k",
        summary: "The size of the buffer for each direction of a session. Bulk data without TLS \
                  and without a rate limit goes through a pipe of the kernel instead.",
        ..PLAIN
    },
    older_buffer_size("proxy_downstream_buffer"),
    older_buffer_size("proxy_upstream_buffer"),
    Row {
        name: "proxy_connect_timeout",
        default: "60s",
        summary: "The maximum time for connecting to a server.",
        ..TIME
    },
    Row {
        name: "proxy_download_rate",
        summary: "The number of bytes per second that are read from a server; 0 means no limit.",
        ..RATE
    },
    Row {
        name: "proxy_half_close",
        summary: "Lets each direction of a session end on its own: the session ends when both \
            have ended.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_next_upstream",
        default: "on",
        summary: "Passes a connection to the next server if a server cannot be reached.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_next_upstream_timeout",
        default: "0",
        summary: "The maximum time in which a connection may be passed to another server; 0 means \
                  no limit.",
        ..TIME
    },
    Row {
        name: "proxy_next_upstream_tries",
        value: Value::Number,
        syntax: "number",
        default: "0",
        summary: "The maximum number of servers to which a connection is passed; 0 means no \
                  limit.",
        ..PLAIN
    },
    Row {
        name: "proxy_protocol",
        value: Value::OneOf(&["on", "off", "v2"]),
        syntax: "on | off | v2",
        default: "off",
        summary: "Begins connections to servers with a PROXY protocol header of version 1 (`on`) \
            or 2 (`v2`).",
        ..PLAIN
    },
    Row {
        contexts: PLAIN.contexts,
        ..ADDITION_ROW
    },
    Row {
        name: "proxy_requests",
        value: Value::Number,
        syntax: "number",
        default: "0",
        summary: "The maximum number of client datagrams in one UDP session. The next one starts a \
            new session. 0 means no limit.",
        ..PLAIN
    },
    Row {
        name: "proxy_responses",
        value: Value::Number,
        syntax: "number",
        summary: "The number of datagrams that the server sends in response to each datagram of \
                  the client. A UDP session ends when they have arrived. Without it a session \
                  ends after `proxy_timeout`.",
        ..PLAIN
    },
    Row {
        name: "proxy_socket_keepalive",
        summary: "Enables TCP keepalive probes on connections to servers.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_ssl",
        summary: "Uses TLS for connections to servers.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_ssl_alpn",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        variables: Some(0),
        syntax: "protocol ...",
        summary: "The protocols that servers may choose by ALPN, the best first. Empty values are \
            not sent.",
        ..PLAIN
    },
    Row {
        name: "proxy_timeout",
        default: "10m",
        summary: "The maximum time without traffic in either direction. After it the session \
                  ends.",
        ..TIME
    },
    Row {
        name: "proxy_upload_rate",
        summary: "The number of bytes per second that are read from a client; 0 means no limit.",
        ..RATE
    },
];
