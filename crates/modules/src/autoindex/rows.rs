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
        summary: "Lists the content of folders that have no index file.",
        ..PLAIN
    },
    Row {
        name: "autoindex_format",
        value: Value::OneOf(&["html", "json", "jsonp", "xml"]),
        syntax: "html | xml | json | jsonp",
        default: "html",
        summary: "The format of a listing. `jsonp` wraps the JSON in a function call. The query \
            argument `callback` names the function.",
        ..PLAIN
    },
    Row {
        name: "autoindex_localtime",
        default: "off",
        summary: "Shows the times of an HTML listing in local time instead of UTC.",
        ..PLAIN
    },
    Row {
        name: "autoindex_exact_size",
        default: "on",
        summary: "Shows the sizes of an HTML listing in bytes instead of rounded to K, M and G.",
        ..PLAIN
    },
];
