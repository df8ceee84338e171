//! Rows of this family.

use turnpike_conf::{Arguments, Context, Repeat, Row, Value};

const FLAG_OFF: Row = Row {
    value: Value::Flag,
    syntax: "on | off",
    default: "off",
    ..Row::PLAIN
};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "ssi",
        contexts: &[
            Context::Http,
            Context::Server,
            Context::Location,
            Context::IfInLocation,
        ],
        summary: "Processes SSI commands in responses. Differs from nginx: included parts are \
            requested one after another, so `wait` has no effect, and `if` may be nested. Parts \
            may include others, up to 50 levels deep, and a page may have at most 1024 parts. \
            Beyond that an error is logged and shown instead.",
        ..FLAG_OFF
    },
    Row {
        name: "ssi_ignore_recycled_buffers",
        summary: "Accepted for compatibility with nginx, without effect: Turnpike has no such \
            buffers.",
        ..FLAG_OFF
    },
    Row {
        name: "ssi_last_modified",
        summary: "Keeps `Last-Modified` of responses in which commands are processed.",
        ..FLAG_OFF
    },
    Row {
        name: "ssi_min_file_chunk",
        value: Value::Size,
        syntax: "size",
        default: "1k",
        summary: "Accepted for compatibility with nginx, without effect: text between commands is \
            always sent from memory.",
        ..Row::PLAIN
    },
    Row {
        name: "ssi_silent_errors",
        summary: "Shows nothing instead of an error message if a command is invalid.",
        ..FLAG_OFF
    },
    Row {
        name: "ssi_types",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "mime-type ...",
        default: "text/html",
        summary: "The content types of responses in which commands are processed, besides \
                  `text/html`. `*` means all.",
        ..Row::PLAIN
    },
    Row {
        name: "ssi_value_length",
        value: Value::Number,
        syntax: "length",
        default: "256",
        summary: "The maximum length of a parameter's value in a command, in bytes.",
        ..Row::PLAIN
    },
];
