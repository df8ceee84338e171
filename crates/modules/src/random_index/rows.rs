//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[Row {
    name: "random_index",
    contexts: &[Context::Location],
    arguments: Arguments::exactly(1),
    value: Value::Flag,
    repeat: Repeat::Once,
    merge: Merge::Nearest,
    variables: None,
    syntax: "on | off",
    default: "off",
    summary: "Answers a request for a folder with a random file from that folder.",
}];
