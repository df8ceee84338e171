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
    summary: "Looks for files, and with a slash at the end for folders, in the given order; the \
        request goes on with the first that exists, else with the last argument.",
}];
