//! Rows of this family.

use turnpike_conf::Row;

use crate::common::row_tables::join;
use crate::pass::params;
use crate::pass::rows::{PASS, shared_rows};

const SHARED: &[Row] = shared_rows!("scgi");

/// The directives.
pub(super) const ROWS: &[Row] = &join::<{ SHARED.len() + OWN.len() }>(SHARED, OWN);

/// The rows of this family alone.
const OWN: &[Row] = &[
    Row {
        name: "scgi_param",
        summary: "Sets a parameter that is passed to the application. With `if_not_empty` a \
            parameter with an empty value is not passed. A parameter `HTTP_NAME` replaces the \
            field `Name` of the client. `CONTENT_LENGTH` is always passed first, and cannot be \
            set. A parameter that holds a zero byte is left out, and an error is logged.",
        ..params::ROW
    },
    Row {
        name: "scgi_pass",
        syntax: "address",
        summary: "Passes requests to an SCGI application: an address with a port, the name of an \
            `upstream` block, or `unix:` and a path.",
        ..PASS
    },
];
