//! Tables of rows made of others.

use turnpike_conf::{Context, Row};

/// The row as servers of `stream` have it.
pub(crate) const fn in_stream(row: Row) -> Row {
    Row {
        contexts: &[Context::Stream, Context::StreamServer],
        ..row
    }
}

/// All rows of a table as servers of `stream` have them.
pub(crate) const fn all_in_stream<const COUNT: usize>(table: &[Row]) -> [Row; COUNT] {
    assert!(table.len() == COUNT, "all rows have a place");
    let mut rows = [Row::PLAIN; COUNT];
    let mut at = 0;
    while at < COUNT {
        rows[at] = in_stream(table[at]);
        at += 1;
    }
    rows
}

/// The rows of two tables as one.
pub(crate) const fn join<const COUNT: usize>(first: &[Row], second: &[Row]) -> [Row; COUNT] {
    assert!(first.len() + second.len() == COUNT, "all rows have a place");
    let mut rows = [Row::PLAIN; COUNT];
    let mut at = 0;
    while at < COUNT {
        rows[at] = if at < first.len() {
            first[at]
        } else {
            second[at - first.len()]
        };
        at += 1;
    }
    rows
}
