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
        summary: "Defines a named group of servers for `proxy_pass`.",
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
            whenever its addresses may have changed. With `service` the lookup uses SRV records. \
            All lanes share the state of a server, and a reload keeps it.",
        ..PLAIN
    },
    Row {
        name: "state",
        syntax: "file",
        summary: "The file with the servers of the group, `server` lines as in the configuration. \
            It is written when a command changes them, so the serving user must be allowed to \
            write to its folder. While the server runs, only commands should change it. If the \
            file is missing or empty, the group has no servers: requests wait (`queue`) or get \
            503. As in nginx Plus.",
        ..PLAIN
    },
    Row {
        name: "zone",
        repeat: Repeat::Many,
        arguments: Arguments::between(1, 2),
        syntax: "name [size]",
        summary: "Names the memory zone for the shared state of the group. The state is always \
            shared, with or without this directive.",
        ..PLAIN
    },
    Row {
        name: "least_conn",
        arguments: Arguments::none(),
        repeat: Repeat::Many,
        summary: "Passes a request to the server with the fewest active requests in relation to \
            its weight.",
        ..PLAIN
    },
    Row {
        name: "ip_hash",
        arguments: Arguments::none(),
        repeat: Repeat::Many,
        summary: "Passes all requests of a client network to the same server. The network is the \
            first three bytes of an IPv4 address, or the whole IPv6 address.",
        ..PLAIN
    },
    Row {
        name: "hash",
        arguments: Arguments::between(1, 2),
        repeat: Repeat::Many,
        syntax: "key [consistent]",
        summary: "Passes requests with the same key to the same server. With `consistent`, a \
            change of the server list moves only a few keys (ketama).",
        ..PLAIN
    },
    Row {
        name: "random",
        arguments: Arguments::between(0, 2),
        repeat: Repeat::Many,
        syntax: "[two [least_conn | least_time=header | least_time=last_byte]]",
        summary: "Passes a request to a random server, according to its weight. With `two`, two \
            servers are picked, and the request goes to the one with fewer active requests or the \
            shorter response time.",
        ..PLAIN
    },
    Row {
        name: "least_time",
        arguments: Arguments::between(1, 2),
        repeat: Repeat::Many,
        syntax: "header | last_byte [inflight]",
        summary: "Passes a request to the server that should finish it first. The choice depends \
            on the server's active requests and on its average time to the header or to the end of \
            a response. With `inflight`, the times of requests in progress count too.",
        ..PLAIN
    },
    Row {
        name: "sticky",
        arguments: Arguments::at_least(2),
        syntax: "cookie name [expires=time | expires=max] [domain=domain] [httponly] [secure] \
            [samesite=strict|lax|none|$variable] [path=path] | route $variable ... | \
            learn create=$variable lookup=$variable zone=name:size [timeout=time] [header]",
        summary: "Binds the requests of a session to one server: by a cookie that Turnpike sets, \
            by a route in a variable, or by a session identifier that the servers create.",
        ..PLAIN
    },
    Row {
        name: "queue",
        arguments: Arguments::between(1, 2),
        syntax: "number [timeout=time]",
        summary: "Lets a request wait if no server can take it, for instance because all have \
            `max_conns` requests. At most `number` requests of all lanes wait, in the order in \
            which they came, and each for at most `timeout` (60s by default). If the queue is full \
            or the wait times out, the client gets 502. As in nginx Plus.",
        ..PLAIN
    },
    Row {
        name: "retry_budget",
        arguments: Arguments::between(1, 2),
        syntax: "percent [min=number]",
        summary: "Limits how many requests of the group are passed to another server after a \
            failure. Within ten seconds, at most `percent` of the group's requests, such as `20%`, \
            are passed on, counted over all lanes. `min` retries (10 by default) are always \
            allowed. Beyond the limit the client gets the error, so retries cannot overload the \
            servers that still work. A kept connection that its server had already closed does not \
            count as a failure.",
        ..PLAIN
    },
    Row {
        name: "keepalive",
        arguments: Arguments::between(1, 2),
        syntax: "connections [local]",
        default: "32 local",
        summary: "The number of idle connections that each lane keeps open to the servers of the \
            group; 0 keeps none. If the number is above 32, a lane keeps up to twice as many for \
            0.1 s after their requests. With `local`, only the location that opened a connection \
            reuses it.",
        ..PLAIN
    },
    Row {
        name: "keepalive_requests",
        value: Value::Number,
        syntax: "number",
        default: "1000",
        summary: "The number of requests after which a kept connection is closed.",
        ..PLAIN
    },
    Row {
        name: "keepalive_time",
        value: Value::Milliseconds,
        syntax: "time",
        default: "1h",
        summary: "The age after which a kept connection is closed at the end of its request.",
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
        syntax: "address ... | conf[=file] | off [valid=time] [ipv4=on|off] [ipv6=on|off] \
            [status_zone=zone]",
        summary: "The name servers for looking up names while the server runs, also those of \
            `/etc/resolv.conf` (`conf`, as in Angie). Answers are cached for their own lifetime, \
            or for the time in `valid`.",
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
        summary: "The timeout for looking up a name.",
        ..PLAIN
    },
    Row {
        name: "health_check",
        contexts: &[Context::Location],
        arguments: Arguments::at_least(0),
        syntax: "[interval=time] [jitter=time] [fails=number] [passes=number] [uri=uri] \
            [match=name] [port=number] [mandatory [persistent]] [keepalive_time=time]",
        summary: "Sends periodic check requests to every server of the location's upstream group. \
            Servers that fail the check receive no requests. With `keepalive_time` a check \
            connection is reused up to that age. With `mandatory`, a server must pass a check \
            before it receives its first request.",
        ..PLAIN
    },
    Row {
        name: "match",
        contexts: &[Context::Http],
        value: Value::Entries,
        repeat: Repeat::Many,
        syntax: "name",
        summary: "The conditions that an answer to `health_check` must meet: `status 200 301-303`, \
            `status ! 500`, `header Name`, `header ! Name`, `header Name = value`, `!=`, `~`, \
            `!~`, `body ~ regex`, `body !~ regex`, `require $variable ...` (neither empty nor \
            \"0\"; `$upstream_status`, `$upstream_http_...` or `$upstream_cookie_...`). All \
            conditions must be met.",
        ..PLAIN
    },
];
