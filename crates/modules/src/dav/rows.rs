//! Rows of this family.

use turnpike_conf::{Arguments, Row, Value};

use crate::file_access;

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "create_full_put_path",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Makes the folders that are missing above a file that PUT makes.",
        ..Row::PLAIN
    },
    Row {
        name: "dav_access",
        arguments: Arguments::between(1, 3),
        value: Value::Checked(file_access::check_access),
        syntax: "users:permissions ...",
        default: "user:rw",
        summary: "Who may read (`r`) or read and write (`rw`) the files that PUT and MKCOL make: \
            `user`, `group`, `all`.",
        ..Row::PLAIN
    },
    Row {
        name: "dav_methods",
        arguments: Arguments::at_least(1),
        value: Value::OneOf(&["off", "put", "delete", "mkcol", "copy", "move"]),
        syntax: "off | method ...",
        default: "off",
        summary: "Allows PUT, DELETE, MKCOL, COPY and MOVE of files. All work on files is done off \
            the lanes. Differs from nginx: symbolic links in a folder are copied and removed as \
            links, a folder cannot be copied into itself, and a tree has at most 100000 entries. \
            Together with PUT, all request bodies are written to files first.",
        ..Row::PLAIN
    },
    Row {
        name: "min_delete_depth",
        value: Value::Number,
        syntax: "number",
        default: "0",
        summary: "Allows DELETE only of paths with at least so many elements.",
        ..Row::PLAIN
    },
];
