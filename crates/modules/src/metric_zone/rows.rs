//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use crate::common::row_tables::in_stream;

const ZONE: Row = Row {
    contexts: &[Context::Http],
    repeat: Repeat::Many,
    merge: Merge::Own,
    ..Row::PLAIN
};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "metric_zone",
        arguments: Arguments::at_least(2),
        syntax: "name:size [expire=on|off] [discard_key=key] mode [parameters]",
        summary: "Declares a zone with a metric of one's own: for each key, what its mode makes of \
            the values that it is given. All lanes share the zone. As in Angie.",
        ..ZONE
    },
    Row {
        name: "metric_complex_zone",
        arguments: Arguments::between(1, 3),
        value: Value::Entries,
        syntax: "name:size [expire=on|off] [discard_key=key]",
        summary: "Declares a zone with several metrics of one's own, each with a name and a mode, \
            which are given the same values. As in Angie.",
        ..ZONE
    },
    Row {
        name: "metric",
        arguments: Arguments::between(2, 3),
        repeat: Repeat::Many,
        variables: Some(1),
        syntax: "zone key=value [on=request|response|end]",
        summary: "Gives the metrics of a zone a value for a key: before the content, when the \
            response is known, or after the request (the default). As in Angie.",
        ..Row::PLAIN
    },
];

/// The same in `stream`.
pub(super) const STREAM: &[Row] = &[
    Row {
        contexts: &[Context::Stream],
        ..ROWS[0]
    },
    Row {
        contexts: &[Context::Stream],
        ..ROWS[1]
    },
    Row {
        syntax: "zone key=value [on=connect|preread|end]",
        summary: "Gives the metrics of a zone a value for a key: when a session begins, when its \
            first bytes are known, or after it (the default). As in Angie.",
        ..in_stream(ROWS[2])
    },
];
