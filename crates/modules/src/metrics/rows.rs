//! The directive.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[Row {
    name: "metrics",
    contexts: &[Context::Server, Context::Location],
    arguments: Arguments::none(),
    value: Value::Custom,
    repeat: Repeat::Once,
    merge: Merge::Own,
    variables: None,
    syntax: "",
    default: "",
    summary: "Answers with all metrics in Prometheus's text format.",
}];
