//! Host, connection and the end of the body.

use super::*;
use HeadError::*;

#[test]
fn hosts_are_noted_and_refused() {
    type Expected = Result<(&'static str, u16, bool), HeadError>;
    let table: &[(&str, Expected)] = &[
        ("GET / HTTP/1.1\nHost: a.b\n\n", Ok(("a.b", 0, false))),
        ("GET / HTTP/1.1\nHost: A.b.:81\n\n", Ok(("A.b", 81, true))),
        (
            "GET http://c:82/ HTTP/1.1\nHost: A:81\n\n",
            Ok(("c", 82, false)),
        ),
        ("GET http://c/ HTTP/1.1\n\n", Err(HeadError::MissingHost)),
        (
            "GET http://c/ HTTP/1.1\nHost: ..\n\n",
            Err(HeadError::InvalidHost),
        ),
        ("GET http://c/ HTTP/1.0\n\n", Ok(("c", 0, false))),
        ("GET / HTTP/1.0\n\n", Ok(("", 0, false))),
        ("GET / HTTP/1.1\n\n", Err(HeadError::MissingHost)),
        ("GET / HTTP/1.1\nHost:\n\n", Err(HeadError::InvalidHost)),
        ("GET / HTTP/1.0\nHost: a b\n", Err(HeadError::InvalidHost)),
        (
            "GET / HTTP/1.0\nHost: a\nHost: a\n",
            Err(HeadError::DuplicateHost),
        ),
    ];
    for (text, expected) in table {
        let (result, head) = parse(text.as_bytes(), &nginx());
        let name = head.host.unwrap_or_default().of(text.as_bytes());
        let found = (
            std::str::from_utf8(name).unwrap(),
            head.host_port,
            head.host_upper,
        );
        assert_eq!(result.map(|_| found), *expected, "{text}");
    }
}

const FRAMINGS: &[(&str, &str, Result<Framing, HeadError>)] = &[
    ("1.1", "", Ok(Framing::None)),
    ("1.0", "Content-Length: 5\n", Ok(Framing::Length(5))),
    ("1.1", "Content-Length: 0\n", Ok(Framing::Length(0))),
    ("1.1", "Content-Length: 007\n", Ok(Framing::Length(7))),
    (
        "1.1",
        "Content-Length: 9223372036854775807\n",
        Ok(Framing::Length(i64::MAX as u64)),
    ),
    (
        "1.1",
        "Content-Length: 9223372036854775808\n",
        Err(InvalidContentLength),
    ),
    ("1.1", "Content-Length:\n", Err(InvalidContentLength)),
    ("1.1", "Content-Length: +5\n", Err(InvalidContentLength)),
    ("1.1", "Content-Length: -5\n", Err(InvalidContentLength)),
    ("1.1", "Content-Length: 5, 5\n", Err(InvalidContentLength)),
    ("1.1", "Content-Length: 0x5\n", Err(InvalidContentLength)),
    ("1.1", "Content-Length: 5\t\n", Err(InvalidContentLength)),
    (
        "1.1",
        "Content-Length: 5\nContent-Length: 5\n",
        Err(DuplicateField),
    ),
    ("1.1", "Transfer-Encoding: chunked\n", Ok(Framing::Chunked)),
    ("1.1", "transfer-encoding: CHUNKED\n", Ok(Framing::Chunked)),
    (
        "1.1",
        "Transfer-Encoding: identity\n",
        Err(UnknownTransferEncoding),
    ),
    (
        "1.1",
        "Transfer-Encoding: chunked, identity\n",
        Err(UnknownTransferEncoding),
    ),
    (
        "1.1",
        "Transfer-Encoding: gzip, chunked\n",
        Err(UnknownTransferEncoding),
    ),
    (
        "1.1",
        "Transfer-Encoding: chunked\t\n",
        Err(UnknownTransferEncoding),
    ),
    ("1.1", "Transfer-Encoding\n", Err(UnknownTransferEncoding)),
    (
        "1.1",
        "Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n",
        Err(DuplicateField),
    ),
    (
        "1.1",
        "Transfer-Encoding: chunked\nContent-Length: 5\n",
        Err(LengthAndTransferEncoding),
    ),
    (
        "1.1",
        "Content-Length: 5\nTransfer-Encoding: chunked\n",
        Err(LengthAndTransferEncoding),
    ),
    (
        "1.1",
        "Content-Length: 0\nTransfer-Encoding: chunked\n",
        Err(LengthAndTransferEncoding),
    ),
    (
        "1.0",
        "Transfer-Encoding: chunked\n",
        Err(TransferEncodingIn10),
    ),
];

#[test]
fn the_framing_of_a_body_is_unambiguous() {
    for (version, fields, expected) in FRAMINGS {
        let text = format!("POST / HTTP/{version}\nHost: h\n{fields}\n");
        let (result, head) = parse(text.as_bytes(), &nginx());
        assert_eq!(result.map(|_| head.framing), *expected, "{text}");
    }
}

#[test]
fn connections_are_kept_as_in_nginx() {
    let table: &[(&str, &str, bool, bool)] = &[
        ("1.1", "", true, false),
        ("1.0", "", false, false),
        ("1.1", "Connection: close\n", false, false),
        ("1.1", "Connection: Close\n", false, false),
        ("1.0", "Connection: Keep-Alive\n", true, false),
        ("1.0", "Connection: te, keep-alive\n", true, false),
        ("1.1", "Connection: keep-alive, close\n", false, false),
        (
            "1.1",
            "Connection: close\nConnection: keep-alive\n",
            true,
            false,
        ),
        (
            "1.1",
            "Connection: keep-alive\nConnection: close\n",
            false,
            false,
        ),
        ("1.1", "Connection: Upgrade\n", true, true),
        ("1.1", "Connection: keep-alive, Upgrade\n", true, true),
    ];
    for (version, fields, keep_alive, upgrade) in table {
        let text = format!("GET / HTTP/{version}\nHost: h\n{fields}\n");
        let head = parse_whole(text.as_bytes());
        assert_eq!(
            (head.keep_alive(), head.connection.upgrade),
            (*keep_alive, *upgrade),
            "{text}"
        );
    }
}

#[test]
fn continue_is_expected_in_11_only() {
    let table = [
        ("1.1", "100-continue", true),
        ("1.1", "100-Continue", true),
        ("1.0", "100-continue", false),
        ("1.1", "something", false),
    ];
    for (version, value, expected) in table {
        let text = format!("PUT / HTTP/{version}\nHost: h\nExpect: {value}\n\n");
        assert_eq!(
            parse_whole(text.as_bytes()).expect_continue,
            expected,
            "{text}"
        );
    }
}

#[test]
fn methods_that_are_refused() {
    let complete = Ok(HeadStep::Complete);
    let with_body = "CONNECT h:1 HTTP/1.1\nHost: h\nContent-Length: 1\n\n";
    let table = [
        (
            "TRACE / HTTP/1.1\nHost: h\n\n",
            true,
            Err(HeadError::TraceRefused),
        ),
        (
            "CONNECT h:1 HTTP/1.1\nHost: h\n\n",
            false,
            Err(HeadError::ConnectRefused),
        ),
        (
            "CONNECT h:1 HTTP/1.0\n\n",
            true,
            Err(HeadError::ConnectRefused),
        ),
        (
            "CONNECT h:1 HTTP/1.1\nHost: h\nContent-Length: 0\n\n",
            true,
            complete,
        ),
        (with_body, true, Err(HeadError::ConnectWithBody)),
    ];
    for (text, connect, expected) in table {
        let rules = HeadRules { connect, ..nginx() };
        let (result, head) = parse(text.as_bytes(), &rules);
        assert_eq!(result, expected, "{text}");
        if head.method == Method::Connect {
            assert_eq!(head.path.of(text.as_bytes()), b"/");
            assert_eq!(head.target.of(text.as_bytes()), b"h:1");
        }
    }
}

#[test]
fn http_0_9_is_allowed_by_the_rules() {
    for (http09, expected) in [
        (true, Ok(HeadStep::Complete)),
        (false, Err(HeadError::Http09Refused)),
    ] {
        let rules = HeadRules { http09, ..nginx() };
        for text in ["GET /a\r\n", "GET http://a/\n"] {
            assert_eq!(parse(text.as_bytes(), &rules).0, expected, "{text}");
        }
        let (whole, _) = parse(b"GET / HTTP/1.0\r\n\r\n", &rules);
        assert_eq!(whole, Ok(HeadStep::Complete));
    }
}

#[test]
fn methods_that_never_end_are_unknown() {
    let rules = HeadRules::default();
    for (length, expected) in [
        (32, Ok(HeadStep::Incomplete { scanned: 32 })),
        (33, Err(HeadError::UnknownMethod)),
        (20_000, Err(HeadError::UnknownMethod)),
    ] {
        let text = "A".repeat(length);
        assert_eq!(parse(text.as_bytes(), &rules).0, expected, "{length}");
    }
}

#[test]
fn each_cause_has_a_status_and_a_message() {
    for error in HeadError::ALL {
        assert!(
            [400, 405, 414, 494, 501, 505].contains(&error.status()),
            "{error:?}"
        );
        assert!(error.reason().starts_with("client sent "), "{error:?}");
    }
}
