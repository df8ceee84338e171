//! The directive.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[Row {
    name: "metrics",
    contexts: &[Context::Server, Context::Location],
    arguments: Arguments::between(0, 1),
    value: Value::Custom,
    repeat: Repeat::Once,
    merge: Merge::Own,
    variables: None,
    syntax: "[by=lane | by=server | by=total]",
    default: "",
    summary: "Answers with all metrics in Prometheus's text format, or as OpenMetrics if the \
        client accepts that: for each lane (the default), for each server, or in total. Servers \
        are counted if a location has by=server.",
}];
