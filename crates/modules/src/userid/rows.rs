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
        summary: "Gives each client a cookie with an identifier by which it is known again, unless \
            it has one. `v1` gives the first form of identifiers; `log` gives none, and only reads \
            cookies. `$uid_got` is the identifier that the client has, `$uid_set` the one that it \
            gets; where `$uid_reset` is set to anything but 0, it gets another one. Differs from \
            nginx: the last eight bytes of an identifier are random.",
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
        summary: "How long clients keep the cookie; with `off`, until they end.",
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
        summary: "A character that takes the place of the cookie's padding. A client whose cookie \
            lacks it gets its cookie again, with the same identifier.",
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
        summary: "The first number of identifiers, which says who gave them: without it, the last \
            four bytes of the server's address, and 0 in the first form.",
        ..Row::PLAIN
    },
];
