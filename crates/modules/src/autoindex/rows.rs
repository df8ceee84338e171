//! Rows of this family.

use turnpike_conf::{Row, Value};

const PLAIN: Row = Row {
    value: Value::Flag,
    syntax: "on | off",
    ..Row::PLAIN
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "autoindex",
        default: "off",
        summary: "Lists folders for which no index file is found.",
        ..PLAIN
    },
    Row {
        name: "autoindex_format",
        value: Value::OneOf(&["html", "json", "jsonp", "xml"]),
        syntax: "html | xml | json | jsonp",
        default: "html",
        summary: "The form of a listing. `jsonp` wraps JSON in the function that the argument \
            `callback` names.",
        ..PLAIN
    },
    Row {
        name: "autoindex_localtime",
        default: "off",
        summary: "Shows times of an HTML listing in local time rather than UTC.",
        ..PLAIN
    },
    Row {
        name: "autoindex_exact_size",
        default: "on",
        summary: "Shows sizes of an HTML listing in bytes rather than rounded to K, M and G.",
        ..PLAIN
    },
];
