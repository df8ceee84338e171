//! Rows of the limit of rates.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

const PLAIN: Row = Row::PLAIN;

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "limit_req_zone",
        variables: Some(0),
        contexts: &[Context::Http],
        arguments: Arguments::exactly(3),
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "key zone=name:size rate=rate",
        summary: "Declares a zone that measures the request rate for each key. The rate is `Nr/s` \
            or `Nr/m`. Requests with an empty key are not counted. All lanes share the zone, and \
            every request is counted once. Lanes read the time once per turn, so a bucket may be \
            off by the requests that its rate allows during one turn.",
        ..PLAIN
    },
    Row {
        name: "limit_req",
        arguments: Arguments::between(1, 3),
        repeat: Repeat::Many,
        syntax: "zone=name [burst=N] [nodelay | delay=N]",
        summary: "Limits requests to the rate of a zone. Requests above the rate are delayed, up \
            to the size of the burst. Requests beyond the burst are rejected.",
        ..PLAIN
    },
    Row {
        name: "limit_req_log_level",
        value: Value::OneOf(&["info", "notice", "warn", "error"]),
        syntax: "info | notice | warn | error",
        default: "error",
        summary: "The log level for rejected requests. Delays are logged one level below it.",
        ..PLAIN
    },
    Row {
        name: "limit_req_status",
        value: Value::Number,
        syntax: "code",
        default: "503",
        summary: "The status code for rejected requests.",
        ..PLAIN
    },
    Row {
        name: "limit_req_dry_run",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Counts and logs requests above the limit, but neither delays nor rejects them.",
        ..PLAIN
    },
];
