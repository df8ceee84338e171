//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[Row {
    name: "empty_gif",
    contexts: &[Context::Location],
    arguments: Arguments::none(),
    value: Value::Custom,
    repeat: Repeat::Many,
    merge: Merge::Own,
    variables: None,
    syntax: "",
    default: "",
    summary: "Answers with a transparent image of one pixel.",
}];
