//! Rows of this family.

use turnpike_conf::{Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "mirror",
        value: Value::Text,
        repeat: Repeat::Many,
        syntax: "uri | off",
        default: "off",
        summary: "Sends a copy of the request to this path by a subrequest in the background, and \
            ignores its answer. Several paths get a copy each. Differs from nginx: the next \
            request on the connection does not wait for the copies. A lane has at most 1024 \
            requests in the background; beyond that copies are left out, and an error is logged.",
        ..Row::PLAIN
    },
    Row {
        name: "mirror_request_body",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Reads the request body before the request continues, so that the copies have it \
            too. With `off`, the copies have no body.",
        ..Row::PLAIN
    },
];
