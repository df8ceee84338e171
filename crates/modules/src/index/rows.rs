//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[Row {
    name: "index",
    contexts: &[Context::Http, Context::Server, Context::Location],
    arguments: Arguments::at_least(1),
    value: Value::Custom,
    repeat: Repeat::Many,
    merge: Merge::Nearest,
    variables: Some(0),
    syntax: "file ...",
    default: "index.html",
    summary: "The index files of a folder. The first file that exists is used. The last one may be \
        an absolute path, which is used without a check.",
}];
