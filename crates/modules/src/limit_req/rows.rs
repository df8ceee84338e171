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
        summary: "Declares a zone of request rates by key. The rate is `Nr/s` or `Nr/m`. Requests \
            with an empty key are not counted. The zone is one for all lanes, and every request \
            is counted once; lanes read the time once a turn, so a bucket may be wrong by what \
            its rate gives in the length of a turn.",
        ..PLAIN
    },
    Row {
        name: "limit_req",
        arguments: Arguments::between(1, 3),
        repeat: Repeat::Many,
        syntax: "zone=name [burst=N] [nodelay | delay=N]",
        summary: "Limits requests by the rate of a zone. Those above it are delayed, the burst of \
            them being limited too; more are refused.",
        ..PLAIN
    },
    Row {
        name: "limit_req_log_level",
        value: Value::OneOf(&["info", "notice", "warn", "error"]),
        syntax: "info | notice | warn | error",
        default: "error",
        summary: "Level at which refusals are logged; delays are logged one level below.",
        ..PLAIN
    },
    Row {
        name: "limit_req_status",
        value: Value::Number,
        syntax: "code",
        default: "503",
        summary: "Status of refusals.",
        ..PLAIN
    },
    Row {
        name: "limit_req_dry_run",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Counts and logs, but neither delays nor refuses.",
        ..PLAIN
    },
];
