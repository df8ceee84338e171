//! Rows that all modules have which pass requests on: their names differ in the first word only.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use super::checks;

pub(super) const ONE: Row = Row::PLAIN;

pub(super) const TEXT: Row = Row {
    value: Value::Text,
    syntax: "value",
    ..Row::PLAIN
};

pub(super) const FLAG: Row = Row {
    value: Value::Flag,
    syntax: "on | off",
    ..Row::PLAIN
};

pub(super) const TIME: Row = Row {
    value: Value::Milliseconds,
    syntax: "time",
    ..Row::PLAIN
};

pub(super) const SIZE: Row = Row {
    value: Value::Size,
    syntax: "size",
    ..Row::PLAIN
};

pub(super) const NUMBER: Row = Row {
    value: Value::Number,
    syntax: "number",
    ..Row::PLAIN
};

pub(super) const FIELD: Row = Row {
    repeat: Repeat::Many,
    syntax: "field",
    ..TEXT
};

pub(super) const STRINGS: Row = Row {
    arguments: Arguments::at_least(1),
    repeat: Repeat::Many,
    variables: Some(0),
    syntax: "string ...",
    ..TEXT
};

pub(super) const KEY: Row = Row {
    variables: Some(0),
    syntax: "string",
    ..TEXT
};

pub(super) const BUFFERS: Row = Row {
    arguments: Arguments::exactly(2),
    value: Value::Buffers,
    syntax: "number size",
    ..Row::PLAIN
};

pub(super) const BIND: Row = Row {
    arguments: Arguments::between(1, 2),
    value: Value::Checked(checks::bind),
    variables: Some(0),
    syntax: "address [transparent] | off",
    ..Row::PLAIN
};

pub(super) const CACHE_PATH: Row = Row {
    contexts: &[Context::Http],
    arguments: Arguments::at_least(2),
    value: Value::Checked(checks::cache_path),
    repeat: Repeat::Many,
    merge: Merge::Own,
    syntax: "path keys_zone=name:size [parameter ...]",
    ..Row::PLAIN
};

pub(super) const CACHE_VALID: Row = Row {
    arguments: Arguments::at_least(1),
    value: Value::Checked(checks::cache_valid),
    repeat: Repeat::Many,
    syntax: "[code ...] time",
    ..Row::PLAIN
};

pub(super) const CACHE_METHODS: Row = words(&["GET", "HEAD", "POST"], "GET | HEAD | POST ...");

pub(super) const CACHE_STALE: Row = words(
    &[
        "error",
        "timeout",
        "invalid_header",
        "updating",
        "http_500",
        "http_502",
        "http_503",
        "http_504",
        "http_403",
        "http_404",
        "http_429",
        "off",
    ],
    "error | timeout | ... | off",
);

pub(super) const OFFSET: Row = Row {
    value: Value::Offset,
    syntax: "number",
    ..Row::PLAIN
};

pub(super) const STORE_ACCESS: Row = Row {
    arguments: Arguments::between(1, 3),
    value: Value::Checked(checks::access),
    syntax: "users:permissions ...",
    ..Row::PLAIN
};

pub(super) const TEMPORARY: Row = Row {
    arguments: Arguments::between(1, 4),
    value: Value::Checked(checks::temporary),
    syntax: "path [level1 [level2 [level3]]]",
    ..Row::PLAIN
};

pub(super) const PARAMETER: Row = Row {
    arguments: Arguments::between(2, 3),
    value: Value::Checked(checks::parameter),
    repeat: Repeat::Many,
    variables: Some(1),
    syntax: "parameter value [if_not_empty]",
    ..Row::PLAIN
};

pub(super) const IGNORED: Row = words(
    &[
        "X-Accel-Redirect",
        "X-Accel-Expires",
        "X-Accel-Limit-Rate",
        "X-Accel-Buffering",
        "X-Accel-Charset",
        "Expires",
        "Cache-Control",
        "Set-Cookie",
        "Vary",
    ],
    "field ...",
);

pub(super) const NEXT: Row = words(
    &[
        "error",
        "timeout",
        "invalid_header",
        "non_idempotent",
        "http_500",
        "http_502",
        "http_503",
        "http_504",
        "http_403",
        "http_404",
        "http_429",
        "updating",
        "off",
    ],
    "error | timeout | ... | off",
);

pub(super) const PROTOCOLS: Row = words(
    &["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"],
    "[SSLv2] [SSLv3] [TLSv1] [TLSv1.1] [TLSv1.2] [TLSv1.3]",
);

pub(super) const COMMAND: Row = Row {
    arguments: Arguments::exactly(2),
    repeat: Repeat::Many,
    syntax: "name value",
    ..TEXT
};

pub(super) const CERTIFICATE_CACHE: Row = Row {
    arguments: Arguments::between(1, 3),
    syntax: "off | max=number [inactive=time] [valid=time]",
    ..TEXT
};

/// Words of a list, in any case, as many as you like.
pub(super) const fn words(words: &'static [&'static str], syntax: &'static str) -> Row {
    Row {
        arguments: Arguments::at_least(1),
        value: Value::OneOf(words),
        repeat: Repeat::Many,
        syntax,
        ..Row::PLAIN
    }
}

/// A table of rows: `name => what it is like`, all with one summary.
macro_rules! table {
    ($summary:expr; $($name:expr => $row:expr,)*) => {
        &[$(turnpike_conf::Row { name: $name, summary: $summary, ..$row },)*]
    };
}
pub(super) use table;

/// The table of a module that passes requests on and can cache responses: what FastCGI, uwsgi and
/// SCGI have in common, then rows of its own.
macro_rules! passing {
    ($module:literal; $($name:literal => $row:expr,)*) => {
        $crate::without_effect::passing::table! {
            concat!("Checked; takes effect with `", $module, "_pass`, which is not supported yet.");
            concat!($module, "_bind") => BIND,
            concat!($module, "_buffer_size") => SIZE,
            concat!($module, "_buffering") => FLAG,
            concat!($module, "_buffers") => BUFFERS,
            concat!($module, "_busy_buffers_size") => SIZE,
            concat!($module, "_cache") => KEY,
            concat!($module, "_cache_background_update") => FLAG,
            concat!($module, "_cache_bypass") => STRINGS,
            concat!($module, "_cache_key") => KEY,
            concat!($module, "_cache_lock") => FLAG,
            concat!($module, "_cache_lock_age") => TIME,
            concat!($module, "_cache_lock_timeout") => TIME,
            concat!($module, "_cache_max_range_offset") => OFFSET,
            concat!($module, "_cache_methods") => CACHE_METHODS,
            concat!($module, "_cache_min_uses") => NUMBER,
            concat!($module, "_cache_path") => CACHE_PATH,
            concat!($module, "_cache_revalidate") => FLAG,
            concat!($module, "_cache_use_stale") => CACHE_STALE,
            concat!($module, "_cache_valid") => CACHE_VALID,
            concat!($module, "_connect_timeout") => TIME,
            concat!($module, "_force_ranges") => FLAG,
            concat!($module, "_hide_header") => FIELD,
            concat!($module, "_ignore_client_abort") => FLAG,
            concat!($module, "_ignore_headers") => IGNORED,
            concat!($module, "_intercept_errors") => FLAG,
            concat!($module, "_limit_rate") => KEY,
            concat!($module, "_max_temp_file_size") => SIZE,
            concat!($module, "_next_upstream") => NEXT,
            concat!($module, "_next_upstream_timeout") => TIME,
            concat!($module, "_next_upstream_tries") => NUMBER,
            concat!($module, "_no_cache") => STRINGS,
            concat!($module, "_param") => PARAMETER,
            concat!($module, "_pass_header") => FIELD,
            concat!($module, "_pass_request_body") => FLAG,
            concat!($module, "_pass_request_headers") => FLAG,
            concat!($module, "_read_timeout") => TIME,
            concat!($module, "_request_buffering") => FLAG,
            concat!($module, "_send_timeout") => TIME,
            concat!($module, "_socket_keepalive") => FLAG,
            concat!($module, "_socket_rcvbuf") => SIZE,
            concat!($module, "_socket_sndbuf") => SIZE,
            concat!($module, "_store") => KEY,
            concat!($module, "_store_access") => STORE_ACCESS,
            concat!($module, "_temp_file_write_size") => SIZE,
            concat!($module, "_temp_path") => TEMPORARY,
            $($name => $row,)*
        }
    };
}
pub(super) use passing;
