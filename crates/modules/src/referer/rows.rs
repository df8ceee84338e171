//! Rows of the referer family.

use turnpike_conf::{Arguments, Context, Repeat, Row, Value};

const PLAIN: Row = Row {
    contexts: &[Context::Server, Context::Location],
    value: Value::Number,
    syntax: "size",
    ..Row::PLAIN
};

/// The family's directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "valid_referers",
        arguments: Arguments::at_least(1),
        value: Value::Custom,
        repeat: Repeat::Many,
        syntax: "none | blocked | server_names | name[/path] | ~regex ...",
        summary: "The valid values of the Referer field. `$invalid_referer` is 1 for all others.",
        ..PLAIN
    },
    Row {
        name: "referer_hash_max_size",
        default: "2048",
        summary: "Accepted, without effect: the size limit of nginx's table. Turnpike's table \
            needs no limit.",
        ..PLAIN
    },
    Row {
        name: "referer_hash_bucket_size",
        default: "64",
        summary: "Accepted, without effect: the bucket size of nginx's table. Turnpike's table has \
            no buckets to set.",
        ..PLAIN
    },
];
