//! Rows of this family.

use turnpike_conf::{Row, Value};

pub(super) const ROWS: &[Row] = &[Row {
    name: "slice",
    value: Value::Size,
    syntax: "size",
    default: "0",
    summary: "Asks servers for parts of this size, in bytes, in place of the whole, and puts them \
        together for the client. `$slice_range` has to be passed to servers as `Range`, and to be \
        part of the key of a cache. A part whose `ETag`, `Last-Modified` or length differs from \
        those of the first one ends the response. 0 asks for the whole.",
    ..Row::PLAIN
}];
