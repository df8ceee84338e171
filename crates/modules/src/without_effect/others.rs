//! Settings that speed up what is done another way here, and those of modules whose main directive
//! is refused.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use super::checks;
use super::passing::{FLAG, KEY, ONE, SIZE, TEXT, table};

const EVENTS: Row = Row {
    contexts: &[Context::Events],
    merge: Merge::Own,
    ..TEXT
};
const TYPES: Row = Row {
    arguments: Arguments::at_least(1),
    repeat: Repeat::Many,
    syntax: "mime-type ...",
    ..TEXT
};
const OFF: Row = Row {
    arguments: Arguments::at_least(1),
    value: Value::Checked(checks::off),
    syntax: "off",
    ..ONE
};
const AIO: Row = Row {
    value: Value::Checked(checks::aio),
    syntax: "on | off | threads[=pool]",
    ..ONE
};
const OFF_OR_SIZE: Row = Row {
    value: Value::Checked(checks::off_or_size),
    syntax: "size | off",
    ..ONE
};
const UPLOADS: Row = Row {
    contexts: &[Context::Http],
    merge: Merge::Own,
    repeat: Repeat::Many,
    arguments: Arguments::exactly(2),
    syntax: "zone size",
    ..TEXT
};
const QUALITY: Row = Row {
    syntax: "number",
    ..KEY
};

/// Settings of how files are read, compressed and sent.
pub(super) const ROWS: &[Row] = table! {
    "Checked, but without effect. A lane reads files through the page cache, with sendfile(2) if \
     `sendfile` is on and with pread(2) otherwise. It compresses data as soon as it has some, and \
     sends as much as the socket takes. Linux has no events of open files (`kqueue`).";
    "aio" => AIO,
    "aio_write" => FLAG,
    "directio" => OFF_OR_SIZE,
    "directio_alignment" => Row { value: Value::Offset, ..SIZE },
    "gzip_hash" => SIZE,
    "gzip_no_buffer" => FLAG,
    "open_file_cache_events" => FLAG,
    "postpone_gzipping" => SIZE,
    "send_lowat" => SIZE,
    "epoll_events" => Row { value: Value::Number, syntax: "number", ..EVENTS },
    "worker_aio_requests" => Row { value: Value::Number, syntax: "number", ..EVENTS },
};

/// Settings of modules whose main directive is refused.
pub(super) const MODULES: &[Row] = table! {
    "Checked; without effect, since its module is not supported yet.";
    "upload_progress" => UPLOADS,
    "image_filter" => OFF,
    "image_filter_buffer" => SIZE,
    "image_filter_interlace" => FLAG,
    "image_filter_jpeg_quality" => QUALITY,
    "image_filter_sharpen" => QUALITY,
    "image_filter_transparency" => FLAG,
    "image_filter_webp_quality" => QUALITY,
    "xslt_last_modified" => FLAG,
    "xslt_types" => TYPES,
};
