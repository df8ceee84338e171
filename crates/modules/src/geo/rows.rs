//! The row of the geo family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

/// The family's directive.
pub(super) const ROWS: &[Row] = &[Row {
    name: "geo",
    contexts: &[Context::Http],
    arguments: Arguments::between(1, 2),
    value: Value::Entries,
    repeat: Repeat::Many,
    merge: Merge::Own,
    variables: None,
    syntax: "[$address] $variable",
    default: "",
    summary: "Defines a variable whose value depends on the client's address or on another \
        address.",
}];

/// The same in `stream`.
pub(super) const STREAM: &[Row] = &[Row {
    contexts: &[Context::Stream],
    ..ROWS[0]
}];
