//! Rows of this family.

use turnpike_conf::{Arguments, Row, Value};

use super::plan::{check_expires, check_mark};

const TEXT: Row = Row {
    value: Value::Text,
    ..Row::PLAIN
};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "userid",
        value: Value::OneOf(&["on", "v1", "log", "off"]),
        syntax: "on | v1 | log | off",
        default: "off",
        summary: "Sets a cookie with an identifier for each client that has none, so that the \
            client can be recognized. `v1` uses the older form of identifiers; `log` only reads \
            cookies and sets none. `$uid_got` is the identifier that the client sent, and \
            `$uid_set` the one that it receives. If `$uid_reset` is set to anything but 0, the \
            client receives a new one. Differs from nginx: the last eight bytes of an identifier \
            are random.",
        ..Row::PLAIN
    },
    Row {
        name: "userid_domain",
        syntax: "name | none",
        default: "none",
        summary: "The domain of the cookie.",
        ..TEXT
    },
    Row {
        name: "userid_expires",
        value: Value::Checked(check_expires),
        syntax: "time | max | off",
        default: "off",
        summary: "How long clients keep the cookie. With `off`, until the browser is closed.",
        ..Row::PLAIN
    },
    Row {
        name: "userid_flags",
        arguments: Arguments::at_least(1),
        value: Value::OneOf(&[
            "off",
            "secure",
            "httponly",
            "samesite=strict",
            "samesite=lax",
            "samesite=none",
        ]),
        syntax: "off | flag ...",
        default: "off",
        summary: "Flags of the cookie: `secure`, `httponly`, `samesite=strict`, `samesite=lax`, \
            `samesite=none`.",
        ..Row::PLAIN
    },
    Row {
        name: "userid_mark",
        value: Value::Checked(check_mark),
        syntax: "letter | digit | = | off",
        default: "off",
        summary: "A character that replaces the padding of the cookie. A client whose cookie lacks \
                  this character receives the cookie again, with the same identifier.",
        ..Row::PLAIN
    },
    Row {
        name: "userid_name",
        syntax: "name",
        default: "uid",
        summary: "The name of the cookie.",
        ..TEXT
    },
    Row {
        name: "userid_p3p",
        syntax: "string | none",
        default: "none",
        summary: "The value of a `P3P` field that is sent with the cookie.",
        ..TEXT
    },
    Row {
        name: "userid_path",
        syntax: "path",
        default: "/",
        summary: "The path of the cookie.",
        ..TEXT
    },
    Row {
        name: "userid_service",
        value: Value::Number,
        syntax: "number",
        summary: "The first number of identifiers, which identifies the server. The default is \
                  the last four bytes of the server's address, or 0 with `v1`.",
        ..Row::PLAIN
    },
];
