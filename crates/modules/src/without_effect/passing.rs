//! Kinds of rows that several modules have.

use turnpike_conf::{Arguments, Repeat, Row, Value};

use super::checks;

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

pub(super) const FIELD: Row = Row {
    repeat: Repeat::Many,
    syntax: "field",
    ..TEXT
};

pub(super) const KEY: Row = Row {
    variables: Some(0),
    syntax: "string",
    ..TEXT
};

pub(super) const BIND: Row = Row {
    arguments: Arguments::between(1, 2),
    value: Value::Checked(checks::bind),
    variables: Some(0),
    syntax: "address [transparent] | off",
    ..Row::PLAIN
};

pub(super) const STORE_ACCESS: Row = Row {
    arguments: Arguments::between(1, 3),
    value: Value::Checked(checks::access),
    syntax: "users:permissions ...",
    ..Row::PLAIN
};

pub(super) const IGNORED: Row = words(
    &[
        "X-Accel-Redirect",
        "X-Accel-Expires",
        "X-Accel-Limit-Rate",
        "X-Accel-Buffering",
        "X-Accel-Charset",
        "Expires",
        "Cache-Control",
        "Set-Cookie",
        "Vary",
    ],
    "field ...",
);

pub(super) const NEXT: Row = words(
    &[
        "error",
        "timeout",
        "invalid_header",
        "non_idempotent",
        "http_500",
        "http_502",
        "http_503",
        "http_504",
        "http_403",
        "http_404",
        "http_429",
        "updating",
        "off",
    ],
    "error | timeout | ... | off",
);

pub(super) const PROTOCOLS: Row = words(
    &["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"],
    "[SSLv2] [SSLv3] [TLSv1] [TLSv1.1] [TLSv1.2] [TLSv1.3]",
);

pub(super) const COMMAND: Row = Row {
    arguments: Arguments::exactly(2),
    repeat: Repeat::Many,
    syntax: "name value",
    ..TEXT
};

pub(super) const CERTIFICATE_CACHE: Row = Row {
    arguments: Arguments::between(1, 3),
    syntax: "off | max=number [inactive=time] [valid=time]",
    ..TEXT
};

/// Words of a list, in any case, as many as you like.
pub(super) const fn words(words: &'static [&'static str], syntax: &'static str) -> Row {
    Row {
        arguments: Arguments::at_least(1),
        value: Value::OneOf(words),
        repeat: Repeat::Many,
        syntax,
        ..Row::PLAIN
    }
}

/// A table of rows: `name => what it is like`, all with one summary.
macro_rules! table {
    ($summary:expr; $($name:expr => $row:expr,)*) => {
        &[$(turnpike_conf::Row { name: $name, summary: $summary, ..$row },)*]
    };
}
pub(super) use table;
