//! The directives of the core of `stream`.

use turnpike_conf::{Arguments, Context, Merge, ReferenceText, Repeat, Row, Value};

const PLAIN: Row = Row {
    contexts: &[Context::Stream, Context::StreamServer],
    ..Row::PLAIN
};

const TABLE: Row = Row {
    contexts: &[Context::Stream],
    value: Value::Number,
    merge: Merge::Own,
    syntax: "size",
    ..Row::PLAIN
};

/// What people wrote about the directives.
pub const REFERENCE: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

/// The directives.
pub const ROWS: &[Row] = &[
    Row {
        name: "stream",
        contexts: &[Context::Main],
        arguments: Arguments::none(),
        value: Value::Block(Context::Stream),
        merge: Merge::Own,
        summary: "Holds the servers that proxy TCP connections and UDP datagrams.",
        ..PLAIN
    },
    Row {
        name: "server",
        contexts: &[Context::Stream],
        arguments: Arguments::none(),
        value: Value::Block(Context::StreamServer),
        repeat: Repeat::Many,
        merge: Merge::Own,
        summary: "Configures a server for the connections to one or more addresses.",
        ..PLAIN
    },
    Row {
        name: "listen",
        contexts: &[Context::StreamServer],
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "address:port [default_server] [ssl] [udp] [proxy_protocol] \
            [fastopen=number] [backlog=number] [rcvbuf=size] [sndbuf=size] \
            [reuseport[=hash|steer]] [multipath] [ipv6only=on|off] \
            [so_keepalive=on|off|[idle]:[interval]:[count]] [bind] [deferred]",
        summary: "Listens on an address and port, or on a unix socket. With `udp` the server \
            receives datagrams, and the datagrams of one client form a session. If several servers \
            share an address, the name that a TLS client sends selects the server; \
            `default_server` serves clients that send none.",
        ..PLAIN
    },
    Row {
        name: "server_name",
        contexts: &[Context::StreamServer],
        arguments: Arguments::at_least(1),
        value: Value::Custom,
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "name ...",
        summary: "Names of a virtual server: an exact name, a name with a wildcard at the start or \
            the end, or a regular expression after a tilde. The name comes from the TLS hello, \
            with `listen ... ssl` or `ssl_preread`.",
        ..PLAIN
    },
    Row {
        name: "server_names_hash_max_size",
        default: "512",
        summary: "Accepted, without effect: the size limit of nginx's table of names. Turnpike's \
            table needs no limit.",
        ..TABLE
    },
    Row {
        name: "server_names_hash_bucket_size",
        default: "64",
        summary: "Accepted, without effect: the bucket size of nginx's table of names. Turnpike's \
            table has no buckets to set.",
        ..TABLE
    },
    Row {
        name: "preread_buffer_size",
        value: Value::Size,
        syntax: "size",
        default: "16k",
        summary: "The size of the buffer for data that is read before a connection is passed on.",
        ..PLAIN
    },
    Row {
        name: "preread_timeout",
        value: Value::Milliseconds,
        syntax: "time",
        default: "30s",
        summary: "The timeout of the preread phase.",
        ..PLAIN
    },
    Row {
        name: "proxy_protocol_timeout",
        value: Value::Milliseconds,
        syntax: "time",
        default: "30s",
        summary: "The timeout for reading the whole PROXY protocol header.",
        ..PLAIN
    },
    Row {
        name: "tcp_nodelay",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Sends small amounts of data at once, to clients and to servers (TCP_NODELAY).",
        ..PLAIN
    },
    Row {
        name: "variables_hash_max_size",
        default: "1024",
        summary: "Accepted, without effect: the size limit of nginx's table of variables.",
        ..TABLE
    },
    Row {
        name: "variables_hash_bucket_size",
        default: "64",
        summary: "Accepted, without effect: the bucket size of nginx's table of variables.",
        ..TABLE
    },
];
