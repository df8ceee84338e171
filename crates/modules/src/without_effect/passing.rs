//! Kinds of rows that several modules have.

use turnpike_conf::{Row, Value};

pub(super) const ONE: Row = Row::PLAIN;

pub(super) const TEXT: Row = Row {
    value: Value::Text,
    syntax: "value",
    ..Row::PLAIN
};

pub(super) const FLAG: Row = Row {
    value: Value::Flag,
    syntax: "on | off",
    ..Row::PLAIN
};

pub(super) const TIME: Row = Row {
    value: Value::Milliseconds,
    syntax: "time",
    ..Row::PLAIN
};

pub(super) const SIZE: Row = Row {
    value: Value::Size,
    syntax: "size",
    ..Row::PLAIN
};

pub(super) const NUMBER: Row = Row {
    value: Value::Number,
    syntax: "number",
    ..Row::PLAIN
};

pub(super) const KEY: Row = Row {
    variables: Some(0),
    syntax: "string",
    ..TEXT
};

/// A table of rows: `name => what it is like`, all with one summary.
macro_rules! table {
    ($summary:expr; $($name:expr => $row:expr,)*) => {
        &[$(turnpike_conf::Row { name: $name, summary: $summary, ..$row },)*]
    };
}
pub(super) use table;
