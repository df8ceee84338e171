//! The row of the split_clients family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

/// The family's directive.
pub(super) const ROWS: &[Row] = &[Row {
    name: "split_clients",
    contexts: &[Context::Http],
    arguments: Arguments::exactly(2),
    value: Value::Entries,
    repeat: Repeat::Many,
    merge: Merge::Own,
    variables: None,
    syntax: "string $variable",
    default: "",
    summary: "Defines a variable that splits clients by percentages. Its value depends on the hash \
        of a text.",
}];

/// The same in `stream`.
pub(super) const STREAM: &[Row] = &[Row {
    contexts: &[Context::Stream],
    ..ROWS[0]
}];
