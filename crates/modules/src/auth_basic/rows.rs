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
        summary: "Requires a user name and a password. The browser shows the realm to the user. \
            The realm may contain variables.",
        ..PLAIN
    },
    Row {
        name: "auth_basic_user_file",
        syntax: "file",
        summary: "The file of users and passwords. Each line has a name, a colon and a password \
            hash in the format of crypt(3) or Apache's htpasswd: yescrypt, scrypt, bcrypt and all \
            other schemes of the system's libcrypt. Slow schemes do not delay other requests: two \
            threads check passwords, up to 128 checks wait for them, and beyond that the answer is \
            503. A correct password is not checked again for a minute. A relative path starts from \
            the folder of the main configuration file.",
        ..PLAIN
    },
];
