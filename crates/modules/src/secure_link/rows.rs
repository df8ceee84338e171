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
        summary: "Says where the signature of a link is: a base64url MD5, which a comma and the \
            time until when the link holds may follow.",
        ..PLAIN
    },
    Row {
        name: "secure_link_md5",
        variables: Some(0),
        syntax: "expression",
        summary: "Says what is signed, the secret included.",
        ..PLAIN
    },
    Row {
        name: "secure_link_secret",
        contexts: &[Context::Location],
        syntax: "word",
        summary: "The secret of links of the form /prefix/signature/link, whose signature is the \
            hexadecimal MD5 of link and secret.",
        ..PLAIN
    },
];
