//! Rows of this family.

use turnpike_conf::{Arguments, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "auth_request",
        value: Value::Text,
        syntax: "uri | off",
        default: "off",
        summary: "Asks this path, by a subrequest without a body, whether the request is allowed: \
            with a status of 2xx it is, with 401 or 403 it is refused with that status, and any \
            other answer is an error (500). A 401 passes its `WWW-Authenticate` on.",
        ..Row::PLAIN
    },
    Row {
        name: "auth_request_set",
        arguments: Arguments::exactly(2),
        repeat: Repeat::Many,
        variables: Some(1),
        syntax: "$variable value",
        summary: "Sets a variable once the subrequest of `auth_request` is answered. The value may \
            contain variables of that subrequest, such as `$upstream_http_NAME`.",
        ..Row::PLAIN
    },
];
