//! Rows of signed links.

use turnpike_conf::{Context, Row, Value};

const PLAIN: Row = Row {
    value: Value::Text,
    ..Row::PLAIN
};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "secure_link",
        variables: Some(0),
        syntax: "expression",
        summary: "The signature of a link: a base64url MD5. A comma and the time when the link \
            expires may follow it.",
        ..PLAIN
    },
    Row {
        name: "secure_link_md5",
        variables: Some(0),
        syntax: "expression",
        summary: "The text that is signed, including the secret.",
        ..PLAIN
    },
    Row {
        name: "secure_link_secret",
        contexts: &[Context::Location],
        syntax: "word",
        summary: "The secret for links of the form /prefix/signature/link. The signature is the \
            hexadecimal MD5 of link and secret.",
        ..PLAIN
    },
];
