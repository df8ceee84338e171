//! Rows of this family.

use turnpike_conf::{Arguments, Context, Repeat, Row, Value};

use super::plan;

const PLAIN: Row = Row {
    value: Value::Flag,
    syntax: "on | off",
    ..Row::PLAIN
};

/// What `gzip_proxied` may say, in nginx's words.
pub(super) const PROXIED: &[&str] = &[
    "off",
    "expired",
    "no-cache",
    "no-store",
    "private",
    "no_last_modified",
    "no_etag",
    "auth",
    "any",
];

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "gzip",
        contexts: &[
            Context::Http,
            Context::Server,
            Context::Location,
            Context::IfInLocation,
        ],
        default: "off",
        summary: "Compresses responses of the types that `gzip_types` names, for clients that \
            accept it. What is at hand is compressed as a whole; a response that still comes is \
            flushed whenever its server pauses. Ranges are not offered of such responses, and \
            their ETag becomes a weak one. What a server \
            has said must not be transformed (`Cache-Control: no-transform`) is left alone.",
        ..PLAIN
    },
    Row {
        name: "gzip_buffers",
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "32 4k",
        summary: "How much of a response is compressed before it is sent: all buffers together.",
        ..PLAIN
    },
    Row {
        name: "gzip_comp_level",
        value: Value::Between(1, 9),
        syntax: "level",
        default: "1",
        summary: "From 1 (fast) to 9 (small). Level 1 compresses as well as zlib's does: it is \
            the second one of the library in use, whose first is faster and much larger.",
        ..PLAIN
    },
    Row {
        name: "gzip_disable",
        arguments: Arguments::at_least(1),
        value: Value::Checked(plan::check_disable),
        repeat: Repeat::Many,
        syntax: "regex ...",
        summary: "Nothing is compressed for clients whose User-Agent matches; `msie6` stands for \
            MSIE 4 to 6, but for 6 with SV1.",
        ..PLAIN
    },
    Row {
        name: "gzip_http_version",
        value: Value::OneOf(&["1.0", "1.1"]),
        syntax: "1.0 | 1.1",
        default: "1.1",
        summary: "The least version of requests whose responses are compressed.",
        ..PLAIN
    },
    Row {
        name: "gzip_min_length",
        value: Value::Size,
        syntax: "length",
        default: "20",
        summary: "Responses whose Content-Length is less are not compressed.",
        ..PLAIN
    },
    Row {
        name: "gzip_proxied",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::OneOf(PROXIED),
        syntax: "off | expired | no-cache | no-store | private | no_last_modified | no_etag | \
            auth | any ...",
        default: "off",
        summary: "Which responses are compressed for proxies, that is, for requests with a Via \
            field: those that no cache should keep, or any.",
        ..PLAIN
    },
    Row {
        name: "gzip_static",
        value: Value::OneOf(&["off", "on", "always"]),
        syntax: "on | off | always",
        default: "off",
        summary: "Sends the file with `.gz` behind its name in a file's place, where there is one: \
            to clients that accept it, or `always`.",
        ..PLAIN
    },
    Row {
        name: "gzip_types",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::Custom,
        syntax: "mime-type ...",
        default: "text/html",
        summary: "Types of responses that are compressed, besides text/html; `*` is any.",
        ..PLAIN
    },
    Row {
        name: "gzip_vary",
        default: "off",
        summary: "Adds `Vary: Accept-Encoding` to responses that `gzip`, `gzip_static` or `gunzip` \
            may change, unless they have it already.",
        ..PLAIN
    },
    Row {
        name: "gzip_window",
        value: Value::Checked(plan::check_window),
        syntax: "size",
        default: "32k",
        summary: "How far back repetitions are found: 512, 1k, 2k, 4k, 8k, 16k or 32k.",
        ..PLAIN
    },
    Row {
        name: "gunzip",
        contexts: &[
            Context::Http,
            Context::Server,
            Context::Location,
            Context::IfInLocation,
        ],
        default: "off",
        summary: "Expands responses with `Content-Encoding: gzip` for clients that do not accept \
            it.",
        ..PLAIN
    },
    Row {
        name: "gunzip_buffers",
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "32 4k",
        summary: "How much of a response is expanded before it is sent: all buffers together.",
        ..PLAIN
    },
];
