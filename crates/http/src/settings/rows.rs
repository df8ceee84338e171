//! Rows of the HTTP core's directives. Families have rows of their own beside their handlers.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use super::checks;

const MAIN: &[Context] = &[Context::Main];
const HTTP: &[Context] = &[Context::Http];
const SERVER: &[Context] = &[Context::Server];
const LOCATION: &[Context] = &[Context::Location];
const SERVER_LOCATION: &[Context] = &[Context::Server, Context::Location];
const HTTP_SERVER: &[Context] = &[Context::Http, Context::Server];
const HTTP_SERVER_LOCATION_IF: &[Context] = &[
    Context::Http,
    Context::Server,
    Context::Location,
    Context::IfInLocation,
];

/// What a row is here unless it says otherwise.
const PLAIN: Row = Row {
    value: Value::Text,
    ..Row::PLAIN
};

/// The core's directives, in the order of the reference.
pub const ROWS: &[Row] = &[
    Row {
        name: "http",
        contexts: MAIN,
        arguments: Arguments::none(),
        value: Value::Block(Context::Http),
        merge: Merge::Own,
        summary: "Holds the configuration of the HTTP server.",
        ..PLAIN
    },
    Row {
        name: "server",
        contexts: HTTP,
        arguments: Arguments::none(),
        value: Value::Block(Context::Server),
        repeat: Repeat::Many,
        merge: Merge::Own,
        summary: "Holds the configuration of a virtual server, chosen by address and by the name \
            that the client asks for.",
        ..PLAIN
    },
    Row {
        name: "location",
        contexts: SERVER_LOCATION,
        arguments: Arguments::between(1, 2),
        value: Value::Block(Context::Location),
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "[= | ~ | ~* | ^~] uri | @name",
        summary: "Holds the configuration for paths: an exact path, a prefix, a regular \
            expression, or a name for internal use. A regular expression that comes to no verdict \
            within its limits is answered with 500 and logged as an alert; see \
            [operations](operations.md#regular-expressions).",
        ..PLAIN
    },
    Row {
        name: "listen",
        contexts: SERVER,
        arguments: Arguments::at_least(1),
        value: Value::Custom,
        repeat: Repeat::Many,
        merge: Merge::Own,
        variables: None,
        syntax: "address[:port[-port]] | port | unix:path [default_server] [backlog=number] \
            [deferred] [reuseport[=hash|steer]] [fastopen=number] [rcvbuf=size] [sndbuf=size] \
            [bind] [ipv6only=on|off] [so_keepalive=on|off|idle:interval:count]",
        default: "*:80 | *:8000",
        summary: "Listens on an address. `reuseport` gives every lane a socket of its own; \
            `reuseport=steer` lets the kernel prefer the lane on the packet's CPU while that \
            lane is responsive.",
    },
    Row {
        name: "server_name",
        contexts: SERVER,
        arguments: Arguments::at_least(1),
        value: Value::Custom,
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "name ...",
        summary: "Names of a virtual server: exact, with a wildcard in front or at the end, or a \
            regular expression after a tilde.",
        ..PLAIN
    },
    Row {
        name: "root",
        variables: Some(0),
        contexts: HTTP_SERVER_LOCATION_IF,
        syntax: "path",
        default: "html",
        summary: "The folder that paths are looked up in.",
        ..PLAIN
    },
    Row {
        name: "alias",
        variables: Some(0),
        contexts: LOCATION,
        merge: Merge::Own,
        syntax: "path",
        summary: "The folder that stands for the location's own prefix.",
        ..PLAIN
    },
    Row {
        name: "limit_except",
        contexts: LOCATION,
        arguments: Arguments::at_least(1),
        value: Value::Block(Context::LimitExcept),
        merge: Merge::Own,
        syntax: "method ...",
        summary: "Limits the methods that are not named.",
        ..PLAIN
    },
    Row {
        name: "types",
        arguments: Arguments::none(),
        value: Value::Entries,
        repeat: Repeat::Many,
        summary: "Content types by file extension: each line has a type, then its extensions. \
            `text/html html; image/gif gif; image/jpeg jpg;` where there is none.",
        ..PLAIN
    },
    Row {
        name: "default_type",
        syntax: "mime-type",
        default: "text/plain",
        summary: "The content type of files whose extension is not in `types`.",
        ..PLAIN
    },
    Row {
        name: "client_header_buffer_size",
        contexts: HTTP_SERVER,
        value: Value::Size,
        syntax: "size",
        default: "1k",
        summary: "First buffer for a request head.",
        ..PLAIN
    },
    Row {
        name: "large_client_header_buffers",
        contexts: HTTP_SERVER,
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "4 8k",
        summary: "How many further buffers a head may fill, and the largest request line or field.",
        ..PLAIN
    },
    Row {
        name: "client_header_timeout",
        contexts: HTTP_SERVER,
        value: Value::Milliseconds,
        syntax: "time",
        default: "60s",
        summary: "How long a client may take over a request head.",
        ..PLAIN
    },
    Row {
        name: "max_headers",
        contexts: HTTP_SERVER,
        value: Value::Number,
        syntax: "number",
        default: "1000",
        summary: "How many fields a request head may have.",
        ..PLAIN
    },
    Row {
        name: "client_max_body_size",
        value: Value::Offset,
        syntax: "size",
        default: "1m",
        summary: "The largest request body; 0 has no limit.",
        ..PLAIN
    },
    Row {
        name: "client_body_timeout",
        value: Value::Milliseconds,
        syntax: "time",
        default: "60s",
        summary: "How long a client may pause within a request body.",
        ..PLAIN
    },
    Row {
        name: "client_body_buffer_size",
        value: Value::Size,
        syntax: "size",
        default: "16k",
        summary: "Memory for a request body; larger ones go to a temporary file.",
        ..PLAIN
    },
    Row {
        name: "client_body_temp_path",
        arguments: Arguments::between(1, 4),
        value: Value::Custom,
        syntax: "path [level1 [level2 [level3]]]",
        default: "client_body_temp",
        summary: "Where request bodies that do not fit in memory are kept.",
        ..PLAIN
    },
    Row {
        name: "client_body_in_file_only",
        value: Value::OneOf(&["off", "on", "clean"]),
        syntax: "on | clean | off",
        default: "off",
        summary: "Keeps every request body in a file: one that stays (`on`), or one that is \
            removed when the request has ended (`clean`).",
        ..PLAIN
    },
    Row {
        name: "client_body_in_single_buffer",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Keeps a request body in one buffer. What is in memory is always kept so.",
        ..PLAIN
    },
    Row {
        name: "send_timeout",
        value: Value::Milliseconds,
        syntax: "time",
        default: "60s",
        summary: "How long a client may pause while a response is sent to it.",
        ..PLAIN
    },
    Row {
        name: "keepalive_timeout",
        arguments: Arguments::between(1, 2),
        value: Value::Checked(checks::keepalive_timeout),
        syntax: "timeout [header_timeout]",
        default: "75s",
        summary: "How long an idle connection is kept, and what the Keep-Alive field says.",
        ..PLAIN
    },
    Row {
        name: "keepalive_requests",
        value: Value::Number,
        syntax: "number",
        default: "1000",
        summary: "Requests on one connection.",
        ..PLAIN
    },
    Row {
        name: "keepalive_time",
        value: Value::Milliseconds,
        syntax: "time",
        default: "1h",
        summary: "How long one connection may go on being used.",
        ..PLAIN
    },
    Row {
        name: "keepalive_disable",
        arguments: Arguments::at_least(1),
        value: Value::OneOf(&["none", "msie6", "safari"]),
        repeat: Repeat::Many,
        syntax: "none | browser ...",
        default: "msie6",
        summary: "Browsers that connections are not kept with.",
        ..PLAIN
    },
    Row {
        name: "keepalive_min_timeout",
        value: Value::Milliseconds,
        syntax: "timeout",
        default: "0",
        summary: "How long a connection is at least kept when the server winds down.",
        ..PLAIN
    },
    Row {
        name: "lingering_close",
        value: Value::OneOf(&["off", "on", "always"]),
        syntax: "off | on | always",
        default: "on",
        summary: "Whether what a client still sends is read before its connection is closed.",
        ..PLAIN
    },
    Row {
        name: "lingering_time",
        value: Value::Milliseconds,
        syntax: "time",
        default: "30s",
        summary: "The longest that reading before closing may take.",
        ..PLAIN
    },
    Row {
        name: "lingering_timeout",
        value: Value::Milliseconds,
        syntax: "time",
        default: "5s",
        summary: "The longest wait for more while reading before closing.",
        ..PLAIN
    },
    Row {
        name: "reset_timedout_connection",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Resets connections that timed out, so that no memory is held for them.",
        ..PLAIN
    },
    Row {
        name: "sendfile",
        contexts: HTTP_SERVER_LOCATION_IF,
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Sends files by sendfile(2).",
        ..PLAIN
    },
    Row {
        name: "sendfile_max_chunk",
        value: Value::Size,
        syntax: "size",
        default: "2m",
        summary: "What one sendfile call may send.",
        ..PLAIN
    },
    Row {
        name: "tcp_nopush",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Sends a response's head and the start of its file in one packet.",
        ..PLAIN
    },
    Row {
        name: "tcp_nodelay",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Switches Nagle's algorithm off on kept-alive connections.",
        ..PLAIN
    },
    Row {
        name: "output_buffers",
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "2 32k",
        summary: "Buffers for reading a response from disk.",
        ..PLAIN
    },
    Row {
        name: "postpone_output",
        value: Value::Size,
        syntax: "size",
        default: "1460",
        summary: "Output is sent at once whatever its size: accepted, without effect.",
        ..PLAIN
    },
    Row {
        name: "limit_rate",
        variables: Some(0),
        contexts: HTTP_SERVER_LOCATION_IF,
        value: Value::Checked(checks::size_or_variable),
        syntax: "rate",
        default: "0",
        summary: "Bytes a second that a response is sent at.",
        ..PLAIN
    },
    Row {
        name: "limit_rate_after",
        variables: Some(0),
        contexts: HTTP_SERVER_LOCATION_IF,
        value: Value::Checked(checks::size_or_variable),
        syntax: "size",
        default: "0",
        summary: "Bytes of a response that are sent at full speed first.",
        ..PLAIN
    },
    Row {
        name: "etag",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Sends an ETag made of a file's time and length.",
        ..PLAIN
    },
    Row {
        name: "if_modified_since",
        value: Value::OneOf(&["off", "exact", "before"]),
        syntax: "off | exact | before",
        default: "exact",
        summary: "How If-Modified-Since is compared with a file's time.",
        ..PLAIN
    },
    Row {
        name: "max_ranges",
        value: Value::Number,
        syntax: "number",
        summary: "Ranges that one request may ask for; 0 switches ranges off.",
        ..PLAIN
    },
    Row {
        name: "error_page",
        variables: Some(1),
        contexts: HTTP_SERVER_LOCATION_IF,
        arguments: Arguments::at_least(2),
        value: Value::Checked(checks::error_page),
        repeat: Repeat::Many,
        syntax: "code ... [=[response]] uri",
        summary: "The page, URL or named location that answers instead of an error.",
        ..PLAIN
    },
    Row {
        name: "recursive_error_pages",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Lets an error page lead to another.",
        ..PLAIN
    },
    Row {
        name: "satisfy",
        value: Value::OneOf(&["all", "any"]),
        syntax: "all | any",
        default: "all",
        summary: "Whether all access checks must grant, or one is enough.",
        ..PLAIN
    },
    Row {
        name: "auth_delay",
        value: Value::Milliseconds,
        syntax: "time",
        default: "0s",
        summary: "How long an answer to wrong or missing credentials is held back.",
        ..PLAIN
    },
    Row {
        name: "internal",
        contexts: LOCATION,
        arguments: Arguments::none(),
        value: Value::Custom,
        repeat: Repeat::Once,
        merge: Merge::Own,
        summary: "Only internal redirects may come to this location.",
        ..PLAIN
    },
    Row {
        name: "server_tokens",
        value: Value::OneOf(&["on", "off", "build"]),
        syntax: "on | off | build",
        default: "on",
        summary: "Whether the version is told in Server and on error pages.",
        ..PLAIN
    },
    Row {
        name: "absolute_redirect",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Redirects carry scheme and host.",
        ..PLAIN
    },
    Row {
        name: "server_name_in_redirect",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Redirects carry the server's first name, not the name that was asked for.",
        ..PLAIN
    },
    Row {
        name: "port_in_redirect",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Redirects carry the port.",
        ..PLAIN
    },
    Row {
        name: "msie_padding",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Pads short error pages for MSIE.",
        ..PLAIN
    },
    Row {
        name: "msie_refresh",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Answers MSIE with a refreshing page, not a redirect.",
        ..PLAIN
    },
    Row {
        name: "log_not_found",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Writes missing files to the error log.",
        ..PLAIN
    },
    Row {
        name: "log_subrequest",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Writes subrequests to the access log. There are none yet: accepted, without \
            effect.",
        ..PLAIN
    },
    Row {
        name: "chunked_transfer_encoding",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Sends bodies of unknown length chunked to HTTP/1.1 clients.",
        ..PLAIN
    },
    Row {
        name: "disable_symlinks",
        variables: Some(0),
        arguments: Arguments::between(1, 2),
        value: Value::Custom,
        syntax: "off | on | if_not_owner [from=part]",
        default: "off",
        summary: "Refuses paths that lead through symbolic links.",
        ..PLAIN
    },
    Row {
        name: "open_file_cache",
        arguments: Arguments::between(1, 2),
        value: Value::Checked(checks::open_file_cache),
        syntax: "off | max=N [inactive=time]",
        default: "off",
        summary: "Keeps descriptors, sizes and times of files, and the content of small ones, \
            by lane.",
        ..PLAIN
    },
    Row {
        name: "open_file_cache_valid",
        value: Value::Seconds,
        syntax: "time",
        default: "60s",
        summary: "How long a kept file is believed before it is looked at again.",
        ..PLAIN
    },
    Row {
        name: "open_file_cache_min_uses",
        value: Value::Number,
        syntax: "number",
        default: "1",
        summary: "Uses that keep a file's descriptor open.",
        ..PLAIN
    },
    Row {
        name: "open_file_cache_errors",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Remembers failures too.",
        ..PLAIN
    },
    Row {
        name: "ignore_invalid_headers",
        contexts: HTTP_SERVER,
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Drops request fields with invalid names.",
        ..PLAIN
    },
    Row {
        name: "underscores_in_headers",
        contexts: HTTP_SERVER,
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Allows underscores in the names of request fields.",
        ..PLAIN
    },
    Row {
        name: "http_strictness",
        contexts: HTTP_SERVER,
        value: Value::OneOf(&["rfc", "nginx"]),
        syntax: "rfc | nginx",
        default: "rfc",
        summary: "Whose rules messages of clients and upstream servers have to follow: those of \
            RFC 9112, or nginx's, which take more. While the head of a request is read, the \
            default server of the address decides (and `rfc` in the server that `Host` names); \
            that server decides about the body and about responses of upstream servers. What \
            differs is told in http1.md.",
        ..PLAIN
    },
    Row {
        name: "merge_slashes",
        contexts: HTTP_SERVER,
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Takes several slashes in a path for one.",
        ..PLAIN
    },
    Row {
        name: "connection_pool_size",
        contexts: HTTP_SERVER,
        value: Value::Size,
        syntax: "size",
        default: "512",
        summary: "nginx's memory pool of a connection. There are no such pools here: accepted, \
            without effect.",
        ..PLAIN
    },
    Row {
        name: "request_pool_size",
        contexts: HTTP_SERVER,
        value: Value::Size,
        syntax: "size",
        default: "4k",
        summary: "nginx's memory pool of a request. There are no such pools here: accepted, \
            without effect.",
        ..PLAIN
    },
    Row {
        name: "server_names_hash_max_size",
        contexts: HTTP,
        value: Value::Number,
        syntax: "size",
        default: "512",
        summary: "Limit of nginx's table of names. The table here needs none: accepted, without \
            effect.",
        ..PLAIN
    },
    Row {
        name: "server_names_hash_bucket_size",
        contexts: HTTP,
        value: Value::Number,
        syntax: "size",
        default: "64",
        summary: "Bucket of nginx's table of names. The table here needs none: accepted, without \
            effect.",
        ..PLAIN
    },
    Row {
        name: "types_hash_max_size",
        value: Value::AtLeast(1),
        syntax: "size",
        default: "1024",
        summary: "Limit of nginx's table of types. The table here needs none: accepted, without \
            effect.",
        ..PLAIN
    },
    Row {
        name: "types_hash_bucket_size",
        value: Value::Between(0, 65_535),
        syntax: "size",
        default: "64",
        summary: "Bucket of nginx's table of types. The table here needs none: accepted, without \
            effect.",
        ..PLAIN
    },
    Row {
        name: "variables_hash_max_size",
        contexts: HTTP,
        value: Value::Number,
        syntax: "size",
        default: "1024",
        summary: "Limit of nginx's table of variables. The table here needs none: accepted, \
            without effect.",
        ..PLAIN
    },
    Row {
        name: "variables_hash_bucket_size",
        contexts: HTTP,
        value: Value::Number,
        syntax: "size",
        default: "64",
        summary: "Bucket of nginx's table of variables. The table here needs none: accepted, \
            without effect.",
        ..PLAIN
    },
    Row {
        name: "read_ahead",
        value: Value::Size,
        syntax: "size",
        default: "0",
        summary: "Read-ahead of files in nginx; Linux takes any size but 0 alike: accepted, \
            without effect.",
        ..PLAIN
    },
];
