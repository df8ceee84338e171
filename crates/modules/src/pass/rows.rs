//! The rows that all families have which pass requests to upstream servers. Their names differ in
//! the first word only, which is the family's prefix.

use turnpike_conf::{Context, Merge, Repeat, Row, Value};

/// What a row is unless it says otherwise: given once, inherited from the nearest level.
pub(crate) const PLAIN: Row = Row::PLAIN;

pub(crate) const FLAG_OFF: Row = Row {
    value: Value::Flag,
    syntax: "on | off",
    default: "off",
    ..PLAIN
};

pub(crate) const FLAG_ON: Row = Row {
    default: "on",
    ..FLAG_OFF
};

pub(crate) const TIME: Row = Row {
    value: Value::Milliseconds,
    syntax: "time",
    default: "60s",
    ..PLAIN
};

pub(crate) const SIZE: Row = Row {
    value: Value::Size,
    syntax: "size",
    ..PLAIN
};

pub(crate) const MANY: Row = Row {
    repeat: Repeat::Many,
    ..PLAIN
};

/// The row of `..._pass` without its name, syntax and summary.
pub(crate) const PASS: Row = Row {
    variables: Some(0),
    contexts: &[
        Context::Location,
        Context::IfInLocation,
        Context::LimitExcept,
    ],
    merge: Merge::Own,
    ..PLAIN
};

/// The rows of a family with this prefix.
macro_rules! shared_rows {
    ($prefix:literal) => {{
        use turnpike_conf::{Arguments, Repeat, Row, Value};
        use turnpike_plan::temporary::TemporaryFolder;
        use $crate::common::file_access;
        use $crate::pass::rows::{FLAG_OFF, FLAG_ON, MANY, PLAIN, SIZE, TIME};
        use $crate::pass::settings;
        const ROWS: &[Row] = &[
            Row {
                name: concat!($prefix, "_bind"),
                value: Value::Checked(settings::check_bind),
                variables: Some(0),
                arguments: Arguments::between(1, 2),
                syntax: "address [transparent] | off",
                summary: "The local address for connections to upstream servers.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_buffer_size"),
                default: "4k",
                summary: "Memory for the first part of a response. The response head must fit into \
                    it.",
                ..SIZE
            },
            Row {
                name: concat!($prefix, "_buffering"),
                summary: "Reads a response as fast as the upstream server sends it, and keeps the \
                    data until the client takes it. `X-Accel-Buffering` overrides this for one \
                    response.",
                ..FLAG_ON
            },
            Row {
                name: concat!($prefix, "_buffers"),
                arguments: Arguments::exactly(2),
                value: Value::Buffers,
                syntax: "number size",
                default: "8 4k",
                summary: "Memory for the part of a response that the client has not yet taken.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_busy_buffers_size"),
                summary: "The maximum amount of buffered data that is being sent to the client at \
                    one time.",
                ..SIZE
            },
            Row {
                name: concat!($prefix, "_connect_timeout"),
                summary: "The timeout for connecting to an upstream server.",
                ..TIME
            },
            Row {
                name: concat!($prefix, "_force_ranges"),
                summary: "Serves ranges of a response even if the upstream server does not offer \
                    them.",
                ..FLAG_OFF
            },
            Row {
                name: concat!($prefix, "_hide_header"),
                syntax: "field",
                summary: "Removes a field from responses to the client.",
                ..MANY
            },
            Row {
                name: concat!($prefix, "_ignore_client_abort"),
                summary: "Keeps the connection to an upstream server open until the response is \
                    complete, even if the client closes its connection.",
                ..FLAG_OFF
            },
            Row {
                name: concat!($prefix, "_ignore_headers"),
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
                summary: "Ignores these fields in responses of upstream servers. `Cache-Control` \
                    includes `CDN-Cache-Control`, which replaces it.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_intercept_errors"),
                summary: "Answers with `error_page` if an upstream server answers with status 300 \
                    or above.",
                ..FLAG_OFF
            },
            Row {
                name: concat!($prefix, "_limit_rate"),
                variables: Some(0),
                syntax: "rate",
                default: "0",
                summary: "The maximum speed for reading one buffered response, in bytes per \
                    second; 0 means no limit.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_max_temp_file_size"),
                default: "1024m",
                summary: "The maximum size of a temporary file for one response; 0 disables \
                    temporary files.",
                ..SIZE
            },
            Row {
                name: concat!($prefix, "_next_upstream"),
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
                syntax: "error | timeout | invalid_header | http_500 | http_502 | http_503 | \
                    http_504 | http_403 | http_404 | http_429 | non_idempotent | off ...",
                default: "error timeout",
                summary: "The cases in which a request is passed to the next server, as long as no \
                    part of a response was sent. A non-idempotent request that was already sent is \
                    passed on only with `non_idempotent`.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_next_upstream_timeout"),
                default: "0",
                summary: "The time during which a request may be passed to another server; 0 means \
                    no limit.",
                ..TIME
            },
            Row {
                name: concat!($prefix, "_next_upstream_tries"),
                value: Value::Number,
                syntax: "number",
                default: "0",
                summary: "The maximum number of servers to which one request is passed; 0 means no \
                    limit.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_pass_header"),
                syntax: "field",
                summary: "Passes a response field to the client that is removed by default.",
                ..MANY
            },
            Row {
                name: concat!($prefix, "_pass_request_body"),
                summary: "Whether the request's body is passed on.",
                ..FLAG_ON
            },
            Row {
                name: concat!($prefix, "_pass_request_headers"),
                summary: "Whether the request's own fields are passed on.",
                ..FLAG_ON
            },
            Row {
                name: concat!($prefix, "_read_timeout"),
                summary: "The maximum time from the end of the request to the complete response \
                    head, and the maximum pause of an upstream server within the body.",
                ..TIME
            },
            Row {
                name: concat!($prefix, "_request_buffering"),
                summary: "Reads the whole request body before the request is sent to an upstream \
                    server.",
                ..FLAG_ON
            },
            Row {
                name: concat!($prefix, "_send_lowat"),
                default: "0",
                summary: "Accepted for compatibility with nginx, without effect: Linux has no such \
                    threshold.",
                ..SIZE
            },
            Row {
                name: concat!($prefix, "_send_timeout"),
                summary: "The maximum time during which an upstream server receives no data of a \
                          request.",
                ..TIME
            },
            Row {
                name: concat!($prefix, "_socket_keepalive"),
                summary: "Enables TCP keepalive probes on idle connections to upstream servers.",
                ..FLAG_OFF
            },
            Row {
                name: concat!($prefix, "_socket_rcvbuf"),
                default: "0",
                summary: "The receive buffer of connections to upstream servers; 0 uses the \
                    kernel's default.",
                ..SIZE
            },
            Row {
                name: concat!($prefix, "_socket_sndbuf"),
                default: "0",
                summary: "The send buffer of connections to upstream servers; 0 uses the kernel's \
                    default.",
                ..SIZE
            },
            Row {
                name: concat!($prefix, "_store"),
                variables: Some(0),
                syntax: "on | off | string",
                default: "off",
                summary: "Stores responses as files, under the paths from `root` or `alias` (`on`) \
                    or under the given path. The response to a GET with content is not stored, \
                    unless `http_strictness nginx` applies.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_store_access"),
                value: Value::Checked(file_access::check_access),
                arguments: Arguments::between(1, 3),
                syntax: "users:permissions ...",
                default: "user:rw",
                summary: "The access rights of stored files: `user`, `group` or `all`, with `r` or \
                    `rw`.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_temp_file_write_size"),
                summary: "The maximum number of bytes that one write to a temporary file contains.",
                ..SIZE
            },
            Row {
                name: concat!($prefix, "_temp_path"),
                arguments: Arguments::between(1, 4),
                value: Value::Checked(TemporaryFolder::check),
                syntax: "path [level1 [level2 [level3]]]",
                default: concat!($prefix, "_temp"),
                summary: "The folder for responses that do not fit in memory.",
                ..PLAIN
            },
        ];
        ROWS
    }};
}
pub(crate) use shared_rows;

/// The rows of TLS to upstream servers, for a family with this prefix whose servers with TLS have
/// this scheme.
macro_rules! tls_rows {
    ($prefix:literal, $scheme:literal) => {{
        use turnpike_conf::{Arguments, Repeat, Row, Value};
        use $crate::pass::rows::{FLAG_OFF, FLAG_ON, PLAIN};
        const ROWS: &[Row] = &[
            Row {
                name: concat!($prefix, "_ssl_certificate"),
                variables: Some(0),
                syntax: "file",
                summary: concat!(
                    "The client certificate for `",
                    $scheme,
                    "` servers that request one, with its intermediate certificates, in PEM."
                ),
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_certificate_cache"),
                arguments: Arguments::between(1, 3),
                syntax: "off | max=number [inactive=time] [valid=time]",
                default: "off",
                summary: "Caches the certificates and keys that variables name, at most `max` of \
                    them. An entry is removed when it has not been used for `inactive` (10 \
                    seconds), or `valid` (60 seconds) after it was read.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_certificate_key"),
                variables: Some(0),
                syntax: "file",
                summary: "The private key of the client certificate, in PEM.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_ciphers"),
                syntax: "ciphers",
                default: "DEFAULT",
                summary: "The cipher suites of TLS 1.2, in OpenSSL's syntax, as for `ssl_ciphers`.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_conf_command"),
                arguments: Arguments::exactly(2),
                repeat: Repeat::Many,
                syntax: "name value",
                summary: "OpenSSL's commands, as for `ssl_conf_command`: `Ciphersuites`, \
                    `CipherString`, `Curves` and `Groups`, `MinProtocol` and `MaxProtocol`, and \
                    `Certificate` with `PrivateKey`. They replace the corresponding directives.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_crl"),
                syntax: "file",
                summary: "Lists of revoked certificates, in PEM: one for every CA of a server's \
                    chain.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_key_log"),
                syntax: "path",
                summary: "The file for the secrets of sessions with servers, in the format that \
                    Wireshark reads. Anyone with this file can decrypt the traffic. Use it only \
                    for debugging.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_name"),
                variables: Some(0),
                syntax: "name",
                summary: concat!(
                    "The server name that is sent to the server and checked against its \
                     certificate. The default is the host of `",
                    $prefix,
                    "_pass`."
                ),
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_password_file"),
                syntax: "file",
                summary: "A file with passwords for the client certificate's key, one per line. It \
                    may be a FIFO.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_protocols"),
                arguments: Arguments::at_least(1),
                repeat: Repeat::Many,
                value: Value::OneOf(&["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"]),
                syntax: "[SSLv2] [SSLv3] [TLSv1] [TLSv1.1] [TLSv1.2] [TLSv1.3]",
                default: "TLSv1.2 TLSv1.3",
                summary: concat!(
                    "The TLS versions for `",
                    $scheme,
                    "` servers. Versions before 1.2 are never used."
                ),
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_server_name"),
                summary: "Sends the server's name in the handshake (SNI).",
                ..FLAG_OFF
            },
            Row {
                name: concat!($prefix, "_ssl_session_reuse"),
                summary: "Resumes TLS sessions with servers.",
                ..FLAG_ON
            },
            Row {
                name: concat!($prefix, "_ssl_trusted_certificate"),
                syntax: "file",
                summary: "The CA certificates for checking the certificates of servers, in PEM.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_ssl_verify"),
                summary: "Checks the certificates of servers and refuses invalid ones. The \
                    certificate must be trusted or signed by a trusted CA, and must match the \
                    server's name.",
                ..FLAG_OFF
            },
            Row {
                name: concat!($prefix, "_ssl_verify_depth"),
                value: Value::Number,
                syntax: "number",
                default: "1",
                summary: "The maximum number of intermediate CA certificates between a server's \
                    certificate and a trusted root.",
                ..PLAIN
            },
        ];
        ROWS
    }};
}
pub(crate) use tls_rows;

/// The rows of these names, for a family that has not all of a table's.
pub(crate) const fn only<const COUNT: usize>(rows: &[Row], names: &[&str; COUNT]) -> [Row; COUNT] {
    let mut kept = [Row::PLAIN; COUNT];
    let (mut at, mut row) = (0, 0);
    while at < COUNT {
        assert!(row < rows.len(), "names stand in the order of the rows");
        if is_same(rows[row].name.as_bytes(), names[at].as_bytes()) {
            kept[at] = rows[row];
            at += 1;
        }
        row += 1;
    }
    kept
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}
