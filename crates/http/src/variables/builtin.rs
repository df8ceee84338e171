//! The variables of the core, under nginx's names.

use std::io::Write;

use turnpike_lane::sys::socket::PeerAddress;
use turnpike_plan::product::NGINX_VERSION;
use turnpike_wire::message::{BodyLength, Fields, Known, Version};

use super::row::{Getter, Setter, VariableRow};
use super::text::{append_address, append_number, append_seconds, same_name};
use super::{proxy, upstream};
use crate::engine::walk::Purpose;
use crate::exchange::{Action, Exchange};
use crate::response_head;

/// The core's variables.
pub const BUILTIN: &[VariableRow] = &[
    changeable(
        "args",
        query,
        set_query,
        "The current query of the request, after any rewriting.",
    ),
    row(
        "binary_remote_addr",
        binary_remote_addr,
        "The client's address in 4 or 16 bytes.",
    ),
    row(
        "body_bytes_sent",
        body_bytes_sent,
        "Bytes sent to the client without the head.",
    ),
    row("bytes_sent", bytes_sent, "Bytes sent to the client."),
    row("connection", connection, "The connection's number."),
    row(
        "connection_requests",
        connection_requests,
        "Requests so far on the connection.",
    ),
    row(
        "connection_time",
        connection_time,
        "Age of the connection in seconds.",
    ),
    row(
        "content_length",
        content_length,
        "The request's Content-Length.",
    ),
    row("content_type", content_type, "The request's Content-Type."),
    row(
        "document_root",
        document_root,
        "The root folder that applies to the request.",
    ),
    row(
        "document_uri",
        path,
        "The current path, decoded and after any rewriting.",
    ),
    row(
        "host",
        host,
        "The requested host, or the server's name if the request has none.",
    ),
    row("hostname", hostname, "The machine's name."),
    row("http_cookie", cookies, "All cookies of the request."),
    row(
        "http_x_forwarded_for",
        forwarded_for,
        "All X-Forwarded-For fields.",
    ),
    row("is_args", is_args, "A question mark if there is a query."),
    changeable(
        "limit_rate",
        limit_rate,
        set_limit_rate,
        "The response's rate limit.",
    ),
    row("msec", msec, "The time in seconds with milliseconds."),
    row(
        "nginx_version",
        nginx_version,
        "The version of nginx that Turnpike is compatible with.",
    ),
    row("pid", pid, "The process ID of the serving process."),
    row(
        "pipe",
        pipe,
        "`p` if the request was pipelined, otherwise a dot.",
    ),
    changeable("query_string", query, set_query, "The same as `$args`."),
    row(
        "proxy_protocol_addr",
        proxy::client_address,
        "The client's address from the PROXY protocol header.",
    ),
    row(
        "proxy_protocol_port",
        proxy::client_port,
        "The client's port from the PROXY protocol header.",
    ),
    row(
        "proxy_protocol_server_addr",
        proxy::server_address,
        "The server's address from the PROXY protocol header.",
    ),
    row(
        "proxy_protocol_server_port",
        proxy::server_port,
        "The server's port from the PROXY protocol header.",
    ),
    row(
        "realpath_root",
        realpath_root,
        "The root with its links resolved.",
    ),
    row("remote_addr", remote_addr, "The client's address."),
    row("remote_port", remote_port, "The client's port."),
    row(
        "remote_user",
        remote_user,
        "The user of Basic authentication.",
    ),
    row("request", request, "The request line."),
    row(
        "request_body",
        request_body,
        "The request body, if it was read.",
    ),
    row(
        "request_body_file",
        request_body_file,
        "The temporary file with the request body, if any.",
    ),
    row(
        "request_completion",
        completion,
        "`OK` if the whole response was sent.",
    ),
    row(
        "request_filename",
        request_filename,
        "The file for the path.",
    ),
    row(
        "request_id",
        request_id,
        "Sixteen random bytes in hexadecimal.",
    ),
    row(
        "http2",
        http2,
        "`h2` over TLS, `h2c` without TLS, and empty without HTTP/2.",
    ),
    row("http3", http3, "`h3` over HTTP/3, and empty without."),
    row("request_length", request_length, "Bytes of the request."),
    row("request_method", request_method, "The request's method."),
    row(
        "request_port",
        request_port,
        "The port in the request's host.",
    ),
    row(
        "request_time",
        request_time,
        "Time since the request's first byte, in seconds.",
    ),
    row(
        "request_uri",
        request_uri,
        "The target as the client wrote it.",
    ),
    row(
        "is_request_port",
        is_request_port,
        "A colon if the host has a port.",
    ),
    row("scheme", scheme, "`http` or `https`."),
    row(
        "sent_http_connection",
        sent_connection,
        "The Connection field of the answer.",
    ),
    row(
        "sent_http_content_length",
        sent_length,
        "The Content-Length field of the answer.",
    ),
    row(
        "sent_http_content_type",
        sent_type,
        "The Content-Type field of the answer.",
    ),
    row(
        "sent_http_keep_alive",
        sent_keep_alive,
        "The Keep-Alive field of the answer.",
    ),
    row(
        "sent_http_last_modified",
        sent_modified,
        "The Last-Modified field of the answer.",
    ),
    row(
        "sent_http_location",
        sent_location,
        "The Location field of the answer.",
    ),
    row(
        "sent_http_transfer_encoding",
        sent_coding,
        "The Transfer-Encoding field.",
    ),
    row("sent_http_etag", sent_etag, "The ETag field of the answer."),
    row(
        "server_addr",
        server_addr,
        "The address that the client connected to.",
    ),
    row("server_name", server_name, "The server block's first name."),
    row(
        "server_port",
        server_port,
        "The port that the client connected to.",
    ),
    row(
        "server_protocol",
        server_protocol,
        "The request's protocol.",
    ),
    row("status", status, "The answer's status."),
    row("time_iso8601", time_iso8601, "Local time in ISO 8601."),
    row(
        "time_local",
        time_local,
        "The local time in the format of logs.",
    ),
    row(
        "upstream_addr",
        upstream::address,
        "The upstream servers that were used.",
    ),
    row(
        "upstream_bytes_received",
        upstream::bytes_received,
        "Bytes received from upstream servers.",
    ),
    row(
        "upstream_bytes_sent",
        upstream::bytes_sent,
        "Bytes sent to upstream servers.",
    ),
    row(
        "upstream_queue_time",
        upstream::queue_time,
        "Time in the queue of a group of upstream servers, in seconds.",
    ),
    row(
        "upstream_connect_time",
        upstream::connect_time,
        "Time for connecting to upstream servers, in seconds.",
    ),
    row(
        "upstream_header_time",
        upstream::header_time,
        "Time until the heads of the upstream servers' responses, in seconds.",
    ),
    row(
        "upstream_response_length",
        upstream::response_length,
        "Bytes in the bodies of the upstream servers' responses.",
    ),
    row(
        "upstream_response_time",
        upstream::response_time,
        "Time until the ends of the upstream servers' responses, in seconds.",
    ),
    row(
        "upstream_status",
        upstream::status,
        "Statuses of the upstream servers' responses.",
    ),
    row(
        "uri",
        path,
        "The current path, decoded and after any rewriting.",
    ),
];

/// The variables whose values are the request's content, as far as it was read.
pub(super) const CONTENT: &[&str] = &["request_body", "request_body_file"];

const fn row(name: &'static str, get: Getter, summary: &'static str) -> VariableRow {
    VariableRow {
        name,
        get,
        set: None,
        summary,
    }
}

const fn changeable(
    name: &'static str,
    get: Getter,
    set: Setter,
    summary: &'static str,
) -> VariableRow {
    VariableRow {
        name,
        get,
        set: Some(set),
        summary,
    }
}

fn number(out: &mut Vec<u8>, value: u64) -> bool {
    append_number(out, value);
    true
}

fn text(out: &mut Vec<u8>, value: &[u8]) -> bool {
    out.extend_from_slice(value);
    true
}

fn optional(out: &mut Vec<u8>, value: Option<&[u8]>) -> bool {
    value.is_some_and(|value| text(out, value))
}

fn query(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    exchange.walk.has_query() && text(out, exchange.walk.query())
}

fn set_query(exchange: &mut Exchange, value: &[u8]) {
    exchange.walk.set_query(value);
    exchange.walk.target_changed();
}

fn binary_remote_addr(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match exchange.requester.peer().inet().map(|address| address.ip()) {
        Some(std::net::IpAddr::V4(address)) => text(out, &address.octets()),
        Some(std::net::IpAddr::V6(address)) => text(out, &address.octets()),
        None => text(out, b"unix:"),
    }
}

fn body_bytes_sent(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    number(out, exchange.account.body_sent_bytes())
}

fn bytes_sent(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    number(out, exchange.account.sent_bytes())
}

fn connection(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    number(out, exchange.requester.serial())
}

fn connection_requests(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    number(out, exchange.requester.requests())
}

fn connection_time(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let now_ms = exchange.lane.clock.now_ms();
    append_seconds(out, now_ms.saturating_sub(exchange.requester.accepted_ms()));
    true
}

fn content_length(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match exchange.body_length() {
        BodyLength::Bytes(length) => number(out, length),
        BodyLength::Unknown if exchange.body.is_finished() => number(out, exchange.body.length()),
        _ => optional(out, exchange.known_field(Known::ContentLength)),
    }
}

fn content_type(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    joined(exchange, b"content_type", b", ", out)
}

fn document_root(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    exchange.location().settings.root.folder(exchange, out);
    true
}

fn realpath_root(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut folder = Vec::new();
    document_root(exchange, &mut folder);
    match std::fs::canonicalize(std::ffi::OsStr::from_bytes(&folder)) {
        Ok(real) => text(out, &real.into_os_string().into_vec()),
        Err(_) => false,
    }
}

/// The path of a target without normal form is empty, and where no target was read there is none.
fn path(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let path = exchange.walk.path();
    let is_read = exchange.request().head().has_line || !path.is_empty();
    is_read && text(out, path)
}

fn host(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    exchange.append_host(out);
    true
}

fn hostname(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(exchange.plan.host_name().as_bytes());
    true
}

fn cookies(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    joined(exchange, b"cookie", b"; ", out)
}

fn forwarded_for(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    joined(exchange, b"x_forwarded_for", b", ", out)
}

fn is_args(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    text(
        out,
        if exchange.walk.query().is_empty() {
            b""
        } else {
            b"?"
        },
    )
}

fn limit_rate(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match exchange.sending.limit_rate() {
        Some(rate) => number(out, rate),
        None => match &exchange.location().settings.limit_rate {
            Some(template) => {
                template.evaluate(exchange, out);
                true
            }
            None => number(out, 0),
        },
    }
}

fn set_limit_rate(exchange: &mut Exchange, value: &[u8]) {
    let size = std::str::from_utf8(value)
        .ok()
        .and_then(turnpike_conf::value::size);
    if let Some(size) = size {
        exchange.sending.set_limit_rate(size);
    }
}

fn msec(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    append_seconds(out, exchange.lane.clock.unix_ms());
    true
}

fn nginx_version(_: &Exchange, out: &mut Vec<u8>) -> bool {
    text(out, NGINX_VERSION.as_bytes())
}

fn pid(_: &Exchange, out: &mut Vec<u8>) -> bool {
    number(out, u64::from(std::process::id()))
}

fn pipe(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let mark = if exchange.requester.is_pipelined() {
        b"p"
    } else {
        b"."
    };
    text(out, mark)
}

fn remote_addr(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match exchange.requester.peer() {
        PeerAddress::Inet(address) => {
            append_address(out, address.ip());
            true
        }
        PeerAddress::Unix => text(out, b"unix:"),
    }
}

fn remote_port(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match exchange.requester.peer() {
        // A proxy may name an address without a port.
        PeerAddress::Inet(address) if address.port() > 0 => number(out, u64::from(address.port())),
        PeerAddress::Inet(_) | PeerAddress::Unix => text(out, b""),
    }
}

fn remote_user(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let user_bytes = exchange.basic_credentials(out);
    out.truncate(start + user_bytes.unwrap_or_default());
    user_bytes.is_some()
}

fn request(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    text(out, exchange.request().head().line())
}

fn request_body(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let bytes = exchange.used_content();
    exchange.body.is_finished() && !bytes.is_empty() && text(out, bytes)
}

fn request_body_file(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let file = exchange.used_content_file();
    optional(out, file.map(|file| file.path_bytes()))
}

fn completion(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    text(
        out,
        if exchange.account.is_completed() {
            b"OK"
        } else {
            b""
        },
    )
}

fn request_filename(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    exchange.file_path(out);
    true
}

/// A random number of the request, the same whenever it is asked for (`$request_id`).
pub fn request_number(exchange: &Exchange) -> u128 {
    let random = || u128::from(exchange.lane.random());
    exchange.request().id(|| random() << 64 | random())
}

fn request_id(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    write!(out, "{:032x}", request_number(exchange)).is_ok()
}

fn request_length(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    number(out, exchange.account.request_bytes())
}

fn request_method(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    // That of the request also where a subrequest has another.
    let method = match exchange.purpose() {
        Purpose::Request => exchange.method_name(),
        _ => exchange.request().head().method_text(),
    };
    exchange.request().head().has_line && !method.is_empty() && text(out, method)
}

fn request_port(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match exchange.named_host() {
        (_, 0) => text(out, b""),
        (_, port) => number(out, u64::from(port)),
    }
}

fn is_request_port(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    text(
        out,
        match exchange.named_host() {
            (_, 0) => b"",
            _ => b":",
        },
    )
}

fn request_time(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let now_ms = exchange.lane.clock.now_ms();
    append_seconds(out, now_ms.saturating_sub(exchange.account.started_ms()));
    true
}

fn request_uri(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let head = exchange.request().head();
    head.has_line && !exchange.walk.path().is_empty() && text(out, head.origin())
}

fn scheme(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    text(out, exchange.scheme().as_bytes())
}

fn sent_connection(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match (
        exchange.response.status(),
        exchange.sending.keeps_connection(),
    ) {
        (101, _) => text(out, b"upgrade"),
        (_, true) => text(out, b"keep-alive"),
        (_, false) => text(out, b"close"),
    }
}

fn sent_keep_alive(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match exchange.location().settings.keepalive_header_s {
        Some(seconds) if exchange.sending.keeps_connection() => {
            out.extend_from_slice(b"timeout=");
            number(out, seconds)
        }
        _ => false,
    }
}

fn sent_length(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let length = exchange.response.shown_content_length();
    length.is_some_and(|length| number(out, length))
}

fn sent_type(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let kind = exchange.response.shown_content_type();
    !kind.is_empty() && text(out, kind)
}

fn sent_modified(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let modified = exchange.response.last_modified();
    modified.is_some_and(|modified| text(out, &turnpike_wire::date::format(modified)))
}

fn sent_location(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    if exchange.response.location().is_empty() {
        return false;
    }
    // It becomes what is sent when the head is written, and only logs are later than that.
    match exchange.account.action() {
        Action::Logging => response_head::append_location(exchange, out),
        _ => out.extend_from_slice(exchange.response.location()),
    }
    true
}

fn sent_coding(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    exchange.sending.is_chunked() && text(out, b"chunked")
}

fn sent_etag(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let etag = exchange.response.etag();
    !etag.is_empty() && text(out, etag)
}

fn server_addr(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match exchange.local_address() {
        Some(address) => {
            append_address(out, address.ip());
            true
        }
        None => text(out, exchange.listen().address.to_string().as_bytes()),
    }
}

fn server_name(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    text(out, &exchange.server().name)
}

fn server_port(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match exchange.local_address() {
        Some(address) => number(out, u64::from(address.port())),
        None => text(out, b""),
    }
}

fn http2(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let name: &[u8] = match (exchange.request().head().version, exchange.requester.tls()) {
        (Version::Http20, Some(_)) => b"h2",
        (Version::Http20, None) => b"h2c",
        _ => b"",
    };
    text(out, name)
}

fn http3(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let is_http3 = exchange.request().head().version == Version::Http30;
    text(out, if is_http3 { b"h3" } else { b"" })
}

fn server_protocol(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let head = exchange.request().head();
    // One that was not read to its end is empty, as in nginx.
    let protocol = head.protocol();
    !protocol.is_empty() && text(out, if head.has_line { protocol } else { b"" })
}

fn status(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let status = exchange.logged_status();
    write!(out, "{status:03}").is_ok()
}

fn time_iso8601(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    turnpike_plan::time::append_iso8601(exchange.lane.clock.unix_seconds(), out);
    true
}

fn time_local(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    turnpike_plan::time::append_local(exchange.lane.clock.unix_seconds(), out);
    true
}

/// `$http_NAME`: all fields of that name, joined as nginx joins them.
pub(super) fn request_field(exchange: &Exchange, name: &[u8], out: &mut Vec<u8>) -> bool {
    joined(exchange, name, b", ", out)
}

fn joined(exchange: &Exchange, name: &[u8], separator: &[u8], out: &mut Vec<u8>) -> bool {
    let mut found = false;
    for (own, value) in exchange.fields().iter() {
        if !same_name(own, name) {
            continue;
        }
        if found {
            out.extend_from_slice(separator);
        }
        found = true;
        out.extend_from_slice(value);
    }
    found
}

/// `$sent_http_NAME`: values of the response's fields of that name.
pub(super) fn sent_field(exchange: &Exchange, name: &[u8], out: &mut Vec<u8>) -> bool {
    let coding = exchange.response.shown_coding();
    if !coding.is_empty() && same_name(b"Content-Encoding", name) {
        return text(out, coding);
    }
    values(exchange.response.fields(), name, out)
}

/// `$sent_trailer_NAME`, `$upstream_trailer_NAME`: values of the fields of that name.
pub(super) fn values(fields: &Fields, name: &[u8], out: &mut Vec<u8>) -> bool {
    let mut found = false;
    for (own, value) in fields.iter() {
        if same_name(own, name) {
            if found {
                out.extend_from_slice(b", ");
            }
            found = true;
            out.extend_from_slice(value);
        }
    }
    found
}

/// `$arg_NAME`: the first argument of that name, case aside.
pub(super) fn argument(exchange: &Exchange, name: &[u8], out: &mut Vec<u8>) -> bool {
    let found = exchange
        .walk
        .query()
        .split(|byte| *byte == b'&')
        .find_map(|pair| {
            let equals = memchr::memchr(b'=', pair)?;
            pair[..equals]
                .eq_ignore_ascii_case(name)
                .then(|| &pair[equals + 1..])
        });
    optional(out, found)
}

/// `$cookie_NAME`.
pub(super) fn cookie(exchange: &Exchange, name: &[u8], out: &mut Vec<u8>) -> bool {
    let fields = exchange.fields().entries();
    let cookies = fields.filter(|field| field.known == Known::Cookie);
    let found = cookies.map(|field| field.value).find_map(|value| {
        value.split(|byte| *byte == b';').find_map(|pair| {
            let pair = pair.trim_ascii_start();
            let equals = memchr::memchr(b'=', pair)?;
            let own = pair[..equals].trim_ascii_end();
            own.eq_ignore_ascii_case(name)
                .then(|| pair[equals + 1..].trim_ascii_start())
        })
    });
    optional(out, found)
}
