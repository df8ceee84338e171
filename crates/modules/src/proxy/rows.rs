//! Rows of this family.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use super::{rewrites, settings, store};

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
        summary: "A request for which one of these is neither empty nor \"0\" gets the 103 (Early \
            Hints) responses of upstream servers. Old clients may not understand them. Without it, \
            browsers that open a page (`Sec-Fetch-Mode: navigate`) over HTTP/2 or later get them, \
            and nobody over HTTP/1.1, where browsers ignore hints and old proxies break.",
        ..PLAIN
    },
    Row {
        name: "proxy_bind",
        value: Value::Checked(settings::check_bind),
        variables: Some(0),
        arguments: Arguments::between(1, 2),
        syntax: "address [transparent] | off",
        summary: "Makes connections to upstream servers from this address of ours.",
        ..PLAIN
    },
    Row {
        name: "proxy_buffer_size",
        default: "4k",
        summary: "Memory for the first part of a response; its head must fit.",
        ..SIZE
    },
    Row {
        name: "proxy_buffering",
        summary: "Reads a response as fast as the upstream server sends it and keeps what the \
            client does not take yet. `X-Accel-Buffering` decides for one response.",
        ..FLAG_ON
    },
    Row {
        name: "proxy_buffers",
        arguments: Arguments::exactly(2),
        value: Value::Buffers,
        syntax: "number size",
        default: "8 4k",
        summary: "Memory for what the client has not taken yet of one response.",
        ..PLAIN
    },
    Row {
        name: "proxy_busy_buffers_size",
        summary: "Memory that may be on its way to the client at one time.",
        ..SIZE
    },
    Row {
        name: "proxy_connect_timeout",
        summary: "How long connecting to an upstream server may take.",
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
        summary: "Serves ranges of a response whatever the upstream server says of them.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_headers_hash_bucket_size",
        value: Value::Number,
        syntax: "size",
        default: "64",
        summary: "Taken for nginx's sake: names of fields are not kept in such a table.",
        ..PLAIN
    },
    Row {
        name: "proxy_headers_hash_max_size",
        value: Value::Number,
        syntax: "size",
        default: "512",
        summary: "Taken for nginx's sake: names of fields are not kept in such a table.",
        ..PLAIN
    },
    Row {
        name: "proxy_hide_header",
        syntax: "field",
        summary: "Keeps a field of responses from the client.",
        ..MANY
    },
    Row {
        name: "proxy_http_version",
        value: Value::OneOf(&["1.0", "1.1"]),
        syntax: "1.0 | 1.1",
        default: "1.1",
        summary: "The version of HTTP in which upstream servers are asked.",
        ..PLAIN
    },
    Row {
        name: "proxy_ignore_client_abort",
        summary: "Lets an upstream server finish when the client has gone.",
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
        summary: "Takes these fields of responses as not meant for the proxy. `Cache-Control` \
            means `CDN-Cache-Control` too, which stands for it.",
        ..PLAIN
    },
    Row {
        name: "proxy_intercept_errors",
        summary: "Answers with `error_page` where an upstream server answers with 300 or more.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_limit_rate",
        variables: Some(0),
        syntax: "rate",
        default: "0",
        summary: "Bytes per second that are read of one buffered response; 0 has no limit.",
        ..PLAIN
    },
    Row {
        name: "proxy_max_temp_file_size",
        default: "1024m",
        summary: "Bytes of one response that a temporary file may hold; 0 uses none.",
        ..SIZE
    },
    Row {
        name: "proxy_method",
        variables: Some(0),
        syntax: "method",
        summary: "The method of requests to upstream servers, in place of the client's.",
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
        summary: "What lets a request be passed to the next server, as long as nothing of a \
            response was sent. Requests that may not be repeated never are once they were sent, \
            unless `non_idempotent` says so.",
        ..PLAIN
    },
    Row {
        name: "proxy_next_upstream_timeout",
        default: "0",
        summary: "Time within which a request may be passed to another server; 0 has no limit.",
        ..TIME
    },
    Row {
        name: "proxy_next_upstream_tries",
        value: Value::Number,
        syntax: "number",
        default: "0",
        summary: "How many servers one request may be passed to; 0 has no limit.",
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
            `upstream` block, or `unix:` and a path. A path behind it replaces the part of the \
            request's path that stands for the location. Differs from nginx: spaces and control \
            characters that variables bring into the URL are percent-encoded.",
        ..PLAIN
    },
    Row {
        name: "proxy_pass_header",
        syntax: "field",
        summary: "Lets a field of responses reach the client that is kept from it otherwise.",
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
        summary: "Whether fields behind a chunked response are passed on.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_protocol",
        value: Value::OneOf(&["on", "v2", "off"]),
        syntax: "on | v2 | off",
        default: "off",
        summary: "Begins each connection to an upstream server with the client's address, by \
            version 1 (`on`) or 2 of the PROXY protocol. Such a connection is not kept.",
        ..PLAIN
    },
    Row {
        name: "proxy_read_timeout",
        summary: "How long the head of a response may take from the end of the request, and how \
            long an upstream server may pause within the body.",
        ..TIME
    },
    Row {
        name: "proxy_redirect",
        value: Value::Checked(rewrites::check),
        arguments: Arguments::between(1, 2),
        syntax: "default | off | redirect replacement",
        summary: "Replaces the beginning of `Location` and `Refresh` in responses. By default \
            what `proxy_pass` names becomes the location's own path.",
        ..MANY
    },
    Row {
        name: "proxy_request_buffering",
        summary: "Reads a request's body whole before an upstream server is asked.",
        ..FLAG_ON
    },
    Row {
        name: "proxy_send_lowat",
        default: "0",
        summary: "Taken for nginx's sake: Linux has no such threshold.",
        ..SIZE
    },
    Row {
        name: "proxy_send_timeout",
        summary: "How long an upstream server may take nothing of a request.",
        ..TIME
    },
    Row {
        name: "proxy_set_body",
        variables: Some(0),
        syntax: "value",
        summary: "The body of requests to upstream servers, in place of the client's.",
        ..PLAIN
    },
    Row {
        name: "proxy_set_header",
        variables: Some(1),
        arguments: Arguments::exactly(2),
        syntax: "field value",
        summary: "A field of requests to upstream servers, in place of the client's; an empty \
            value sends none. `Host` is `$proxy_host` by default. Differs from nginx: a field \
            whose value holds a control character is left out, and the error log says so.",
        ..MANY
    },
    Row {
        name: "proxy_socket_keepalive",
        summary: "Lets the kernel probe idle connections to upstream servers.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_socket_rcvbuf",
        default: "0",
        summary: "Receive buffer of connections to upstream servers; 0 leaves it to the kernel.",
        ..SIZE
    },
    Row {
        name: "proxy_socket_sndbuf",
        default: "0",
        summary: "Send buffer of connections to upstream servers; 0 leaves it to the kernel.",
        ..SIZE
    },
    Row {
        name: "proxy_ssl_certificate",
        variables: Some(0),
        syntax: "file",
        summary: "Our own certificate for `https` servers that ask for one, with those that lead \
            to it, in PEM.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_certificate_key",
        variables: Some(0),
        syntax: "file",
        summary: "The key of that certificate, in PEM and not encrypted.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_ciphers",
        syntax: "ciphers",
        default: "DEFAULT",
        summary: "Only `DEFAULT`: TLS is rustls's, whose few ciphers are all good.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_crl",
        syntax: "file",
        summary: "Certificates that were revoked, in PEM.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_name",
        variables: Some(0),
        syntax: "name",
        summary: "The name that the certificate of a server must have and that is sent to it; by \
            default the host of `proxy_pass`.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_protocols",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::OneOf(&["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"]),
        syntax: "[SSLv2] [SSLv3] [TLSv1] [TLSv1.1] [TLSv1.2] [TLSv1.3]",
        default: "TLSv1.2 TLSv1.3",
        summary: "Versions of TLS for `https` servers; those before 1.2 are never spoken.",
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
        summary: "Certificates that vouch for those of servers, in PEM.",
        ..PLAIN
    },
    Row {
        name: "proxy_ssl_verify",
        summary: "Refuses servers whose certificate is not good: signed by a trusted one (or \
            trusted itself), and for the server's name, which must be among its subjectAltNames.",
        ..FLAG_OFF
    },
    Row {
        name: "proxy_ssl_verify_depth",
        value: Value::Number,
        syntax: "number",
        default: "1",
        summary: "Taken for nginx's sake: chains of up to six certificates are verified.",
        ..PLAIN
    },
    Row {
        name: "proxy_store",
        variables: Some(0),
        syntax: "on | off | string",
        default: "off",
        summary: "Keeps responses as files: under the names that `root` or `alias` give them \
            (`on`), or under this one.",
        ..PLAIN
    },
    Row {
        name: "proxy_store_access",
        value: Value::Checked(store::check_access),
        arguments: Arguments::between(1, 3),
        syntax: "users:permissions ...",
        default: "user:rw",
        summary: "Who may read and write stored files: `user`, `group` or `all`, with `r` or `rw`.",
        ..PLAIN
    },
    Row {
        name: "proxy_temp_file_write_size",
        summary: "Bytes that are written to a temporary file at one time.",
        ..SIZE
    },
    Row {
        name: "proxy_temp_path",
        arguments: Arguments::between(1, 4),
        syntax: "path [level1 [level2 [level3]]]",
        default: "proxy_temp",
        summary: "Where responses are kept that do not fit in memory.",
        ..PLAIN
    },
    Row {
        name: "via",
        syntax: "on | off | name",
        default: "off",
        summary: "Adds a `Via` field (RFC 9110 section 7.6.3) to requests for upstream servers and \
            to their responses, stored ones too: the version in which the message came, and this \
            name, which `on` makes `turnpike`. `proxy_set_header Via` wins for requests.",
        ..PLAIN
    },
];
