//! Rows of the cache of proxied responses.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

use super::plan;

const PLAIN: Row = Row::PLAIN;

/// The words of `proxy_cache_use_stale`.
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

/// The directives.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "proxy_cache_path",
        contexts: &[Context::Http],
        arguments: Arguments::at_least(2),
        repeat: Repeat::Many,
        merge: Merge::Own,
        syntax: "path keys_zone=name:size [levels=levels] [use_temp_path=on|off] [inactive=time] \
            [max_size=size] [min_free=size] [manager_files=number] [manager_sleep=time] \
            [manager_threshold=time] [loader_files=number] [loader_sleep=time] \
            [loader_threshold=time] | name keys_zone=name:size memory",
        summary: "Declares a zone of stored responses. In files: nginx's folders and names, with \
            checksums; a megabyte of `keys_zone` is good for 8 thousand keys. With `memory` the \
            responses are kept in memory, as many as the zone's size holds with all that belongs \
            to them. Which of them stay when a zone is full is chosen so that a scan does not \
            push out what is asked for often.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache",
        variables: Some(0),
        syntax: "zone | off",
        default: "off",
        summary: "The zone that stores responses; variables may name it.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_key",
        variables: Some(0),
        syntax: "string",
        summary: "The key under which a response is stored. Without it: the scheme, the host of \
            `proxy_pass` and the path as it is passed.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_valid",
        value: Value::Checked(plan::check_valid),
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "[code ...] time",
        summary: "How long responses with these codes (`any` for all; 200, 301 and 302 without \
            any) are fresh that do not say so themselves.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_methods",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::OneOf(METHODS),
        syntax: "GET | HEAD | POST ...",
        default: "GET HEAD",
        summary: "The methods that are answered from the cache. GET and HEAD always are. With \
            POST, a response that says itself how long it is fresh is stored: where \
            `proxy_cache_key` names `$request_body`, for requests with the same content; else, \
            where `Content-Location` is the request's own URI, for GET and HEAD (RFC 9110 section \
            9.3.3). Content in a file is in no key.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_min_uses",
        value: Value::Number,
        syntax: "number",
        default: "1",
        summary: "After how many requests for it a response is stored.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_bypass",
        variables: Some(0),
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "string ...",
        summary: "A request for which one of these is neither empty nor \"0\" is not answered from \
            the cache; what a server answers is stored.",
        ..PLAIN
    },
    Row {
        name: "proxy_no_cache",
        variables: Some(0),
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "string ...",
        summary: "A response for which one of these is neither empty nor \"0\" is not stored.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_use_stale",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        value: Value::OneOf(STALE_WORDS),
        syntax: "error | timeout | invalid_header | updating | http_500 | http_502 | http_503 | \
            http_504 | http_403 | http_404 | http_429 | off ...",
        default: "off",
        summary: "When a stale response is sent, unless it forbids that itself.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_background_update",
        value: Value::Flag,
        syntax: "on | off",
        summary: "Whether a stale response that may be sent is asked for anew behind the \
            client's back. Without it: where the response itself allows that with \
            `stale-while-revalidate`.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_lock",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Whether only one request at a time fetches what is not stored, while the others \
            wait for it; one for all lanes. When the response may not be stored, those who waited \
            all ask for themselves.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_lock_timeout",
        value: Value::Milliseconds,
        syntax: "time",
        default: "5s",
        summary: "How long a request waits for another's. Then it asks for itself, and the \
            response is not stored.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_lock_age",
        value: Value::Milliseconds,
        syntax: "time",
        default: "5s",
        summary: "After which time one more request may fetch what another has begun to.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_revalidate",
        value: Value::Flag,
        syntax: "on | off",
        default: "off",
        summary: "Whether a stale response is asked for on the condition that it has changed. \
            Where the answer, 304, is about another one than is stored (servers that do not tag \
            alike), it is asked for again without conditions.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_convert_head",
        value: Value::Flag,
        syntax: "on | off",
        default: "on",
        summary: "Whether HEAD becomes GET on the way to the server, so that the response can be \
            stored. With off, responses to HEAD are stored on their own, and answer HEAD only.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_max_range_offset",
        value: Value::Offset,
        syntax: "number",
        summary: "A range that begins behind this offset is asked of the server as it is. Of the \
            answer only a part (206) is stored that says itself how long it is fresh; it answers \
            what lies within it.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_purge",
        variables: Some(0),
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "string ...",
        summary: "A request for which one of these is neither empty nor \"0\" purges: all variants \
            of its key, or all keys that begin with it where it ends in `*`. With a \
            `Surrogate-Key` or `Cache-Tag` field it purges what carries one of these tags. \
            `Soft-Purge: 1` makes stale instead. The answer is 204, or 404 where nothing was \
            found.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_honor_request",
        value: Value::OneOf(&["on", "off", "no-store"]),
        syntax: "on | no-store | off",
        default: "no-store",
        summary: "Whether Cache-Control of requests is followed: with `on`, `no-cache`, \
            `no-store`, `max-age`, `min-fresh`, `max-stale` and `only-if-cached`; with `no-store` \
            only that one: the response is not stored, and what is stored already is sent (RFC \
            9111 section 5.2.1.5).",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_invalidate",
        arguments: Arguments::at_least(1),
        repeat: Repeat::Many,
        syntax: "on | off | string ...",
        default: "on",
        summary: "Whose requests with other methods (POST, PUT, DELETE and whatever is not known \
            to be safe) make invalid what is stored under their key, once a server has answered \
            with 2xx or 3xx: everybody's, as RFC 9111 section 4.4 demands, nobody's, or those for \
            which one of the strings is neither empty nor \"0\".",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_heuristic",
        arguments: Arguments::between(1, 2),
        syntax: "off | fraction [time]",
        default: "off",
        summary: "Takes a response that does not say how long it is fresh, but has \
            `Last-Modified`, to be fresh for this fraction (`0.1` or `10%`) of the time since \
            then, and no longer than the time, which is `1d` where it is left out (RFC 9111 \
            section 4.2.2). It goes before `proxy_cache_valid`.",
        ..PLAIN
    },
    Row {
        name: "proxy_cache_status",
        syntax: "on | off | name",
        default: "off",
        summary: "Whether responses say in `Cache-Status` what the cache had to do with them (RFC \
            9211), under this name, or `turnpike`.",
        ..PLAIN
    },
];
