//! Rows of this family.

use turnpike_conf::{Row, Value};

pub(super) const ROWS: &[Row] = &[Row {
    name: "if_modified_since",
    value: Value::OneOf(&["off", "exact", "before"]),
    syntax: "off | exact | before",
    default: "exact",
    summary: "How If-Modified-Since is compared with a file's modification time.",
    ..Row::PLAIN
}];
