//! Rows of the limit of concurrency.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use crate::common::row_tables::in_stream;

const PLAIN: Row = Row::PLAIN;

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "limit_conn_zone",
        variables: Some(0),
        contexts: &[Context::Http],
        arguments: Arguments::exactly(2),
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "key zone=name:size",
        summary: "Declares a zone that counts the requests in progress for each key. Requests with \
            an empty key are not counted. All lanes share the zone, and its counts are exact.",
        ..PLAIN
    },
    Row {
        name: "limit_conn",
        arguments: Arguments::exactly(2),
        repeat: Repeat::Many,
        syntax: "zone number",
        summary: "Limits the number of requests in progress for one key.",
        ..PLAIN
    },
    Row {
        name: "limit_conn_log_level",
        value: Value::OneOf(&["info", "notice", "warn", "error"]),
        syntax: "info | notice | warn | error",
        default: "error",
        summary: "The log level for rejected requests.",
        ..PLAIN
    },
    Row {
        name: "limit_conn_status",
        value: Value::Number,
        syntax: "code",
        default: "503",
        summary: "The status code for rejected requests.",
        ..PLAIN
    },
    Row {
        name: "limit_conn_dry_run",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Counts and logs requests above the limit, but does not reject them.",
        ..PLAIN
    },
];

/// The same in `stream`. A refused session has status 503.
pub(super) const STREAM: &[Row] = &[
    Row {
        contexts: &[Context::Stream],
        summary: "Declares a zone that counts the sessions of each key. Sessions with an empty key \
            are not counted. All lanes share the zone, and its counts are exact.",
        ..ROWS[0]
    },
    Row {
        summary: "Limits the number of sessions of one key.",
        ..in_stream(ROWS[1])
    },
    Row {
        summary: "The log level for rejected sessions.",
        ..in_stream(ROWS[2])
    },
    Row {
        summary: "Counts and logs sessions above the limit, but does not reject them.",
        ..in_stream(ROWS[4])
    },
];
