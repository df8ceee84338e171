//! Rows of this family. The directives of open files are for all families that open files.

use turnpike_conf::{Arguments, Row, Value};

use crate::common::files::check_open_file_cache;

const PLAIN: Row = Row {
    value: Value::Text,
    ..Row::PLAIN
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "etag",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Sends an ETag made from a file's modification time and length.",
        ..PLAIN
    },
    Row {
        name: "disable_symlinks",
        variables: Some(0),
        arguments: Arguments::between(1, 2),
        value: Value::Custom,
        syntax: "off | on | if_not_owner [from=part]",
        default: "off",
        summary: "Refuses paths that contain symbolic links.",
        ..PLAIN
    },
    Row {
        name: "open_file_cache",
        arguments: Arguments::between(1, 2),
        value: Value::Checked(check_open_file_cache),
        syntax: "off | max=N [inactive=time]",
        default: "off",
        summary: "Caches descriptors, sizes and times of files, and the content of small files. \
            Each lane has its own cache. Without it, the content of hot small files on local file \
            systems is kept in memory, and each request asks the file system whether the file is \
            still the same.",
        ..PLAIN
    },
    Row {
        name: "open_file_cache_valid",
        value: Value::Seconds,
        syntax: "time",
        default: "60s",
        summary: "How long a cached file is used before it is checked again.",
        ..PLAIN
    },
    Row {
        name: "open_file_cache_min_uses",
        value: Value::Number,
        syntax: "number",
        default: "1",
        summary: "The number of uses after which a file's descriptor stays open.",
        ..PLAIN
    },
    Row {
        name: "open_file_cache_errors",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Caches errors too.",
        ..PLAIN
    },
];
