//! Rows of the access rules.

use turnpike_conf::{Context, Repeat, Row, Value};

use super::plan;

const PLAIN: Row = Row {
    contexts: &[
        Context::Http,
        Context::Server,
        Context::Location,
        Context::LimitExcept,
    ],
    repeat: Repeat::Many,
    syntax: "address | CIDR | unix: | all",
    ..Row::PLAIN
};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "allow",
        value: Value::Checked(plan::check),
        summary: "Lets clients of an address or network in. Rules are asked in the order they \
            are written, and the first that fits decides.",
        ..PLAIN
    },
    Row {
        name: "deny",
        value: Value::Checked(plan::check),
        summary: "Keeps clients of an address or network out. Rules are asked in the order they \
            are written, and the first that fits decides.",
        ..PLAIN
    },
];
