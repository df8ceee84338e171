//! Rows of this family.

use turnpike_conf::{Arguments, Repeat, Row, Value};

use crate::common::row_tables::join;
use crate::pass::http_origin::check_rewrite;
use crate::pass::proxy_header::ADDITION_ROW;
use crate::pass::rows::{FLAG_OFF, MANY, PASS, PLAIN, shared_rows, tls_rows};

const SHARED: &[Row] = shared_rows!("proxy");

const TLS: &[Row] = tls_rows!("proxy", "https");

const INHERITED: &[Row] = &join::<{ SHARED.len() + TLS.len() }>(SHARED, TLS);

/// The directives.
pub(super) const ROWS: &[Row] = &join::<{ INHERITED.len() + OWN.len() }>(INHERITED, OWN);

/// The rows of this family alone.
const OWN: &[Row] = &[
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
        name: "proxy_cookie_domain",
        value: Value::Checked(check_rewrite),
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
        value: Value::Checked(check_rewrite),
        arguments: Arguments::between(1, 2),
        syntax: "off | path replacement",
        summary: "Replaces the path in `Set-Cookie` fields of responses.",
        ..MANY
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
        name: "proxy_websocket",
        value: Value::OneOf(&["off", "auto", "on"]),
        syntax: "off | auto | on",
        default: "off",
        summary: "Passes on upgrades that clients request, without further directives: WebSockets \
            with `auto`, every protocol except HTTP/2 with `on`. If `proxy_set_header` sets \
            `Upgrade` or `Connection`, those lines take precedence. It needs `proxy_http_version \
            1.1`, the default. `proxy_read_timeout` limits the time without data.",
        ..PLAIN
    },
    Row {
        name: "proxy_http_version",
        value: Value::OneOf(&["1.0", "1.1", "2"]),
        syntax: "1.0 | 1.1 | 2",
        default: "1.1",
        summary: "The HTTP version of requests to upstream servers. With `2` a connection carries \
            one request at a time, and `https` servers are offered `h2` (ALPN).",
        ..PLAIN
    },
    Row {
        name: "proxy_method",
        variables: Some(0),
        syntax: "method",
        summary: "The method of requests to upstream servers, instead of the client's method.",
        ..PLAIN
    },
    Row {
        name: "proxy_pass",
        syntax: "URL",
        summary: "Passes requests to an upstream server: `http://` and an address, the name of an \
            `upstream` block, or `unix:` and a path. A path after it replaces the part of the \
            request path that matches the location. Differs from nginx: spaces and control \
            characters that come from variables in the URL are percent-encoded.",
        ..PASS
    },
    Row {
        name: "proxy_pass_trailers",
        summary: "Whether trailer fields of responses are passed on, and with \
            `proxy_http_version 2` those of requests too.",
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
        contexts: PLAIN.contexts,
        ..ADDITION_ROW
    },
    Row {
        name: "proxy_redirect",
        value: Value::Checked(check_rewrite),
        arguments: Arguments::between(1, 2),
        syntax: "default | off | redirect replacement",
        summary: "Replaces the start of `Location` and `Refresh` in responses. By default the URL \
            of `proxy_pass` is replaced with the path of the location.",
        ..MANY
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
