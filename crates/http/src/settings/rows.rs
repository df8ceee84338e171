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
        summary: "Holds the configuration of a virtual server. The server is chosen by the address \
            of the connection and the host name in the request.",
        ..PLAIN
    },
    Row {
        name: "location",
        contexts: SERVER_LOCATION,
        arguments: Arguments::between(1, 2),
        value: Value::Block(Context::Location),
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "[= | ~ | ~* | ^~] uri | $variable | @name",
        summary: "Holds the configuration for paths: an exact path, a prefix, a regular \
            expression, or a name for internal use. A variable is a predicate, as in nginx 1.31.5: \
            the location is for requests for which its value is neither empty nor `0`. \
            Predicates are tried behind prefixes and regular expressions of their level, in \
            their order, unless an exact location, a regular expression or a prefix with `^~` \
            was found. If a regular expression or a variable has no result, because limits are \
            reached or the variable depends on itself, the answer is 500; see \
            [operations](../operations.md#regular-expressions).",
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
        syntax: "address[:port[-port]] | port | unix:path [default_server] [ssl] \
            [proxy_protocol] [backlog=number] [deferred] [reuseport[=hash|steer]] \
            [multipath] [fastopen=number] [rcvbuf=size] [sndbuf=size] [bind] [http2] [quic] \
            [ipv6only=on|off] [so_keepalive=on|off|idle:interval:count]",
        default: "*:80 | *:8000",
        summary: "Listens on an address. `reuseport` gives every lane its own socket. With \
            `reuseport=steer` the kernel prefers the lane on the packet's CPU while that lane is \
            responsive. With `multipath`, clients may use Multipath TCP; where the kernel has \
            none, a warning is logged and they use TCP. `quic` listens for HTTP/3, by UDP; see \
            [HTTP/3](../http3.md).",
    },
    Row {
        name: "server_name",
        contexts: SERVER,
        arguments: Arguments::at_least(1),
        value: Value::Custom,
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "name ...",
        summary: "Names of a virtual server: an exact name, a name with a wildcard at the start or \
            the end, or a regular expression after a tilde.",
        ..PLAIN
    },
    Row {
        name: "root",
        variables: Some(0),
        contexts: HTTP_SERVER_LOCATION_IF,
        syntax: "path",
        default: "html",
        summary: "The root folder for requests. The request path is appended to it.",
        ..PLAIN
    },
    Row {
        name: "alias",
        variables: Some(0),
        contexts: LOCATION,
        merge: Merge::Own,
        syntax: "path",
        summary: "The folder that replaces the location's prefix in the path.",
        ..PLAIN
    },
    Row {
        name: "limit_except",
        contexts: LOCATION,
        arguments: Arguments::at_least(1),
        value: Value::Block(Context::LimitExcept),
        merge: Merge::Own,
        syntax: "method ...",
        summary: "Restricts all methods except the listed ones.",
        ..PLAIN
    },
    Row {
        name: "types",
        arguments: Arguments::none(),
        value: Value::Entries,
        repeat: Repeat::Many,
        summary: "Content types by file extension: each line has a type, then its extensions. The \
            default is `text/html html; image/gif gif; image/jpeg jpg;`.",
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
        summary: "Size of the first buffer for a request head.",
        ..PLAIN
    },
    Row {
        name: "large_client_header_buffers",
        contexts: HTTP_SERVER,
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "4 8k",
        summary: "Number and size of the additional buffers for a request head. A request line or \
            a field must fit into one of them.",
        ..PLAIN
    },
    Row {
        name: "client_header_timeout",
        contexts: HTTP_SERVER,
        value: Value::Milliseconds,
        syntax: "time",
        default: "60s",
        summary: "How long a client may take to send a request head.",
        ..PLAIN
    },
    Row {
        name: "max_headers",
        contexts: HTTP_SERVER,
        value: Value::Number,
        syntax: "number",
        default: "1000",
        summary: "The maximum number of fields in a request head.",
        ..PLAIN
    },
    Row {
        name: "client_max_body_size",
        value: Value::Offset,
        syntax: "size",
        default: "1m",
        summary: "The largest request body; 0 means no limit.",
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
        summary: "Memory for a request body. Larger bodies go to a temporary file.",
        ..PLAIN
    },
    Row {
        name: "client_body_temp_path",
        arguments: Arguments::between(1, 4),
        value: Value::Custom,
        syntax: "path [level1 [level2 [level3]]]",
        default: "client_body_temp",
        summary: "Folder for request bodies that do not fit in memory.",
        ..PLAIN
    },
    Row {
        name: "client_body_in_file_only",
        value: Value::OneOf(&["off", "on", "clean"]),
        syntax: "on | clean | off",
        default: "off",
        summary: "Stores every request body in a file. The file stays (`on`) or is removed after \
            the request (`clean`).",
        ..PLAIN
    },
    Row {
        name: "client_body_in_single_buffer",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Keeps a request body in one buffer. A body in memory is always in one buffer.",
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
        summary: "How long an idle connection stays open, and the timeout in the Keep-Alive \
            response field.",
        ..PLAIN
    },
    Row {
        name: "keepalive_requests",
        value: Value::Number,
        syntax: "number",
        default: "1000",
        summary: "The maximum number of requests on one connection.",
        ..PLAIN
    },
    Row {
        name: "http2",
        contexts: HTTP_SERVER,
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Whether clients may use HTTP/2. It is negotiated in the TLS handshake (ALPN) or, \
            without TLS, recognized by its connection preface.",
        ..PLAIN
    },
    Row {
        name: "http2_max_concurrent_streams",
        contexts: HTTP_SERVER,
        value: Value::Number,
        syntax: "number",
        default: "128",
        summary: "The maximum number of concurrent requests of one HTTP/2 connection.",
        ..PLAIN
    },
    Row {
        name: "http2_recv_buffer_size",
        contexts: HTTP,
        value: Value::Size,
        syntax: "size",
        default: "256k",
        summary: "How much is read from an HTTP/2 connection before the lane continues with \
                  others.",
        ..PLAIN
    },
    Row {
        name: "http2_body_preread_size",
        contexts: HTTP_SERVER,
        value: Value::Size,
        syntax: "size",
        default: "64k",
        summary: "How much of a request body an HTTP/2 client may send before the server asks for \
            more.",
        ..PLAIN
    },
    Row {
        name: "http2_chunk_size",
        value: Value::Size,
        syntax: "size",
        default: "8k",
        summary: "The maximum size of the frames of a response's body in HTTP/2.",
        ..PLAIN
    },
    Row {
        name: "http3",
        contexts: HTTP_SERVER,
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Whether clients of `listen ... quic` may use HTTP/3; see [HTTP/3](../http3.md).",
        ..PLAIN
    },
    Row {
        name: "http3_max_concurrent_streams",
        contexts: HTTP_SERVER,
        value: Value::Number,
        syntax: "number",
        default: "128",
        summary: "The maximum number of concurrent requests of one HTTP/3 connection.",
        ..PLAIN
    },
    Row {
        name: "http3_stream_buffer_size",
        contexts: HTTP_SERVER,
        value: Value::Size,
        syntax: "size",
        default: "64k",
        summary: "How much an HTTP/3 client may send on a stream before it is read.",
        ..PLAIN
    },
    Row {
        name: "http3_hq",
        contexts: HTTP_SERVER,
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "`on` (HTTP/0.9 over QUIC, for tests) is refused for servers with `listen ... \
            quic`.",
        ..PLAIN
    },
    Row {
        name: "quic_active_connection_id_limit",
        contexts: HTTP_SERVER,
        value: Value::AtLeast(2),
        syntax: "number",
        default: "2",
        summary: "How many connection IDs of a client the server keeps for use, 2 to 5. A larger \
            number means 5.",
        ..PLAIN
    },
    Row {
        name: "quic_gso",
        contexts: HTTP_SERVER,
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Whether the kernel divides one send into datagrams (UDP_SEGMENT). If it cannot, \
            they are sent one by one.",
        ..PLAIN
    },
    Row {
        name: "quic_host_key",
        contexts: HTTP_SERVER,
        repeat: Repeat::Many,
        value: Value::Text,
        syntax: "file",
        summary: "A file with the secret for QUIC's connection IDs, stateless resets and address \
            tokens, the same in all servers. Without it, the first serving process makes a \
            secret, which its successors keep. A changed secret takes effect at the next \
            start. A second file has the secret before it, by which connections of earlier \
            processes, and tokens, are still known.",
        ..PLAIN
    },
    Row {
        name: "quic_retry",
        contexts: HTTP_SERVER,
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Whether QUIC clients must prove their address before the handshake (Retry), \
            which costs a round trip. While more than 2048 handshakes are in progress, all must.",
        ..PLAIN
    },
    Row {
        name: "keepalive_time",
        value: Value::Milliseconds,
        syntax: "time",
        default: "1h",
        summary: "The maximum age of a connection that still takes new requests.",
        ..PLAIN
    },
    Row {
        name: "keepalive_disable",
        arguments: Arguments::at_least(1),
        value: Value::OneOf(&["none", "msie6", "safari"]),
        repeat: Repeat::Many,
        syntax: "none | browser ...",
        default: "msie6",
        summary: "Browsers for which connections are not kept alive.",
        ..PLAIN
    },
    Row {
        name: "keepalive_min_timeout",
        value: Value::Milliseconds,
        syntax: "timeout",
        default: "0",
        summary: "The minimum time that an idle connection stays open after a request: until then, \
            neither a graceful shutdown nor a shortage of connections closes it.",
        ..PLAIN
    },
    Row {
        name: "lingering_close",
        value: Value::OneOf(&["off", "on", "always"]),
        syntax: "off | on | always",
        default: "on",
        summary: "Whether the server reads remaining client data before it closes a connection.",
        ..PLAIN
    },
    Row {
        name: "lingering_time",
        value: Value::Milliseconds,
        syntax: "time",
        default: "30s",
        summary: "The maximum total time for reading remaining client data before a connection is \
            closed.",
        ..PLAIN
    },
    Row {
        name: "lingering_timeout",
        value: Value::Milliseconds,
        syntax: "time",
        default: "5s",
        summary: "The maximum wait for more client data before a connection is closed.",
        ..PLAIN
    },
    Row {
        name: "reset_timedout_connection",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Resets connections that timed out. The kernel then keeps no memory for them.",
        ..PLAIN
    },
    Row {
        name: "sendfile",
        contexts: HTTP_SERVER_LOCATION_IF,
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Sends files with sendfile(2), also bodies of requests to upstream servers.",
        ..PLAIN
    },
    Row {
        name: "sendfile_max_chunk",
        value: Value::Size,
        syntax: "size",
        default: "2m",
        summary: "The maximum number of bytes that one sendfile call sends.",
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
        summary: "Holds back the head of a response that is built from parts (`ssi`, `slice`) \
            until this many bytes of the body exist. If a part fails before that, the connection \
            is closed without a response. Other responses are sent at once.",
        ..PLAIN
    },
    Row {
        name: "limit_rate",
        variables: Some(0),
        contexts: HTTP_SERVER_LOCATION_IF,
        value: Value::Checked(checks::size_or_variable),
        syntax: "rate",
        default: "0",
        summary: "Limits the speed of a response, in bytes per second.",
        ..PLAIN
    },
    Row {
        name: "limit_rate_after",
        variables: Some(0),
        contexts: HTTP_SERVER_LOCATION_IF,
        value: Value::Checked(checks::size_or_variable),
        syntax: "size",
        default: "0",
        summary: "The number of bytes at the start of a response that are sent at full speed.",
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
        summary: "The page, URL or named location to answer with instead of an error.",
        ..PLAIN
    },
    Row {
        name: "recursive_error_pages",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Allows an error page to lead to another error page.",
        ..PLAIN
    },
    Row {
        name: "satisfy",
        value: Value::OneOf(&["all", "any"]),
        syntax: "all | any",
        default: "all",
        summary: "Whether all access checks must pass (`all`) or one is enough (`any`).",
        ..PLAIN
    },
    Row {
        name: "auth_delay",
        value: Value::Milliseconds,
        syntax: "time",
        default: "0s",
        summary: "How long the answer to wrong or missing credentials is delayed.",
        ..PLAIN
    },
    Row {
        name: "internal",
        contexts: LOCATION,
        arguments: Arguments::none(),
        value: Value::Custom,
        repeat: Repeat::Once,
        merge: Merge::Nearest,
        summary: "Restricts this location, and those nested in it, to internal redirects.",
        ..PLAIN
    },
    Row {
        name: "server_tokens",
        value: Value::OneOf(&["on", "off", "build"]),
        syntax: "on | off | build",
        default: "on",
        summary: "Whether the Server field and the error pages show the version.",
        ..PLAIN
    },
    Row {
        name: "absolute_redirect",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Adds scheme and host to redirects.",
        ..PLAIN
    },
    Row {
        name: "server_name_in_redirect",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Uses the server's first name in redirects instead of the host name in the \
            request.",
        ..PLAIN
    },
    Row {
        name: "port_in_redirect",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Adds the port to redirects.",
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
        summary: "Answers MSIE with a page that refreshes instead of a redirect.",
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
        summary: "Writes subrequests (`auth_request`, `mirror`, `ssi`) to the access log.",
        ..PLAIN
    },
    Row {
        name: "subrequest_output_buffer_size",
        value: Value::Size,
        syntax: "size",
        default: "4k",
        summary: "The maximum size of a response that a subrequest keeps in memory, such as a part \
            that `<!--#include set=\"...\" -->` stores in a variable.",
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
        summary: "The rules for messages of clients and upstream servers: `rfc` follows RFC 9112, \
            `nginx` follows nginx, which accepts more. For a request head, the setting of the \
            address's default server applies; `rfc` in the server that `Host` names applies too. \
            For the body and for responses of upstream servers, the setting of the server that \
            `Host` names applies. With `nginx`, a cache also answers a GET or HEAD with content \
            that is not in its key. http1.md lists the differences.",
        ..PLAIN
    },
    Row {
        name: "http09",
        contexts: HTTP_SERVER,
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Allows HTTP/0.9 requests: a line without a version, whose answer is the body \
            alone. With `off` they are refused with 400. The setting of the address's default \
            server applies.",
        ..PLAIN
    },
    Row {
        name: "merge_slashes",
        contexts: HTTP_SERVER,
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Merges adjacent slashes in a path into one.",
        ..PLAIN
    },
    Row {
        name: "connection_pool_size",
        contexts: HTTP_SERVER,
        value: Value::Size,
        syntax: "size",
        default: "512",
        summary: "Accepted, without effect: the size of nginx's memory pool for a connection. \
            Turnpike has no such pools.",
        ..PLAIN
    },
    Row {
        name: "request_pool_size",
        contexts: HTTP_SERVER,
        value: Value::Size,
        syntax: "size",
        default: "4k",
        summary: "Accepted, without effect: the size of nginx's memory pool for a request. \
            Turnpike has no such pools.",
        ..PLAIN
    },
    Row {
        name: "server_names_hash_max_size",
        contexts: HTTP,
        value: Value::Number,
        syntax: "size",
        default: "512",
        summary: "Accepted, without effect: the size limit of nginx's table of names. Turnpike's \
            table needs no limit.",
        ..PLAIN
    },
    Row {
        name: "server_names_hash_bucket_size",
        contexts: HTTP,
        value: Value::Number,
        syntax: "size",
        default: "64",
        summary: "Accepted, without effect: the bucket size of nginx's table of names. Turnpike's \
            table has no buckets to set.",
        ..PLAIN
    },
    Row {
        name: "types_hash_max_size",
        value: Value::AtLeast(1),
        syntax: "size",
        default: "1024",
        summary: "Accepted, without effect: the size limit of nginx's table of types. Turnpike's \
            table needs no limit.",
        ..PLAIN
    },
    Row {
        name: "types_hash_bucket_size",
        value: Value::Between(0, 65_535),
        syntax: "size",
        default: "64",
        summary: "Accepted, without effect: the bucket size of nginx's table of types. Turnpike's \
            table has no buckets to set.",
        ..PLAIN
    },
    Row {
        name: "variables_hash_max_size",
        contexts: HTTP,
        value: Value::Number,
        syntax: "size",
        default: "1024",
        summary: "Accepted, without effect: the size limit of nginx's table of variables. \
            Turnpike's table needs no limit.",
        ..PLAIN
    },
    Row {
        name: "variables_hash_bucket_size",
        contexts: HTTP,
        value: Value::Number,
        syntax: "size",
        default: "64",
        summary: "Accepted, without effect: the bucket size of nginx's table of variables. \
            Turnpike's table has no buckets to set.",
        ..PLAIN
    },
    Row {
        name: "read_ahead",
        value: Value::Size,
        syntax: "size",
        default: "0",
        summary: "Accepted, without effect: the read-ahead of files in nginx. Linux treats all \
            sizes except 0 alike.",
        ..PLAIN
    },
];
