//! The rows of the geoip2 family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

/// The family's directives.
pub(super) const ROWS: &[Row] = &[
    GEOIP2,
    Row {
        name: "geoip2_proxy",
        value: Value::Custom,
        syntax: "address | CIDR",
        summary: "A trusted proxy: the address that is looked up is taken from its \
                  X-Forwarded-For. May be repeated.",
        ..GEOIP2
    },
    Row {
        name: "geoip2_proxy_recursive",
        value: Value::Flag,
        repeat: Repeat::Once,
        syntax: "on | off",
        default: "off",
        summary: "Whether X-Forwarded-For is followed back through all trusted proxies.",
        ..GEOIP2
    },
];

const GEOIP2: Row = Row {
    name: "geoip2",
    contexts: &[Context::Http],
    arguments: Arguments::exactly(1),
    value: Value::Entries,
    repeat: Repeat::Many,
    merge: Merge::Own,
    variables: None,
    syntax: "file",
    default: "",
    summary: "Defines variables from a MaxMind DB file, as the module ngx_http_geoip2_module does. \
        Each line of the block is `$variable [default=value] [source=$variable] path ...;`, where \
        the path leads to a value of the record for the address (the client's, or that of the \
        source), or `$variable metadata build_epoch | last_check | last_change;`. `auto_reload \
        time;` reads the file again once it has changed.",
};

/// The same in `stream`.
pub(super) const STREAM: &[Row] = &[Row {
    contexts: &[Context::Stream],
    ..GEOIP2
}];
