//! Rows of this family.

use turnpike_conf::{Row, Value};

pub(super) const ROWS: &[Row] = &[Row {
    name: "max_ranges",
    value: Value::Number,
    syntax: "number",
    summary: "The maximum number of ranges in one request; 0 disables ranges.",
    ..Row::PLAIN
}];
