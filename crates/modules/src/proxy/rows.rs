//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use super::rewrites;
use crate::pass::{settings, store};

/// What a row is unless it says otherwise: given once, inherited from the nearest level.
const PLAIN: Row = Row::PLAIN;

const FLAG_OFF: Row = Row {
    value: Value::Flag,
    syntax: "on | off",
    default: "off",
    ..PLAIN
};

const FLAG_ON: Row = Row {
    default: "on",
    ..FLAG_OFF
};

const TIME: Row = Row {
    value: Value::Milliseconds,
    syntax: "time",
    default: "60s",
    ..PLAIN
};

const SIZE: Row = Row {
    value: Value::Size,
    syntax: "size",
    ..PLAIN
};

const MANY: Row = Row {
    repeat: Repeat::Many,
    ..PLAIN
};

/// The directives, in the order of the alphabet.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "early_hints",
        variables: Some(0),
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "string ...",
        summary: "Passes 103 (Early Hints) responses of upstream servers to the client if one of \
            these values is neither empty nor \"0\". Old clients may not understand them. By \
            default they are passed to browsers that open a page (`Sec-Fetch-Mode: navigate`) over \
            HTTP/2 or later. Over HTTP/1.1 they are not passed, because browsers ignore them there \
            and old proxies break.",
        ..PLAIN
    },
    Row {
        name: "proxy_bind",
        value: Value::Checked(settings::check_bind),
        variables: Some(0),
        arguments: Arguments::between(1, 2),
        syntax: "address [transparent] | off",
        summary: "The local address for connections to upstream servers.",
        ..PLAIN
    },
    Row {
        name: "proxy_buffer_size",
        default: "4k",
        summary: "Memory for the first part of a response. The response head must fit into it.",
        ..SIZE
    },
    Row {
        name: "proxy_buffering",
        summary: "Reads a response as fast as the upstream server sends it, and keeps the data \
            until the client takes it. `X-Accel-Buffering` overrides this for one response.",
        ..FLAG_ON
    },
    Row {
        name: "proxy_buffers",
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "8 4k",
        summary: "Memory for the part of a response that the client has not yet taken.",
        ..PLAIN
    },
    Row {
        name: "proxy_busy_buffers_size",
        summary: "The maximum amount of buffered data that is being sent to the client at one \
            time.",
        ..SIZE
    },
    Row {
        name: "proxy_connect_timeout",
        summary: "The timeout for connecting to an upstream server.",
        ..TIME
    },
    Row {
        name: "proxy_cookie_domain",
        value: Value::Checked(rewrites::check),
        arguments: Arguments::between(1, 2),
        syntax: "off | domain replacement",
        summary: "Replaces the domain in `Set-Cookie` fields of responses.",
        ..MANY
    },
    Row {
        name: "proxy_cookie_flags",
        arguments: Arguments::between(1, 4),
        syntax: "off | cookie [flag ...]",
        summary: "Sets or removes flags in `Set-Cookie` fields of responses: `secure`, `nosecure`, \
            `httponly`, `nohttponly`, `samesite=strict|lax|none`, `nosamesite`.",
        ..MANY
    },
    Row {
        name: "proxy_cookie_path",
        value: Value::Checked(rewrites::check),
        arguments: Arguments::between(1, 2),
        syntax: "off | path replacement",
        summary: "Replaces the path in `Set-Cookie` fields of responses.",
        ..MANY
    },
    Row {
        name: "proxy_force_ranges",
        summary: "Serves ranges of a response even if the upstream server does not offer them.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_headers_hash_bucket_size",
        value: Value::Number,
        syntax: "size",
        default: "64",
        summary: "Accepted for compatibility with nginx, without effect: Turnpike has no such \
            table of field names.",
        ..PLAIN
    },
    Row {
        name: "proxy_headers_hash_max_size",
        value: Value::Number,
        syntax: "size",
        default: "512",
        summary: "Accepted for compatibility with nginx, without effect: Turnpike has no such \
            table of field names.",
        ..PLAIN
    },
    Row {
        name: "proxy_hide_header",
        syntax: "field",
        summary: "Removes a field from responses to the client.",
        ..MANY
    },
    Row {
        name: "proxy_http_version",
        value: Value::OneOf(&["1.0", "1.1"]),
        syntax: "1.0 | 1.1",
        default: "1.1",
        summary: "The HTTP version of requests to upstream servers.",
        ..PLAIN
    },
    Row {
        name: "proxy_ignore_client_abort",
        summary: "Keeps the connection to an upstream server open until the response is complete, \
            even if the client closes its connection.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_ignore_headers",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::OneOf(&[
            "X-Accel-Redirect",
            "X-Accel-Expires",
            "X-Accel-Limit-Rate",
            "X-Accel-Buffering",
            "X-Accel-Charset",
            "Expires",
            "Cache-Control",
            "CDN-Cache-Control",
            "Set-Cookie",
            "Vary",
        ]),
        syntax: "field ...",
        summary: "Ignores these fields in responses of upstream servers. `Cache-Control` includes \
            `CDN-Cache-Control`, which replaces it.",
        ..PLAIN
    },
    Row {
        name: "proxy_intercept_errors",
        summary: "Answers with `error_page` if an upstream server answers with status 300 or \
            above.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_limit_rate",
        variables: Some(0),
        syntax: "rate",
        default: "0",
        summary: "The maximum speed for reading one buffered response, in bytes per second; 0 \
            means no limit.",
        ..PLAIN
    },
    Row {
        name: "proxy_max_temp_file_size",
        default: "1024m",
        summary: "The maximum size of a temporary file for one response; 0 disables temporary \
            files.",
        ..SIZE
    },
    Row {
        name: "proxy_method",
        variables: Some(0),
        syntax: "method",
        summary: "The method of requests to upstream servers, instead of the client's method.",
        ..PLAIN
    },
    Row {
        name: "proxy_next_upstream",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::OneOf(&[
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
        ]),
        syntax: "error | timeout | invalid_header | http_500 | http_502 | http_503 | http_504 | \
            http_403 | http_404 | http_429 | non_idempotent | off ...",
        default: "error timeout",
        summary: "The cases in which a request is passed to the next server, as long as no part of \
            a response was sent. A non-idempotent request that was already sent is passed on only \
            with `non_idempotent`.",
        ..PLAIN
    },
    Row {
        name: "proxy_next_upstream_timeout",
        default: "0",
        summary: "The time during which a request may be passed to another server; 0 means no \
            limit.",
        ..TIME
    },
    Row {
        name: "proxy_next_upstream_tries",
        value: Value::Number,
        syntax: "number",
        default: "0",
        summary: "The maximum number of servers to which one request is passed; 0 means no limit.",
        ..PLAIN
    },
    Row {
        name: "proxy_pass",
        variables: Some(0),
        contexts: &[
            Context::Location,
            Context::IfInLocation,
            Context::LimitExcept,
        ],
        merge: Merge::Own,
        syntax: "URL",
        summary: "Passes requests to an upstream server: `http://` and an address, the name of an \
            `upstream` block, or `unix:` and a path. A path after it replaces the part of the \
            request path that matches the location. Differs from nginx: spaces and control \
            characters that come from variables in the URL are percent-encoded.",
        ..PLAIN
    },
    Row {
        name: "proxy_pass_header",
        syntax: "field",
        summary: "Passes a response field to the client that is removed by default.",
        ..MANY
    },
    Row {
        name: "proxy_pass_request_body",
        summary: "Whether the request's body is passed on.",
        ..FLAG_ON
    },
    Row {
        name: "proxy_pass_request_headers",
        summary: "Whether the request's own fields are passed on.",
        ..FLAG_ON
    },
    Row {
        name: "proxy_pass_trailers",
        summary: "Whether trailer fields of a chunked response are passed on.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_protocol",
        value: Value::OneOf(&["on", "v2", "off"]),
        syntax: "on | v2 | off",
        default: "off",
        summary: "Sends the client's address at the start of each connection to an upstream \
            server, with version 1 (`on`) or 2 of the PROXY protocol. Such a connection is not \
            kept open.",
        ..PLAIN
    },
    Row {
        name: "proxy_read_timeout",
        summary: "The maximum time from the end of the request to the complete response head, and \
            the maximum pause of an upstream server within the body.",
        ..TIME
    },
    Row {
        name: "proxy_redirect",
        value: Value::Checked(rewrites::check),
        arguments: Arguments::between(1, 2),
        syntax: "default | off | redirect replacement",
        summary: "Replaces the start of `Location` and `Refresh` in responses. By default the URL \
            of `proxy_pass` is replaced with the path of the location.",
        ..MANY
    },
    Row {
        name: "proxy_request_buffering",
        summary: "Reads the whole request body before the request is sent to an upstream server.",
        ..FLAG_ON
    },
    Row {
        name: "proxy_send_lowat",
        default: "0",
        summary: "Accepted for compatibility with nginx, without effect: Linux has no such \
            threshold.",
        ..SIZE
    },
    Row {
        name: "proxy_send_timeout",
        summary: "The maximum time during which an upstream server takes no data of a request.",
        ..TIME
    },
    Row {
        name: "proxy_set_body",
        variables: Some(0),
        syntax: "value",
        summary: "The body of requests to upstream servers, instead of the client's body.",
        ..PLAIN
    },
    Row {
        name: "proxy_set_header",
        variables: Some(1),
        arguments: Arguments::exactly(2),
        syntax: "field value",
        summary: "Sets a field in requests to upstream servers, instead of the client's field. An \
            empty value removes the field. `Host` is `$proxy_host` by default. Differs from nginx: \
            a field whose value contains a control character is left out, and an error is logged.",
        ..MANY
    },
    Row {
        name: "proxy_socket_keepalive",
        summary: "Enables TCP keepalive probes on idle connections to upstream servers.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_socket_rcvbuf",
        default: "0",
        summary: "The receive buffer of connections to upstream servers; 0 uses the kernel's \
            default.",
        ..SIZE
    },
    Row {
        name: "proxy_socket_sndbuf",
        default: "0",
        summary: "The send buffer of connections to upstream servers; 0 uses the kernel's default.",
        ..SIZE
    },
    Row {
        name: "proxy_ssl_certificate",
        variables: Some(0),
        syntax: "file",
        summary: "The client certificate for `https` servers that request one, with its \
            intermediate certificates, in PEM.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_certificate_key",
        variables: Some(0),
        syntax: "file",
        summary: "The private key of the client certificate, in PEM and not encrypted.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_ciphers",
        syntax: "ciphers",
        default: "DEFAULT",
        summary: "The TLS ciphers. Only `DEFAULT` is accepted: TLS uses rustls, and all its \
            ciphers are secure.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_crl",
        syntax: "file",
        summary: "A list of revoked certificates, in PEM.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_name",
        variables: Some(0),
        syntax: "name",
        summary: "The server name that is sent to the server and checked against its certificate. \
            The default is the host of `proxy_pass`.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_protocols",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::OneOf(&["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"]),
        syntax: "[SSLv2] [SSLv3] [TLSv1] [TLSv1.1] [TLSv1.2] [TLSv1.3]",
        default: "TLSv1.2 TLSv1.3",
        summary: "The TLS versions for `https` servers. Versions before 1.2 are never used.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_server_name",
        summary: "Sends the server's name in the handshake (SNI).",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_ssl_session_reuse",
        summary: "Resumes TLS sessions with servers.",
        ..FLAG_ON
    },
    Row {
        name: "proxy_ssl_trusted_certificate",
        syntax: "file",
        summary: "The CA certificates for checking the certificates of servers, in PEM.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_verify",
        summary: "Checks the certificates of servers and refuses invalid ones. A valid certificate \
            is trusted itself or signed by a trusted one, and has the server's name among its \
            subjectAltNames.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_ssl_verify_depth",
        value: Value::Number,
        syntax: "number",
        default: "1",
        summary: "Accepted for compatibility with nginx, without effect: chains of up to six \
            certificates are verified.",
        ..PLAIN
    },
    Row {
        name: "proxy_store",
        variables: Some(0),
        syntax: "on | off | string",
        default: "off",
        summary: "Stores responses as files, under the paths from `root` or `alias` (`on`) or \
            under the given path.",
        ..PLAIN
    },
    Row {
        name: "proxy_store_access",
        value: Value::Checked(store::check_access),
        arguments: Arguments::between(1, 3),
        syntax: "users:permissions ...",
        default: "user:rw",
        summary: "The access rights of stored files: `user`, `group` or `all`, with `r` or `rw`.",
        ..PLAIN
    },
    Row {
        name: "proxy_temp_file_write_size",
        summary: "The maximum number of bytes that one write to a temporary file contains.",
        ..SIZE
    },
    Row {
        name: "proxy_temp_path",
        arguments: Arguments::between(1, 4),
        syntax: "path [level1 [level2 [level3]]]",
        default: "proxy_temp",
        summary: "The folder for responses that do not fit in memory.",
        ..PLAIN
    },
    Row {
        name: "via",
        syntax: "on | off | name",
        default: "off",
        summary: "Adds a `Via` field (RFC 9110 section 7.6.3) to requests to upstream servers and \
            to their responses, including stored ones. The field has the HTTP version of the \
            received message and the given name. With `on` the name is `turnpike`. For requests, \
            `proxy_set_header Via` takes precedence.",
        ..PLAIN
    },
];
