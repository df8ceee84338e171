//! Rows of this family.

use turnpike_conf::{Arguments, Repeat, Row, Value};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "auth_request",
        value: Value::Text,
        syntax: "uri | off",
        default: "off",
        summary: "Sends a subrequest without a body to this path. Its status decides whether the \
                  request is allowed: 2xx allows it, 401 and 403 refuse it with that status, and \
                  any other status is an error (500). The `WWW-Authenticate` of a 401 is passed \
                  on.",
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
