//! Rows of this family.

use turnpike_conf::{Repeat, Row, Value};

use super::script;
use crate::common::row_tables::join;
use crate::pass::params;
use crate::pass::rows::{FLAG_OFF, MANY, PASS, PLAIN, shared_rows};

const SHARED: &[Row] = shared_rows!("fastcgi");

/// The directives.
pub(super) const ROWS: &[Row] = &join::<{ SHARED.len() + OWN.len() }>(SHARED, OWN);

/// The rows of this family alone.
const OWN: &[Row] = &[
    Row {
        name: "fastcgi_catch_stderr",
        syntax: "string",
        summary: "Treats a response as invalid if the application writes this string to its error \
            stream before the response head is complete. The next server may be asked then \
            (`fastcgi_next_upstream invalid_header`).",
        ..MANY
    },
    Row {
        name: "fastcgi_index",
        syntax: "name",
        summary: "The file name that is appended to `$fastcgi_script_name` if it ends with a \
            slash.",
        ..PLAIN
    },
    Row {
        name: "fastcgi_keep_conn",
        summary: "Asks the application to keep its connection open, and keeps it for further \
            requests. `keepalive` in the `upstream` block limits the number of idle connections.",
        ..FLAG_OFF
    },
    Row {
        name: "fastcgi_param",
        summary: "Sets a parameter that is passed to the application. With `if_not_empty` a \
            parameter with an empty value is not passed. A parameter `HTTP_NAME` replaces the \
            field `Name` of the client.",
        ..params::ROW
    },
    Row {
        name: "fastcgi_pass",
        syntax: "address",
        summary: "Passes requests to a FastCGI application: an address with a port, the name of \
            an `upstream` block, or `unix:` and a path. Differs from nginx: a response without \
            length whose connection breaks before the application ends it is cut off for the \
            client too, and is not stored.",
        ..PASS
    },
    Row {
        name: "fastcgi_split_path_info",
        value: Value::Checked(script::check),
        repeat: Repeat::Many,
        syntax: "regex",
        summary: "A regular expression with two groups, which are the values of \
            `$fastcgi_script_name` and `$fastcgi_path_info`.",
        ..PLAIN
    },
];
