//! Rows of this family.

use turnpike_conf::{Arguments, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "sub_filter",
        arguments: Arguments::exactly(2),
        repeat: Repeat::Many,
        variables: Some(0),
        syntax: "string replacement",
        summary: "Replaces a string in responses with another one, ignoring the case of ASCII \
            letters. Both may contain variables; an empty string is not searched. Differs from \
            nginx: a body that is already compressed (`Content-Encoding`) is not changed.",
        ..Row::PLAIN
    },
    Row {
        name: "sub_filter_last_modified",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Keeps the `Last-Modified` field of responses in which strings are replaced.",
        ..Row::PLAIN
    },
    Row {
        name: "sub_filter_once",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Replaces only the first occurrence of each string.",
        ..Row::PLAIN
    },
    Row {
        name: "sub_filter_types",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "mime-type ...",
        default: "text/html",
        summary: "The content types of responses in which strings are replaced, besides \
            `text/html`. `*` means all.",
        ..Row::PLAIN
    },
];
