//! Request lines.

use super::*;
use HeadError::*;

struct Taken {
    line: &'static str,
    method: Method,
    origin: &'static str,
    path: &'static str,
    query: Option<&'static str>,
    clean: bool,
    host: Option<&'static str>,
    version: Version,
}

/// A line with the method `GET`, HTTP/1.1, no host and a clean path.
const fn get(
    line: &'static str,
    origin: &'static str,
    path: &'static str,
    query: Option<&'static str>,
) -> Taken {
    let (method, version) = (Method::Get, Version::Http11);
    Taken {
        line,
        method,
        origin,
        path,
        query,
        clean: true,
        host: None,
        version,
    }
}

#[rustfmt::skip]
fn taken() -> Vec<Taken> {
    vec![
        get("GET / HTTP/1.1", "/", "/", None),
        get("GET /a/b.c HTTP/1.1", "/a/b.c", "/a/b.c", None),
        get("GET /a?b=c HTTP/1.1", "/a?b=c", "/a", Some("b=c")),
        get("GET /a? HTTP/1.1", "/a?", "/a", Some("")),
        get("GET /a?b?c//..%zz HTTP/1.1", "/a?b?c//..%zz", "/a", Some("b?c//..%zz")),
        get("GET /a?b#c?d HTTP/1.1", "/a?b#c?d", "/a", Some("b")),
        get("GET /a#b?c HTTP/1.1", "/a#b?c", "/a", None),
        get("GET   /   HTTP/1.1", "/", "/", None),
        get("GET / HTTP/1.1  ", "/", "/", None),
        get("GET / HTTP/1.9", "/", "/", None),
        get("GET / HTTP/1.123", "/", "/", None),
        get("GET / HTTP/1.01", "/", "/", None),
        get("GET /\u{e9}\"<>\\^`{|} HTTP/1.1", "/\u{e9}\"<>\\^`{|}", "/\u{e9}\"<>\\^`{|}", None),
        Taken { clean: false, ..get("GET /a//b HTTP/1.1", "/a//b", "/a//b", None) },
        Taken { clean: false, ..get("GET /a/. HTTP/1.1", "/a/.", "/a/.", None) },
        Taken { clean: false, ..get("GET /.a HTTP/1.1", "/.a", "/.a", None) },
        Taken { clean: false, ..get("GET /%41?%42 HTTP/1.1", "/%41?%42", "/%41", Some("%42")) },
        Taken { version: Version::Http10, ..get("GET / HTTP/1.0", "/", "/", None) },
        Taken { version: Version::Http10, ..get("GET / HTTP/1.00", "/", "/", None) },
        Taken { version: Version::Http09, ..get("GET /a?b", "/a?b", "/a", Some("b")) },
        Taken { version: Version::Http09, ..get("GET /a  ", "/a", "/a", None) },
        Taken { method: Method::Other, ..get("BREW / HTTP/1.1", "/", "/", None) },
        Taken { method: Method::Other, ..get("_M-X / HTTP/1.1", "/", "/", None) },
        Taken { host: Some("Ex.com"),
            ..get("GET http://Ex.com/a?b HTTP/1.1", "/a?b", "/a", Some("b")) },
        Taken { host: Some("h"), ..get("GET http://h HTTP/1.1", "/", "/", None) },
        Taken { host: Some("h"), ..get("GET http://h.:80 HTTP/1.1", "/", "/", None) },
        Taken { host: Some("h"), ..get("GET http://h?a#b HTTP/1.1", "?a#b", "/", Some("a")) },
        Taken { host: Some("h"), ..get("GET h+t.p-9://h:/ HTTP/1.1", "/", "/", None) },
        Taken { host: Some("[::1]"), ..get("GET http://[::1]:8/ HTTP/1.1", "/", "/", None) },
    ]
}

#[test]
fn request_lines_are_taken_apart() {
    for case in taken() {
        for (before, line_end) in [("", "\r\n"), ("", "\n"), ("\r\n\n\r\r\n", "\r\n")] {
            check(&case, before, line_end);
        }
    }
}

fn check(case: &Taken, before: &str, line_end: &str) {
    let text = format!("{before}{}{line_end}Host: other\n\n", case.line);
    let head = parse_whole(text.as_bytes());
    let of = |span: Span| String::from_utf8_lossy(span.of(text.as_bytes())).into_owned();
    assert_eq!(of(head.line), case.line);
    assert_eq!(head.method, case.method, "{text}");
    assert_eq!(of(head.method_span), case.line.split(' ').next().unwrap());
    assert_eq!(of(head.origin), case.origin, "{text}");
    assert_eq!(of(head.path), case.path, "{text}");
    assert_eq!(head.query.map(of).as_deref(), case.query, "{text}");
    assert_eq!(head.path_clean, case.clean, "{text}");
    assert_eq!(head.version, case.version, "{text}");
    if case.version == Version::Http09 {
        assert_eq!(head.host, None);
        assert_eq!(
            head.head_len,
            before.len() + case.line.len() + line_end.len()
        );
    } else {
        assert_eq!(
            head.host.map(of).as_deref(),
            case.host.or(Some("other")),
            "{text}"
        );
        assert_eq!(head.head_len, text.len());
    }
}

#[test]
fn methods_are_found_by_their_text() {
    for method in Method::ALL {
        assert_eq!(Method::of(method.name().as_bytes()), method);
        if matches!(method, Method::Connect | Method::Trace) {
            continue;
        }
        let text = format!("{} / HTTP/1.0\r\n\r\n", method.name());
        assert_eq!(parse_whole(text.as_bytes()).method, method);
    }
}

const REFUSED: &[(HeadError, &[&str])] = &[
    (
        InvalidMethod,
        &[" ", "g", "G1", "\u{16}", "GET\r", "GET\t", "GET\n"],
    ),
    (
        InvalidRequestLine,
        &["GET *", "PRI *", "GET \r", "GET a/", "GET 1"],
    ),
    (
        InvalidRequestLine,
        &["GET http:/h", "GET http/", "GET http://h_", "GET http://u@"],
    ),
    (
        InvalidRequestLine,
        &["GET http://[:/", "GET http://[::1]x", "GET http://h:8x"],
    ),
    (
        InvalidRequestLine,
        &[
            "GET /\u{2}",
            "GET /\u{7f}",
            "GET /\t",
            "GET /?\u{1}",
            "GET /a\0",
        ],
    ),
    (
        InvalidRequestLine,
        &[
            "GET / /",
            "GET /\rx",
            "GET / h",
            "GET / HTTPS",
            "GET / HTTP/0",
        ],
    ),
    (
        InvalidRequestLine,
        &["GET / HTTP/.", "GET / HTTP/1x", "GET / HTTP/1.\r"],
    ),
    (
        InvalidRequestLine,
        &["GET / HTTP/1.x", "GET / HTTP/1.1x", "GET / HTTP/1.1000"],
    ),
    (
        InvalidRequestLine,
        &["GET / HTTP/1.1 x", "GET / HTTP/1.1\rx"],
    ),
    (InvalidVersion, &["GET / HTTP/2", "GET / HTTP/11"]),
    (InvalidHttp09Method, &["POST /\r\n", "CONNECT h:1 \n"]),
    (
        InvalidRequestLine,
        &["CONNECT /", "CONNECT h ", "CONNECT h: ", "CONNECT h:1/"],
    ),
    (
        InvalidTargetHost,
        &["GET http:/// HTTP/1.1\r\n", "GET http://a..b/ HTTP/1.1\r\n"],
    ),
    (
        InvalidTargetHost,
        &["GET http://h:65536/ HTTP/1.1\n", "CONNECT :1 HTTP/1.1\n"],
    ),
];

#[test]
fn lines_are_refused_as_soon_as_they_are_wrong() {
    for (expected, texts) in REFUSED {
        for text in *texts {
            let (result, head) = parse(text.as_bytes(), &nginx());
            assert_eq!(result, Err(*expected), "{text:?}");
            let line = text.split(['\r', '\n']).next().unwrap();
            assert_eq!(head.line.of(text.as_bytes()), line.as_bytes(), "{text:?}");
            let before = &text.as_bytes()[..text.len() - 1];
            let (result, _) = parse(before, &nginx());
            assert!(
                matches!(result, Ok(HeadStep::Incomplete { .. })),
                "{text:?}"
            );
        }
    }
}
