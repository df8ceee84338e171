//! Rows of the access log's directives.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "access_log",
        contexts: &[
            Context::Http,
            Context::Server,
            Context::Location,
            Context::IfInLocation,
            Context::LimitExcept,
        ],
        arguments: Arguments::at_least(1),
        value: Value::Custom,
        repeat: Repeat::Many,
        merge: Merge::Nearest,
        variables: Some(0),
        syntax: "path [format [buffer=size] [gzip[=level]] [flush=time] [if=condition]] | \
            syslog:server=address[,parameter=value] [format [if=condition]] | off",
        default: "logs/access.log combined",
        summary: "Writes a line for each request to a file or a syslog server. Several logs may be \
            given. The logs of a level replace those of the outer level.",
    },
    Row {
        name: "log_format",
        contexts: &[Context::Http],
        arguments: Arguments::at_least(2),
        value: Value::Custom,
        repeat: Repeat::Many,
        merge: Merge::Own,
        variables: None,
        syntax: "name [escape=default|json|none] string ...",
        default: "",
        summary: "Defines a named format for access log lines. The formats \"combined\" and \
            \"json\" are predefined; the configuration may redefine \"json\".",
    },
    Row {
        name: "open_log_file_cache",
        contexts: &[Context::Http, Context::Server, Context::Location],
        arguments: Arguments::between(1, 4),
        value: Value::Custom,
        repeat: Repeat::Once,
        merge: Merge::Nearest,
        variables: None,
        syntax: "max=N [inactive=time] [min_uses=N] [valid=time] | off",
        default: "off",
        summary: "Keeps log files open if their paths contain variables. Each lane keeps its own \
            files open.",
    },
];

const STREAM_ANYWHERE: &[Context] = &[Context::Stream, Context::StreamServer];

/// The same in `stream`, where nothing is logged without a directive.
pub(super) const STREAM: &[Row] = &[
    Row {
        contexts: STREAM_ANYWHERE,
        syntax: "path format [buffer=size] [gzip[=level]] [flush=time] [if=condition] | \
            syslog:server=address[,parameter=value] format [if=condition] | off",
        default: "off",
        summary: "Writes a line for each session to a file or a syslog server. Several logs may \
            be given. The logs of a level replace those of the outer level.",
        ..ROWS[0]
    },
    Row {
        contexts: &[Context::Stream],
        summary: "Defines a named format for access log lines.",
        ..ROWS[1]
    },
    Row {
        contexts: STREAM_ANYWHERE,
        ..ROWS[2]
    },
];
