//! Rows of the map family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

const HTTP: &[Context] = &[Context::Http];

const SIZE: Row = Row {
    contexts: HTTP,
    value: Value::Number,
    merge: Merge::Own,
    syntax: "size",
    ..Row::PLAIN
};

/// The family's directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "map",
        arguments: Arguments::exactly(2),
        value: Value::Entries,
        repeat: Repeat::Many,
        syntax: "string $variable",
        summary: "Defines a variable whose value depends on another value. Values are matched by \
            name, by host name with wildcards, or by regular expression.",
        ..SIZE
    },
    Row {
        name: "num_map",
        arguments: Arguments::exactly(2),
        value: Value::Entries,
        repeat: Repeat::Many,
        syntax: "$number $variable",
        summary: "Defines a variable whose value depends on a whole number: first on the number \
                  itself (`80`), then on the first range that contains it (`<=1023`, `<1024`, \
                  `>=1024`, `>1023`, `8080-8090`), else `default`.",
        ..SIZE
    },
    Row {
        name: "map_hash_max_size",
        default: "2048",
        summary: "Accepted, without effect: the size limit of nginx's table. Turnpike's table \
            needs no limit.",
        ..SIZE
    },
    Row {
        name: "map_hash_bucket_size",
        default: "64",
        summary: "Accepted, without effect: the bucket size of nginx's table. Turnpike's table has \
            no buckets to set.",
        ..SIZE
    },
];

/// The same in `stream`.
pub(super) const STREAM: &[Row] = &[
    in_stream(ROWS[0]),
    in_stream(ROWS[1]),
    in_stream(ROWS[2]),
    in_stream(ROWS[3]),
];

const fn in_stream(row: Row) -> Row {
    Row {
        contexts: &[Context::Stream],
        ..row
    }
}
