//! Rows of Basic authentication.

use turnpike_conf::{Context, Row, Value};

const PLAIN: Row = Row {
    contexts: &[
        Context::Http,
        Context::Server,
        Context::Location,
        Context::LimitExcept,
    ],
    value: Value::Text,
    ..Row::PLAIN
};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "auth_basic",
        syntax: "realm | off",
        default: "off",
        summary: "Asks for a user name and a password. The realm may hold variables, and is shown \
            to the user.",
        ..PLAIN
    },
    Row {
        name: "auth_basic_user_file",
        syntax: "file",
        summary: "Names the file of users and passwords, a line for each: name, colon, password \
            as crypt(3) or Apache's htpasswd writes it. A relative path starts from the folder of \
            the main configuration file.",
        ..PLAIN
    },
];
