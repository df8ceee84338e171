//! Rows of this family.

use turnpike_conf::{Row, Value};

use crate::common::row_tables::join;
use crate::pass::params;
use crate::pass::rows::{PASS, PLAIN, shared_rows, tls_rows};

const SHARED: &[Row] = shared_rows!("uwsgi");

const TLS: &[Row] = tls_rows!("uwsgi", "suwsgi");

const INHERITED: &[Row] = &join::<{ SHARED.len() + TLS.len() }>(SHARED, TLS);

/// The directives.
pub(super) const ROWS: &[Row] = &join::<{ INHERITED.len() + OWN.len() }>(INHERITED, OWN);

/// One byte of a packet's head.
const MODIFIER: Row = Row {
    value: Value::Between(0, 255),
    syntax: "number",
    default: "0",
    ..PLAIN
};

/// The rows of this family alone.
const OWN: &[Row] = &[
    Row {
        name: "uwsgi_modifier1",
        summary: "The first modifier of packets, which is the kind of request.",
        ..MODIFIER
    },
    Row {
        name: "uwsgi_modifier2",
        summary: "The second modifier of packets.",
        ..MODIFIER
    },
    Row {
        name: "uwsgi_param",
        summary: "Sets a parameter that is passed to the application. With `if_not_empty` a \
            parameter with an empty value is not passed. A parameter `HTTP_NAME` replaces the \
            field `Name` of the client. All parameters of a request have to fit into 65535 bytes.",
        ..params::ROW
    },
    Row {
        name: "uwsgi_pass",
        syntax: "[protocol://]address",
        summary: "Passes requests to an application that speaks the uwsgi protocol: an address \
            with a port, the name of an `upstream` block, or `unix:` and a path. The protocol is \
            `uwsgi` or, with TLS, `suwsgi`.",
        ..PASS
    },
    Row {
        name: "uwsgi_string",
        syntax: "string",
        summary: "Appends this text to the parameters of each packet.",
        ..PLAIN
    },
];
