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
        summary: "Compresses responses of the types in `gzip_types` for clients that accept it. If \
            `brotli` or `zstd` is on as well, a client gets the coding to which it gives the \
            highest weight. For equal weights the order is brotli, zstd, gzip. A complete response \
            is compressed as a whole. A response that is still being received is flushed whenever \
            its server pauses. Compressed responses do not support ranges, and their ETag becomes \
            weak. Responses with `Cache-Control: no-transform` are not compressed. The compressed \
            form of a file or of a response in memory is kept (up to 1 MB each, and 16 MB on each \
            lane for each coding and level) and used again as long as the original does not \
            change.",
        ..PLAIN
    },
    Row {
        name: "gzip_buffers",
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "32 4k",
        summary: "The amount of compressed data that is collected before it is sent: the total \
            size of all buffers.",
        ..PLAIN
    },
    Row {
        name: "gzip_comp_level",
        value: Value::Between(1, 9),
        syntax: "level",
        default: "1",
        summary: "The compression level, from 1 (fastest) to 9 (smallest). Level 1 compresses as \
            well as zlib's level 1. It is the second level of the library in use; the library's \
            first level is faster, but its output is much larger.",
        ..PLAIN
    },
    Row {
        name: "gzip_disable",
        arguments: Arguments::at_least(1),
        value: Value::Checked(plan::check_disable),
        repeat: Repeat::Many,
        syntax: "regex ...",
        summary: "Disables compression for clients whose User-Agent matches. `msie6` stands for \
            MSIE 4 to 6, except MSIE 6 with SV1.",
        ..PLAIN
    },
    Row {
        name: "gzip_http_version",
        value: Value::OneOf(&["1.0", "1.1"]),
        syntax: "1.0 | 1.1",
        default: "1.1",
        summary: "The minimum HTTP version of a request for a compressed response.",
        ..PLAIN
    },
    Row {
        name: "gzip_min_length",
        value: Value::Size,
        syntax: "length",
        default: "20",
        summary: "The minimum Content-Length of a response that is compressed.",
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
            field: responses that caches must not store, or all responses.",
        ..PLAIN
    },
    Row {
        name: "gzip_static",
        value: Value::OneOf(&["off", "on", "always"]),
        syntax: "on | off | always",
        default: "off",
        summary: "Sends a precompressed file, with `.gz` after the name, if it exists. It is sent \
            to clients that accept gzip, or to all clients with `always`.",
        ..PLAIN
    },
    Row {
        name: "gzip_types",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::Custom,
        syntax: "mime-type ...",
        default: "text/html",
        summary: "The content types of responses to compress, besides text/html. `*` means any \
            type.",
        ..PLAIN
    },
    Row {
        name: "gzip_vary",
        default: "off",
        summary: "Adds `Vary: Accept-Encoding` to responses that `gzip`, `brotli`, `zstd`, \
            `gunzip`, `gzip_static`, `brotli_static` or `zstd_static` may change. It is not added \
            twice.",
        ..PLAIN
    },
    Row {
        name: "gzip_window",
        value: Value::Checked(plan::check_gzip_window),
        syntax: "size",
        default: "32k",
        summary: "The size of the compression window: 512, 1k, 2k, 4k, 8k, 16k or 32k.",
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
        summary: "Decompresses responses with `Content-Encoding: gzip` for clients that do not \
            accept gzip.",
        ..PLAIN
    },
    Row {
        name: "gunzip_buffers",
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "32 4k",
        summary: "The amount of decompressed data that is collected before it is sent: the total \
            size of all buffers.",
        ..PLAIN
    },
    Row {
        name: "brotli",
        contexts: &[
            Context::Http,
            Context::Server,
            Context::Location,
            Context::IfInLocation,
        ],
        default: "off",
        summary: "Compresses responses of the types in `brotli_types` as `br` (RFC 7932) for \
                  clients that accept it, under the conditions and limits described at `gzip`. \
                  `gzip_vary` also applies; `gzip_proxied`, `gzip_http_version` and \
                  `gzip_disable` do not. The names are those of the module ngx_brotli.",
        ..PLAIN
    },
    Row {
        name: "brotli_buffers",
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "32 4k",
        summary: "The amount of compressed data that is collected before it is sent: the total \
            size of all buffers.",
        ..PLAIN
    },
    Row {
        name: "brotli_comp_level",
        value: Value::Between(0, 11),
        syntax: "level",
        default: "6",
        summary: "The compression level, from 0 (fastest) to 11 (smallest). Levels above 6 are \
            slow; that work is done by threads beside the lanes, in pieces of 256 KB.",
        ..PLAIN
    },
    Row {
        name: "brotli_min_length",
        value: Value::Size,
        syntax: "length",
        default: "20",
        summary: "The minimum Content-Length of a response that is compressed.",
        ..PLAIN
    },
    Row {
        name: "brotli_static",
        value: Value::OneOf(&["off", "on", "always"]),
        syntax: "on | off | always",
        default: "off",
        summary: "Sends a precompressed file, with `.br` after the name, if it exists. It is sent \
            to clients that accept `br`, or to all clients with `always`. If there are several \
            such files, a client gets the one in the coding it prefers.",
        ..PLAIN
    },
    Row {
        name: "brotli_types",
        arguments: Arguments::at_least(1),
        value: Value::Custom,
        repeat: Repeat::Many,
        syntax: "mime-type ...",
        default: "text/html",
        summary: "The content types of responses to compress, besides text/html. `*` means any \
            type.",
        ..PLAIN
    },
    Row {
        name: "brotli_window",
        value: Value::Checked(plan::check_brotli_window),
        syntax: "size",
        default: "512k",
        summary: "The size of the compression window, a power of two from 1k to 16m.",
        ..PLAIN
    },
    Row {
        name: "zstd",
        contexts: &[
            Context::Http,
            Context::Server,
            Context::Location,
            Context::IfInLocation,
        ],
        default: "off",
        summary: "Compresses responses of the types in `zstd_types` as `zstd` (RFC 8878) for \
            clients that accept it, as `brotli` does. The names are those of the module \
            zstd-nginx-module.",
        ..PLAIN
    },
    Row {
        name: "zstd_buffers",
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "32 4k",
        summary: "The amount of compressed data that is collected before it is sent: the total \
            size of all buffers.",
        ..PLAIN
    },
    Row {
        name: "zstd_comp_level",
        value: Value::Between(1, 22),
        syntax: "level",
        default: "1",
        summary: "The compression level, from 1 (fastest) to 22 (smallest). Levels above 9 are \
            slow; that work is done by threads beside the lanes, in pieces of 256 KB. The \
            window is at most 8 MB, which is what every client can read (RFC 9659).",
        ..PLAIN
    },
    Row {
        name: "zstd_min_length",
        value: Value::Size,
        syntax: "length",
        default: "20",
        summary: "The minimum Content-Length of a response that is compressed.",
        ..PLAIN
    },
    Row {
        name: "zstd_static",
        value: Value::OneOf(&["off", "on", "always"]),
        syntax: "on | off | always",
        default: "off",
        summary: "Sends a precompressed file, with `.zst` after the name, if it exists, as \
            `brotli_static` does.",
        ..PLAIN
    },
    Row {
        name: "zstd_types",
        arguments: Arguments::at_least(1),
        value: Value::Custom,
        repeat: Repeat::Many,
        syntax: "mime-type ...",
        default: "text/html",
        summary: "The content types of responses to compress, besides text/html. `*` means any \
            type.",
        ..PLAIN
    },
];
