//! Rows of the access rules.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

const PLAIN: Row = Row {
    name: "",
    contexts: &[
        Context::Http,
        Context::Server,
        Context::Location,
        Context::LimitExcept,
    ],
    arguments: Arguments::exactly(1),
    value: Value::Custom,
    repeat: Repeat::Many,
    merge: Merge::Nearest,
    syntax: "address | CIDR | unix: | all",
    default: "",
    summary: "",
};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "allow",
        summary: "Lets clients of an address or network in. Rules are asked in the order they \
            are written, and the first that fits decides.",
        ..PLAIN
    },
    Row {
        name: "deny",
        summary: "Keeps clients of an address or network out. Rules are asked in the order they \
            are written, and the first that fits decides.",
        ..PLAIN
    },
];
