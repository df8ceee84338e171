//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use super::plan;

const CHANGE: Row = Row {
    contexts: &[
        Context::Http,
        Context::Server,
        Context::Location,
        Context::IfInLocation,
    ],
    arguments: Arguments::at_least(1),
    repeat: Repeat::Many,
    merge: Merge::Own,
    value: Value::Checked(plan::check),
    variables: Some(0),
    ..Row::PLAIN
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "more_set_headers",
        syntax: "[-t types] [-s statuses] [-a] 'name: value' ...",
        summary: "As in the module headers-more: sets fields of responses with any status, in \
            place of what they have, `Server`, `Content-Type` and their like included. An empty \
            value takes the field away. `-t` and `-s` name the content types and statuses of the \
            responses that are meant; `-a` adds a field to others of that name. Directives of \
            outer levels come first. Differs from the module: `Content-Length`, \
            `Transfer-Encoding` and fields of the connection are refused.",
        ..CHANGE
    },
    Row {
        name: "more_clear_headers",
        syntax: "[-t types] [-s statuses] name ...",
        summary: "As in the module headers-more: takes fields away from responses. A name may end \
            with `*`, which stands for any letters.",
        ..CHANGE
    },
    Row {
        name: "more_set_input_headers",
        syntax: "[-r] [-t types] 'name: value' ...",
        summary: "As in the module headers-more: sets fields of requests at the end of rewriting, \
            so that all that comes later sees them, upstream servers included. `-t` names content \
            types of requests; with `-r` only fields that the request has are set. Differs from \
            the module: `$host` stays as the client wrote it.",
        ..CHANGE
    },
    Row {
        name: "more_clear_input_headers",
        syntax: "[-t types] name ...",
        summary: "As in the module headers-more: takes fields away from requests. A name may end \
            with `*`, which stands for any letters.",
        ..CHANGE
    },
];
