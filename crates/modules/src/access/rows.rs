//! Rows of the access rules.

use turnpike_conf::{Context, Repeat, Row, Value};

use super::plan;
use crate::common::row_tables::in_stream;

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
        summary: "Allows access for an address or network. Rules are checked in the order of the \
            configuration, and the first match decides.",
        ..PLAIN
    },
    Row {
        name: "deny",
        value: Value::Checked(plan::check),
        summary: "Denies access for an address or network. Rules are checked in the order of the \
            configuration, and the first match decides.",
        ..PLAIN
    },
];

/// The same in `stream`.
pub(super) const STREAM: &[Row] = &[in_stream(ROWS[0]), in_stream(ROWS[1])];
