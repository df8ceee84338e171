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
        summary: "As in the module headers-more: sets fields of responses with any status and \
                  replaces existing ones, also `Server`, `Content-Type` and similar ones. An \
                  empty value removes the field. `-t` and `-s` limit this to responses with these \
                  content types and statuses; `-a` adds a field and keeps others of that name. \
                  Directives of outer levels come first. Differs from the module: \
                  `Content-Length`, `Transfer-Encoding` and fields of the connection are refused.",
        ..CHANGE
    },
    Row {
        name: "more_clear_headers",
        syntax: "[-t types] [-s statuses] name ...",
        summary: "As in the module headers-more: removes fields from responses. A name may end \
                  with `*`, which stands for any letters.",
        ..CHANGE
    },
    Row {
        name: "more_set_input_headers",
        syntax: "[-r] [-t types] 'name: value' ...",
        summary: "As in the module headers-more: sets fields of requests at the end of rewriting, \
                  so all later steps and upstream servers see them. `-t` limits this to requests \
                  with these content types; with `-r` only existing fields are set. `Host` is the \
                  host of the request then (`$host`); its server stays.",
        ..CHANGE
    },
    Row {
        name: "more_clear_input_headers",
        syntax: "[-t types] name ...",
        summary: "As in the module headers-more: removes fields from requests. A name may end \
                  with `*`, which stands for any letters.",
        ..CHANGE
    },
];
