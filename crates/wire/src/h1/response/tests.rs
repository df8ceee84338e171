#![allow(clippy::unwrap_used)]

use super::*;

/// Parses the whole text at once and again byte by byte, and checks that both find the same.
fn parse(text: &str, method: Method) -> (Result<HeadStep, ResponseError>, ResponseHead) {
    parse_under(Strictness::Rfc, text, method)
}

fn parse_under(
    strictness: Strictness,
    text: &str,
    method: Method,
) -> (Result<HeadStep, ResponseError>, ResponseHead) {
    let text = text.as_bytes();
    let rules = HeadRules {
        strictness,
        ..HeadRules::default()
    };
    let mut whole = ResponseHead::default();
    let result = parse_response(text, 0, &rules, method, &mut whole);
    let mut pieces = ResponseHead::default();
    let mut piecewise = Ok(HeadStep::Incomplete { scanned: 0 });
    for end in 0..=text.len() {
        let Ok(HeadStep::Incomplete { scanned }) = piecewise else {
            break;
        };
        piecewise = parse_response(&text[..end], scanned, &rules, method, &mut pieces);
    }
    assert_eq!(result, piecewise, "{:?}", String::from_utf8_lossy(text));
    if result.is_ok() {
        assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
    }
    (result, whole)
}

#[test]
fn status_lines_are_taken_apart() {
    type Expected = Option<(u16, &'static str, Version)>;
    let table: &[(&str, Expected)] = &[
        ("HTTP/1.1 200 OK\r\n", Some((200, "OK", Version::Http11))),
        (
            "HTTP/1.0 404 Not Found\n",
            Some((404, "Not Found", Version::Http10)),
        ),
        ("HTTP/1.1 200\r\n", Some((200, "", Version::Http11))),
        ("HTTP/1.1 299 \r\n", Some((299, "", Version::Http11))),
        ("HTTP/1.1   200 OK\r\n", Some((200, "OK", Version::Http11))),
        (
            "HTTP/1.1 403.1 Denied\r\n",
            Some((403, "1 Denied", Version::Http11)),
        ),
        (
            "HTTP/1.2 200 \u{e9}\t\r\n",
            Some((200, "\u{e9}\t", Version::Http11)),
        ),
        ("HTTP/2.0 200 OK\r\n", Some((200, "OK", Version::Http11))),
        ("HTTP/0.9 200 OK\r\n", None),
        ("HTTP/1 200 OK\r\n", None),
        ("HTTP/1. 200 OK\r\n", None),
        ("HTTP/1.1234 200 OK\r\n", None),
        ("http/1.1 200 OK\r\n", None),
        ("HTTP/1.1 20 OK\r\n", None),
        ("HTTP/1.1 2000 OK\r\n", None),
        ("HTTP/1.1 099 OK\r\n", None),
        ("HTTP/1.1 200 OK\rx", None),
        ("\r\nHTTP/1.1 200 OK\r\n", None),
        ("ICY 200 OK\r\n", None),
    ];
    for (line, expected) in table {
        let text = format!("{line}\r\n");
        let (result, head) = parse(&text, Method::Get);
        let reason = std::str::from_utf8(head.reason.of(text.as_bytes())).unwrap();
        match expected {
            Some(expected) => {
                assert_eq!(result, Ok(HeadStep::Complete), "{text:?}");
                assert_eq!((head.status, reason, head.version), *expected, "{text:?}");
                assert_eq!(head.head_len, text.len());
            }
            None => assert_eq!(result, Err(ResponseError::InvalidStatusLine), "{text:?}"),
        }
    }
}

#[test]
fn the_framing_of_a_body_is_unambiguous() {
    use BodyEnd::{Length, Marked, UntilClose};
    use ResponseError::*;
    let none = BodyEnd::None;
    let get = Method::Get;
    let table: &[(Method, u16, &str, Result<BodyEnd, ResponseError>)] = &[
        (get, 200, "", Ok(UntilClose)),
        (get, 200, "Content-Length: 5\r\n", Ok(Length(5))),
        (get, 200, "Transfer-Encoding: Chunked\r\n", Ok(Marked)),
        (get, 204, "", Ok(none)),
        (get, 204, "Content-Length: 5\r\n", Ok(none)),
        (get, 304, "Content-Length: 5\r\n", Ok(none)),
        (get, 100, "", Ok(none)),
        (get, 101, "Upgrade: websocket\r\n", Ok(none)),
        (Method::Head, 200, "Content-Length: 5\r\n", Ok(none)),
        (
            Method::Head,
            200,
            "Transfer-Encoding: chunked\r\n",
            Ok(none),
        ),
        (Method::Connect, 200, "Content-Length: 5\r\n", Ok(none)),
        (Method::Connect, 403, "Content-Length: 5\r\n", Ok(Length(5))),
        (
            get,
            200,
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            Err(DuplicateContentLength),
        ),
        (
            get,
            200,
            "Content-Length: 5 5\r\n",
            Err(InvalidContentLength),
        ),
        (
            get,
            200,
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            Err(DuplicateTransferEncoding),
        ),
        (
            get,
            200,
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            Err(LengthAndTransferEncoding),
        ),
        (get, 200, " folded\r\n", Err(InvalidField)),
        (get, 200, "a: \0\r\n", Err(InvalidField)),
    ];
    for (method, status, fields, expected) in table {
        let text = format!("HTTP/1.1 {status} X\r\n{fields}\r\n");
        let (result, head) = parse(&text, *method);
        assert_eq!(result.map(|_| head.framing), *expected, "{text:?}");
        if let Err(error) = expected {
            assert!(error.reason().starts_with("upstream sent "));
        }
    }
}

#[test]
fn connections_are_kept_if_the_body_has_an_end() {
    let table = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n", false),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n",
            false,
        ),
        ("HTTP/1.1 200 OK\r\n", false),
        ("HTTP/1.1 204 No Content\r\n", true),
        ("HTTP/1.1 101 Switching Protocols\r\n", false),
    ];
    for (text, expected) in table {
        let (_, head) = parse(&format!("{text}\r\n"), Method::Get);
        assert_eq!(head.keep_alive(), expected, "{text:?}");
    }
    let (_, head) = parse(
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        Method::Get,
    );
    assert!(head.is_interim());
    assert_eq!(head.head_len, 28);
}

#[test]
fn fields_of_any_name_are_kept() {
    let text = "HTTP/1.1 200 OK\r\nX_A: 1\r\nHTTP/1.1 200 OK\r\nx.b: 2\r\nserver: s\r\n\r\n";
    let (result, head) = parse_under(Strictness::Nginx, text, Method::Get);
    assert_eq!(result, Ok(HeadStep::Complete));
    let marks: Vec<_> = head
        .fields
        .iter()
        .map(|f| (f.valid, f.underscore, f.known))
        .collect();
    let other = Known::Other;
    assert_eq!(
        marks,
        [
            (true, true, other),
            (false, false, other),
            (true, false, Known::Server)
        ]
    );
    assert_eq!(
        head.find(Known::Server).unwrap().value.of(text.as_bytes()),
        b"s"
    );
    assert_eq!(head.find(Known::Date), None);
    assert!(head.find_name(text.as_bytes(), b"x_a").is_some());
}

/// Header lines, and the fields found by nginx's rules and by the RFC's; `None`: the head is
/// refused.
type LinesCase = (&'static str, Option<&'static str>, Option<&'static str>);

const LINES: &[LinesCase] = &[
    ("a: b\r\n", Some("a=b"), Some("a=b")),
    ("a.b!: c\r\n", Some("a.b!=c"), Some("a.b!=c")),
    ("a\r\n", Some("a="), None),
    ("a/b: c\r\n", Some("a/b=c"), None),
    ("HTTP/1.1 200 OK\r\n", Some(""), None),
    ("a : b\r\n", None, Some("a=b")),
    ("a \t: b\r\n", None, Some("a=b")),
    ("a b: c\r\n", None, None),
    ("a \r\n", None, None),
    (" a: b\r\n", None, None),
    (": b\r\n", None, None),
    ("a:\tb\t\r\n", Some("a=\tb\t"), Some("a=b")),
    ("a: b\tc\r\n", Some("a=b\tc"), Some("a=b\tc")),
    ("a: \u{e9}\r\n", Some("a=\u{e9}"), Some("a=\u{e9}")),
    ("a: b\u{1}\r\n", Some("a=b\u{1}"), None),
    ("a: b\u{7f}\r\n", Some("a=b\u{7f}"), None),
    ("a: b\0\r\n", None, None),
    ("a: b\r\r\n", Some("a=b"), None),
    ("a: b\rc\r\n", None, None),
];

#[test]
fn lines_are_read_by_the_rfc_unless_nginx_is_asked_for() {
    for (lines, nginx, rfc) in LINES {
        for (strictness, expected) in [(Strictness::Nginx, nginx), (Strictness::Rfc, rfc)] {
            let text = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
            let (result, head) = parse_under(strictness, &text, Method::Get);
            let of = |span: Span| String::from_utf8_lossy(span.of(text.as_bytes())).into_owned();
            let line = |field: &Field| format!("{}={}", of(field.name), of(field.value));
            let found: Vec<String> = head.fields.iter().map(line).collect();
            match expected {
                Some(expected) => assert_eq!(found.join(" "), *expected, "{text:?}"),
                None => assert_eq!(result, Err(ResponseError::InvalidField), "{text:?}"),
            }
        }
    }
}

#[test]
fn limits() {
    let rules = HeadRules {
        line_bytes_max: 64,
        head_bytes_max: 100,
        fields_max: 2,
        ..HeadRules::default()
    };
    let (line, long) = ("HTTP/1.1 200 OK\r\n", "x".repeat(70));
    let table = [
        (
            format!("{line}a: b\r\nc: d\r\n\r\n"),
            Ok(HeadStep::Complete),
        ),
        (
            format!("{line}a: b\r\nc: d\r\ne: f\r\n"),
            Err(ResponseError::TooManyFields),
        ),
        (format!("{line}a: {long}"), Err(ResponseError::TooLarge)),
        (format!("HTTP/1.1 200 {long}"), Err(ResponseError::TooLarge)),
        (
            format!("{line}a: {}\r\nc: {}", &long[..40], &long[..40]),
            Err(ResponseError::TooLarge),
        ),
    ];
    for (text, expected) in table {
        let mut head = ResponseHead::default();
        let result = parse_response(text.as_bytes(), 0, &rules, Method::Get, &mut head);
        assert_eq!(result, expected, "{text:?}");
    }
}

#[test]
fn heads_that_both_parsers_accept_are_read_alike() {
    let seeds = [
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.0 302 Moved Temporarily\r\nLocation:  /x \r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nSet-Cookie: a=b\n\n",
    ];
    for seed in seeds {
        for at in 0..seed.len() {
            for byte in *b" \r\n:\tA9_.\0\x7f" {
                let mut text = seed.as_bytes().to_vec();
                text[at] = byte;
                compare(&text);
            }
        }
    }
}

fn compare(text: &[u8]) {
    let mut head = ResponseHead::default();
    let ours = parse_response(text, 0, &HeadRules::default(), Method::Get, &mut head);
    let mut fields = [httparse::EMPTY_HEADER; 16];
    let mut theirs = httparse::Response::new(&mut fields);
    let Ok(httparse::Status::Complete(len)) = theirs.parse(text) else {
        return;
    };
    if ours != Ok(HeadStep::Complete) {
        return;
    }
    let shown = String::from_utf8_lossy(text);
    assert_eq!(head.head_len, len, "{shown:?}");
    assert_eq!(Some(head.status), theirs.code, "{shown:?}");
    assert_eq!(head.fields.len(), theirs.headers.len(), "{shown:?}");
    for (ours, theirs) in head.fields.iter().zip(theirs.headers.iter()) {
        assert_eq!(ours.name.of(text), theirs.name.as_bytes(), "{shown:?}");
        assert_eq!(
            ours.value.of(text).trim_ascii(),
            theirs.value.trim_ascii(),
            "{shown:?}"
        );
    }
}

#[test]
fn transfer_codings_are_read_in_their_order() {
    use BodyEnd::{Marked, UntilClose};
    use ResponseError::{
        DuplicateTransferEncoding, LengthAndTransferEncoding, UnknownTransferEncoding,
    };
    use TransferCoding::{Deflate, Gzip};
    type Expected = Result<(BodyEnd, Option<TransferCoding>), ResponseError>;
    let table: &[(&[&str], Expected)] = &[
        (&["chunked"], Ok((Marked, None))),
        (&["gzip, chunked"], Ok((Marked, Some(Gzip)))),
        (&["X-GZip ,\tChunked"], Ok((Marked, Some(Gzip)))),
        (&[", deflate,,chunked,"], Ok((Marked, Some(Deflate)))),
        (&["gzip", "chunked"], Ok((Marked, Some(Gzip)))),
        (&["gzip"], Ok((UntilClose, Some(Gzip)))),
        (&["chunked, gzip"], Err(UnknownTransferEncoding)),
        (&["chunked, chunked"], Err(UnknownTransferEncoding)),
        (&["chunked", "chunked"], Err(DuplicateTransferEncoding)),
        (&["chunked", "gzip"], Err(DuplicateTransferEncoding)),
        (&["gzip, gzip, chunked"], Err(UnknownTransferEncoding)),
        (
            &["gzip", "deflate", "chunked"],
            Err(UnknownTransferEncoding),
        ),
        (&["compress, chunked"], Err(UnknownTransferEncoding)),
        (&["br, chunked"], Err(UnknownTransferEncoding)),
        (&["identity"], Err(UnknownTransferEncoding)),
        (&["gzip;q=1, chunked"], Err(UnknownTransferEncoding)),
        (&["gzip chunked"], Err(UnknownTransferEncoding)),
        (&[""], Err(UnknownTransferEncoding)),
        (&[","], Err(UnknownTransferEncoding)),
        (
            &["gzip\r\nContent-Length: 5"],
            Err(LengthAndTransferEncoding),
        ),
    ];
    for (values, expected) in table {
        let line = |value: &&str| format!("Transfer-Encoding: {value}\r\n");
        let fields: String = values.iter().map(line).collect();
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let (result, head) = parse(&text, Method::Get);
        let found = result.map(|_| (head.framing, head.coding));
        assert_eq!(found, *expected, "{values:?}");
    }
}
