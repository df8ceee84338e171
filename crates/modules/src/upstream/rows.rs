//! Rows of groups of servers.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

const PLAIN: Row = Row {
    name: "",
    contexts: &[Context::Upstream],
    arguments: Arguments::exactly(1),
    value: Value::Custom,
    repeat: Repeat::Once,
    merge: Merge::Own,
    syntax: "",
    default: "",
    summary: "",
};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "upstream",
        contexts: &[Context::Http],
        value: Value::Block(Context::Upstream),
        repeat: Repeat::Many,
        syntax: "name { ... }",
        summary: "Defines a group of servers that requests can be passed to by its name.",
        ..PLAIN
    },
    Row {
        name: "server",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "address [weight=number] [max_conns=number] [max_fails=number] \
            [fail_timeout=time] [slow_start=time] [backup] [down] [drain] [route=text]",
        summary: "Adds a server to the group: an address with an optional port, a name with \
            several addresses, or `unix:` and a path. State of a server is shared by all lanes and \
            stays over a reload.",
        ..PLAIN
    },
    Row {
        name: "zone",
        arguments: Arguments::between(1, 2),
        syntax: "name [size]",
        summary: "Names the memory in which the state of the group is shared. It always is here, \
            so this is needed only for servers that are resolved at run time.",
        ..PLAIN
    },
    Row {
        name: "keepalive",
        arguments: Arguments::between(1, 2),
        syntax: "connections [local]",
        default: "32 local",
        summary: "Idle connections that each lane keeps open to the servers of the group; with \
            `local` a connection is used again only by the location that opened it. 0 keeps none.",
        ..PLAIN
    },
    Row {
        name: "keepalive_requests",
        value: Value::Number,
        syntax: "number",
        default: "1000",
        summary: "Requests after which a kept connection is closed.",
        ..PLAIN
    },
    Row {
        name: "keepalive_time",
        value: Value::Milliseconds,
        syntax: "time",
        default: "1h",
        summary: "Age after which a kept connection is closed when its request is over.",
        ..PLAIN
    },
    Row {
        name: "keepalive_timeout",
        value: Value::Milliseconds,
        syntax: "timeout",
        default: "60s",
        summary: "How long an idle connection to a server of the group stays open.",
        ..PLAIN
    },
];
