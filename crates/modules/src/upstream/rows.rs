//! Rows of groups of servers.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

const PLAIN: Row = Row {
    contexts: &[Context::Upstream],
    merge: Merge::Own,
    ..Row::PLAIN
};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "upstream",
        contexts: &[Context::Http],
        value: Value::Block(Context::Upstream),
        repeat: Repeat::Many,
        syntax: "name",
        summary: "Defines a group of servers that requests can be passed to by its name.",
        ..PLAIN
    },
    Row {
        name: "server",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "address [weight=number] [max_conns=number] [max_fails=number] \
            [fail_timeout=time] [slow_start=time] [backup] [down] [drain] [route=text] [resolve] \
            [service=name]",
        summary: "Adds a server to the group: an address with an optional port, a name with \
            several addresses, or `unix:` and a path. With `resolve` the name is looked up again \
            whenever its addresses may have changed, with `service` by its SRV records. State of \
            a server is shared by all lanes and stays over a reload.",
        ..PLAIN
    },
    Row {
        name: "zone",
        repeat: Repeat::Many,
        arguments: Arguments::between(1, 2),
        syntax: "name [size]",
        summary: "Names the memory in which the state of the group is shared. It always is here, \
            with or without this.",
        ..PLAIN
    },
    Row {
        name: "least_conn",
        arguments: Arguments::none(),
        repeat: Repeat::Many,
        summary: "Passes a request to the server with the fewest requests at the moment for its \
            weight.",
        ..PLAIN
    },
    Row {
        name: "ip_hash",
        arguments: Arguments::none(),
        repeat: Repeat::Many,
        summary: "Passes requests of one client network to one server: by the first three bytes of \
            an IPv4 address, or by a whole IPv6 address.",
        ..PLAIN
    },
    Row {
        name: "hash",
        arguments: Arguments::between(1, 2),
        repeat: Repeat::Many,
        syntax: "key [consistent]",
        summary: "Passes requests with the same key to the same server; with `consistent` a change \
            of the servers moves few keys (ketama).",
        ..PLAIN
    },
    Row {
        name: "random",
        arguments: Arguments::between(0, 2),
        repeat: Repeat::Many,
        syntax: "[two [least_conn | least_time=header | least_time=last_byte]]",
        summary: "Passes a request to any server by its weight; with `two`, to the one of two that \
            has fewer requests, or is quicker.",
        ..PLAIN
    },
    Row {
        name: "least_time",
        arguments: Arguments::between(1, 2),
        repeat: Repeat::Many,
        syntax: "header | last_byte [inflight]",
        summary: "Passes a request to the server that should be done with it first, by its average \
            time until the header or until the end of a response and by its requests at the \
            moment; with `inflight`, by the times of requests under way too.",
        ..PLAIN
    },
    Row {
        name: "sticky",
        arguments: Arguments::at_least(2),
        syntax: "cookie name [expires=time | expires=max] [domain=domain] [httponly] [secure] \
            [samesite=strict|lax|none|$variable] [path=path] | route $variable ... | \
            learn create=$variable lookup=$variable zone=name:size [timeout=time] [header]",
        summary: "Binds the requests of a session to one server: by a cookie that is set, by a \
            route that a variable holds, or by a session identifier that the servers give out.",
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
    Row {
        name: "resolver",
        contexts: &[
            Context::Http,
            Context::Server,
            Context::Location,
            Context::Upstream,
        ],
        arguments: Arguments::at_least(1),
        merge: Merge::Nearest,
        syntax: "address ... [valid=time] [ipv4=on|off] [ipv6=on|off]",
        summary: "Name servers that are asked for the addresses of names while the server runs. \
            Answers hold for as long as they say, or for `valid`.",
        ..PLAIN
    },
    Row {
        name: "resolver_timeout",
        contexts: &[
            Context::Http,
            Context::Server,
            Context::Location,
            Context::Upstream,
        ],
        value: Value::Milliseconds,
        merge: Merge::Nearest,
        syntax: "time",
        default: "30s",
        summary: "How long a name may take to be looked up.",
        ..PLAIN
    },
    Row {
        name: "health_check",
        contexts: &[Context::Location],
        arguments: Arguments::at_least(0),
        syntax: "[interval=time] [jitter=time] [fails=number] [passes=number] [uri=uri] \
            [match=name] [port=number] [mandatory [persistent]] [keepalive_time=time]",
        summary: "Asks every server of the group that the location passes requests to now and \
            then; servers whose answers are not good take no requests. With `keepalive_time` a \
            connection asks again until it is that old. A `mandatory` check must \
            pass before a server takes its first one.",
        ..PLAIN
    },
    Row {
        name: "match",
        contexts: &[Context::Http],
        value: Value::Entries,
        repeat: Repeat::Many,
        syntax: "name",
        summary: "Conditions of a good answer to `health_check`: `status 200 301-303`, \
            `status ! 500`, `header Name`, `header ! Name`, `header Name = value`, `!=`, `~`, \
            `!~`, `body ~ regex`, `body !~ regex`, `require $variable ...` (neither empty nor \
            \"0\"; `$upstream_status`, `$upstream_http_...` or `$upstream_cookie_...`). All must \
            hold.",
        ..PLAIN
    },
];
