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
            as crypt(3) or Apache's htpasswd writes it: yescrypt, scrypt, bcrypt and all else that \
            the system's libcrypt knows. Slow schemes hold up no other request: two threads \
            check passwords, up to 128 wait for them, and beyond that the answer is 503. A \
            password that was right need not be checked again for a minute. A relative path \
            starts from the folder of the main configuration file.",
        ..PLAIN
    },
];
