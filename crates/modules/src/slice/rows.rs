//! Rows of this family.

use turnpike_conf::{Row, Value};

pub(super) const ROWS: &[Row] = &[Row {
    name: "slice",
    value: Value::Size,
    syntax: "size",
    default: "0",
    summary: "Requests parts of this size, in bytes, from servers instead of the whole response, \
              and joins them for the client. `$slice_range` must be passed to servers as `Range` \
              and be part of the cache key. If `ETag`, `Last-Modified` or length of a part differ \
              from those of the first one, the response is cut off. 0 requests the whole response.",
    ..Row::PLAIN
}];
