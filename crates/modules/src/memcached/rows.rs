//! Rows of this family.

use turnpike_conf::{Arguments, Repeat, Row, Value};

use crate::pass::rows::{FLAG_OFF, PASS, PLAIN, SIZE, TIME};
use crate::pass::settings;

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "memcached_bind",
        value: Value::Checked(settings::check_bind),
        variables: Some(0),
        arguments: Arguments::between(1, 2),
        syntax: "address [transparent] | off",
        summary: "The local address for connections to servers.",
        ..PLAIN
    },
    Row {
        name: "memcached_buffer_size",
        default: "4k",
        summary: "Memory for the part of a value that the client has not yet taken. The line \
            before a value must fit into it.",
        ..SIZE
    },
    Row {
        name: "memcached_connect_timeout",
        summary: "The timeout for connecting to a server.",
        ..TIME
    },
    Row {
        name: "memcached_gzip_flag",
        value: Value::Number,
        syntax: "flag",
        default: "0",
        summary: "Sends `Content-Encoding: gzip` with values that have this flag.",
        ..PLAIN
    },
    Row {
        name: "memcached_next_upstream",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::OneOf(&["error", "timeout", "invalid_response", "not_found", "off"]),
        syntax: "error | timeout | invalid_response | not_found | off ...",
        default: "error timeout",
        summary: "The cases in which a request is passed to the next server.",
        ..PLAIN
    },
    Row {
        name: "memcached_next_upstream_timeout",
        default: "0",
        summary: "The time during which a request may be passed to another server; 0 means no \
            limit.",
        ..TIME
    },
    Row {
        name: "memcached_next_upstream_tries",
        value: Value::Number,
        syntax: "number",
        default: "0",
        summary: "The maximum number of servers to which one request is passed; 0 means no limit.",
        ..PLAIN
    },
    Row {
        name: "memcached_pass",
        syntax: "address",
        summary: "Answers requests with the value that a memcached server has for the key in \
            `$memcached_key`. Use `set` or another directive to give this variable a value. The \
            server is an address with a port, the name of an `upstream` block, or `unix:` and a \
            path. The status is 404 if there is no such key, and 405 for methods other than GET \
            and HEAD.",
        ..PASS
    },
    Row {
        name: "memcached_read_timeout",
        summary: "The maximum pause of a server within its answer.",
        ..TIME
    },
    Row {
        name: "memcached_send_timeout",
        summary: "The maximum time during which a server receives no data of a request.",
        ..TIME
    },
    Row {
        name: "memcached_socket_keepalive",
        summary: "Enables TCP keepalive probes on connections to servers.",
        ..FLAG_OFF
    },
];
