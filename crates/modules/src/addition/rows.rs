//! Rows of this family.

use turnpike_conf::{Arguments, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "add_after_body",
        value: Value::Text,
        syntax: "uri",
        summary: "Adds the response of a subrequest for this path after the body of a response. An \
            empty string cancels the directive of an outer level.",
        ..Row::PLAIN
    },
    Row {
        name: "add_before_body",
        value: Value::Text,
        syntax: "uri",
        summary: "Adds the response of a subrequest for this path before the body of a response. \
            An empty string cancels the directive of an outer level.",
        ..Row::PLAIN
    },
    Row {
        name: "addition_types",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "mime-type ...",
        default: "text/html",
        summary: "The content types of responses to which text is added, besides `text/html`. `*` \
            means all. Differs from nginx: nothing is added to a body that is compressed already \
            (`Content-Encoding`).",
        ..Row::PLAIN
    },
];
