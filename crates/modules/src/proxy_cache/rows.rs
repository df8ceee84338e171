//! Rows of the caches: those of all families have the same, under the family's prefix.

use turnpike_conf::{Row, Value};

use crate::common::row_tables::join;
use crate::pass::rows::PLAIN;

/// The words of `..._cache_use_stale`.
pub(super) const STALE_WORDS: &[&str] = &[
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
];

/// Methods that may be cached.
pub(super) const METHODS: &[&str] = &["GET", "HEAD", "POST"];

/// The rows of a cache whose family has this prefix; `key` says what the usual key is.
macro_rules! cache_rows {
    ($prefix:literal, $key:literal) => {{
        use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};
        use $crate::pass::rows::PLAIN;
        use $crate::proxy_cache::plan;
        use $crate::proxy_cache::rows::{METHODS, STALE_WORDS};
        const ROWS: &[Row] = &[
            Row {
                name: concat!($prefix, "_cache_path"),
                contexts: &[Context::Http],
                arguments: Arguments::at_least(2),
                repeat: Repeat::Many,
                merge: Merge::Own,
                syntax: "path keys_zone=name:size [levels=levels] [use_temp_path=on|off] \
                    [inactive=time] [max_size=size] [min_free=size] [manager_files=number] \
                    [manager_sleep=time] [manager_threshold=time] [loader_files=number] \
                    [loader_sleep=time] [loader_threshold=time] | name keys_zone=name:size memory",
                summary: "Declares a zone of stored responses. Responses are stored in files with \
                    nginx's folders and names, and with checksums. One megabyte of `keys_zone` \
                    holds 8 thousand keys. With `memory` the responses are stored in memory, and \
                    the size of the zone covers the responses and all their metadata. When a zone \
                    is full, responses are removed so that a scan does not evict popular ones.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache"),
                variables: Some(0),
                syntax: "zone | off",
                default: "off",
                summary: "The zone that stores responses. The name may contain variables.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_key"),
                variables: Some(0),
                syntax: "string",
                summary: concat!(
                    "The key under which a response is stored. The default is ",
                    $key,
                    ". If the key, a condition of `",
                    $prefix,
                    "_cache_bypass` or one of `",
                    $prefix,
                    "_no_cache` may contain the request's content (`$request_body`, also through \
                     `map`), the content is read first, whatever the method. A GET or HEAD with \
                     content that is not in the key is neither answered from the cache nor stored. \
                     `http_strictness nginx` allows it, unless the key names the content in a way \
                     that does not work: in a file, or through `set`, which is evaluated before \
                     the content is read."
                ),
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_valid"),
                value: Value::Checked(plan::check_valid),
                arguments: Arguments::at_least(1),
                repeat: Repeat::Many,
                syntax: "[code ...] time",
                summary: "How long responses with these codes stay fresh if they do not set a \
                    lifetime themselves. `any` means all codes. Without codes, it applies to 200, \
                    301 and 302.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_methods"),
                arguments: Arguments::at_least(1),
                repeat: Repeat::Many,
                value: Value::OneOf(METHODS),
                syntax: "GET | HEAD | POST ...",
                default: "GET HEAD",
                summary: concat!(
                    "The methods that are answered from the cache. GET and HEAD are always \
                     included. With POST, a response is stored only if it sets its own \
                      lifetime. If `",
                    $prefix,
                    "_cache_key",
                    "` contains `$request_body`, it is stored for requests with the same content. \
                     Otherwise, if `Content-Location` is the URI of the request, it is stored for \
                     GET and HEAD (RFC 9110 section 9.3.3). Content in a file is not part of any \
                     key."
                ),
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_min_uses"),
                value: Value::Number,
                syntax: "number",
                default: "1",
                summary: "The number of requests after which a response is stored.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_bypass"),
                variables: Some(0),
                arguments: Arguments::at_least(1),
                repeat: Repeat::Many,
                syntax: "string ...",
                summary: "Does not answer a request from the cache if one of these values is \
                    neither empty nor \"0\". The server's response is still stored.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_no_cache"),
                variables: Some(0),
                arguments: Arguments::at_least(1),
                repeat: Repeat::Many,
                syntax: "string ...",
                summary: "Does not store a response if one of these values is neither empty nor \
                    \"0\".",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_use_stale"),
                arguments: Arguments::at_least(1),
                repeat: Repeat::Many,
                value: Value::OneOf(STALE_WORDS),
                syntax: "error | timeout | invalid_header | updating | http_500 | http_502 | \
                    http_503 | http_504 | http_403 | http_404 | http_429 | off ...",
                default: "off",
                summary: "The cases in which a stale response is sent, unless the response itself \
                    forbids it.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_background_update"),
                value: Value::Flag,
                syntax: "on | off",
                summary: "Whether a stale response is updated in the background while it is sent \
                    to the client. By default this happens if the response allows it with \
                    `stale-while-revalidate`.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_lock"),
                value: Value::Flag,
                syntax: "on | off",
                default: "off",
                summary: "Whether only one request at a time fetches a response that is not \
                    stored, while other requests for it wait. The lock covers all lanes. If the \
                    response may not be stored, all waiting requests go to the server themselves.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_lock_timeout"),
                value: Value::Milliseconds,
                syntax: "time",
                default: "5s",
                summary: "How long a request waits for the response to another request. After that \
                    time it goes to the server itself, and its response is not stored.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_lock_age"),
                value: Value::Milliseconds,
                syntax: "time",
                default: "5s",
                summary: "The time after which one more request may fetch a response that another \
                    request is already fetching.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_revalidate"),
                value: Value::Flag,
                syntax: "on | off",
                default: "off",
                summary: "Whether stale responses are revalidated with a conditional request. If a \
                    304 answer refers to another response than the stored one (servers with \
                    different tags), the request is repeated without conditions.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_early_hints"),
                value: Value::Flag,
                syntax: "on | off",
                default: "off",
                summary: "Whether a client that waits for the server gets the `Link` values of the \
                    stored response, which is stale, as 103 (Early Hints), if their relation is \
                    `preload`, `modulepreload` or `preconnect`. As in HAProxy.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_max_range_offset"),
                value: Value::Offset,
                syntax: "number",
                summary: "A range that starts after this offset is requested from the server \
                    unchanged. A partial response (206) is stored only if it sets its own \
                    lifetime. It then answers requests for ranges within it.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_purge"),
                variables: Some(0),
                arguments: Arguments::at_least(1),
                repeat: Repeat::Many,
                syntax: "string ... | off | on | method [from all | address ...] | zone key",
                summary: "Treats a request as a purge if one of these values is neither empty nor \
                    \"0\". It removes all variants of the request's key. If the key ends in `*`, \
                    it removes all keys that start with it. With a `Surrogate-Key` or `Cache-Tag` \
                    field, it removes the responses with one of these tags. `Soft-Purge: 1` marks \
                    the responses as stale instead. The answer is 204, or 404 if nothing was \
                    found. As in the module ngx_cache_purge, a method (`on` is PURGE) can be named \
                    instead, with the clients that may use it; or, in a location for purges only, \
                    a zone and the key. The answer is then a page with the status 200, or 404.",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_honor_request"),
                value: Value::OneOf(&["on", "off", "no-store"]),
                syntax: "on | no-store | off",
                default: "no-store",
                summary: "Whether Cache-Control in requests is followed. `on` follows `no-cache`, \
                    `no-store`, `max-age`, `min-fresh`, `max-stale` and `only-if-cached`. \
                    `no-store` follows only `no-store`: the response is not stored, but a stored \
                    response may be sent (RFC 9111 section 5.2.1.5).",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_invalidate"),
                arguments: Arguments::at_least(1),
                repeat: Repeat::Many,
                syntax: "on | off | string ...",
                default: "on",
                summary: "Which unsafe requests (POST, PUT, DELETE and all methods that are not \
                    known to be safe) invalidate the responses stored under their key, after the \
                    server answers with 2xx or 3xx. `on` means all requests, as RFC 9111 section \
                    4.4 requires. `off` means none. Otherwise it applies to requests for which one \
                    of the strings is neither empty nor \"0\".",
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_heuristic"),
                arguments: Arguments::between(1, 2),
                syntax: "off | fraction [time]",
                default: "off",
                summary: concat!(
                    "Sets the lifetime of a response that sets none itself but has \
                      `Last-Modified`. \
                      The lifetime is this fraction (`0.1` or `10%`) of the time since the last \
                     modification, and at most the given time, which is `1d` by default (RFC 9111 \
                     section 4.2.2). It takes precedence over `",
                    $prefix,
                    "_cache_valid",
                    "`."
                ),
                ..PLAIN
            },
            Row {
                name: concat!($prefix, "_cache_status"),
                syntax: "on | off | name",
                default: "off",
                summary: "Adds a `Cache-Status` field (RFC 9211) to responses, under this name or \
                    `turnpike`. The field shows how the cache handled the request.",
                ..PLAIN
            },
        ];
        ROWS
    }};
}

const PROXY_SHARED: &[Row] = cache_rows!(
    "proxy",
    "the scheme, the host of `proxy_pass` and the path that is passed to the server"
);

/// The directives of the proxy's cache.
pub(super) const PROXY: &[Row] =
    &join::<{ PROXY_SHARED.len() + PROXY_OWN.len() }>(PROXY_SHARED, PROXY_OWN);

/// The directives of FastCGI's cache.
pub(super) const FASTCGI: &[Row] = cache_rows!(
    "fastcgi",
    "the host with its port and the target of the request. In nginx the key is empty by default, \
     and all responses replace each other"
);

/// The directives of SCGI's cache.
pub(super) const SCGI: &[Row] = cache_rows!(
    "scgi",
    "the host with its port and the target of the request. In nginx the key is empty by default, \
     and all responses replace each other"
);

/// The directives of uwsgi's cache.
pub(super) const UWSGI: &[Row] = cache_rows!(
    "uwsgi",
    "the host with its port and the target of the request. In nginx the key is empty by default, \
     and all responses replace each other"
);

/// The rows of the proxy's cache alone.
const PROXY_OWN: &[Row] = &[Row {
    name: "proxy_cache_convert_head",
    value: Value::Flag,
    syntax: "on | off",
    default: "on",
    summary: "Whether a HEAD request is sent to the server as GET, so that the response can be \
        stored. With `off`, responses to HEAD are stored separately and answer only HEAD requests.",
    ..PLAIN
}];
