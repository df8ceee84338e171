//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[Row {
    name: "try_files",
    contexts: &[Context::Server, Context::Location],
    arguments: Arguments::at_least(2),
    value: Value::Custom,
    repeat: Repeat::Once,
    merge: Merge::Own,
    variables: Some(0),
    syntax: "file ... uri | @name | =code",
    default: "",
    summary: "Checks whether files exist, in the given order. A name that ends with a slash is a \
        folder. The request continues with the first match, or otherwise with the last argument.",
}];
