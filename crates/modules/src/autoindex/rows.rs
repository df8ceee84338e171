//! Rows of this family.

use turnpike_conf::{Arguments, Row, Value};

use super::plan::check_frame;

const PLAIN: Row = Row {
    value: Value::Flag,
    syntax: "on | off",
    ..Row::PLAIN
};

const FRAME: Row = Row {
    arguments: Arguments::between(1, 2),
    value: Value::Checked(check_frame),
    syntax: "path [subrequest]",
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
    Row {
        name: "fancyindex",
        default: "off",
        summary: "Lists the content of folders that have no index file, as in the module \
                  fancyindex but in the form of `autoindex`. The module's other directives work \
                  if they are described here.",
        ..PLAIN
    },
    Row {
        name: "fancyindex_css_href",
        value: Value::Text,
        syntax: "href",
        summary: "The style sheet of a listing without a header of its own.",
        ..PLAIN
    },
    Row {
        name: "fancyindex_exact_size",
        default: "on",
        summary: "Shows sizes in bytes instead of rounded to K, M and G.",
        ..PLAIN
    },
    Row {
        name: "fancyindex_footer",
        summary: "Ends a listing with the answer to a subrequest for this path.",
        ..FRAME
    },
    Row {
        name: "fancyindex_header",
        summary: "Begins a listing with the answer to a subrequest for this path, instead of the \
                  page's head and heading.",
        ..FRAME
    },
    Row {
        name: "fancyindex_localtime",
        default: "off",
        summary: "Shows times in local time instead of UTC.",
        ..PLAIN
    },
];
