//! Differences between the RFC's rules and nginx's.

use super::*;
use HeadError::*;

fn by_rfc(text: &str) -> (Result<HeadStep, HeadError>, RequestHead) {
    parse(text.as_bytes(), &HeadRules::default())
}

/// Header lines, and the parsed fields or the error.
const LINES: &[(&str, Result<&str, HeadError>)] = &[
    ("a: b\r\n", Ok("a=b")),
    ("a: b\n", Ok("a=b")),
    ("a:\t b\t \r\n", Ok("a=b")),
    ("a: b\tc\r\n", Ok("a=b\tc")),
    ("a:\r\nb: \t\r\n", Ok("a= b=")),
    ("a: \u{e9}\r\n", Ok("a=\u{e9}")),
    // Tokens with unusual bytes are still subject to `ignore_invalid_headers`.
    (
        "a.b: c\r\n_d: e\r\n!#$%&'*+-.^`|~: f\r\ng: h\r\n",
        Ok("g=h"),
    ),
    ("a\r\n", Err(InvalidField)),
    ("a\n", Err(InvalidField)),
    ("a b: c\r\n", Err(InvalidField)),
    ("a/b: c\r\n", Err(InvalidField)),
    ("a(b): c\r\n", Err(InvalidField)),
    ("\"a\": c\r\n", Err(InvalidField)),
    ("a\u{e9}: c\r\n", Err(InvalidField)),
    ("a : b\r\n", Err(InvalidField)),
    ("a\t: b\r\n", Err(InvalidField)),
    ("a: b\r\r\n", Err(InvalidField)),
    ("a: b\u{1}c\r\n", Err(InvalidField)),
    ("a: b\u{b}\r\n", Err(InvalidField)),
    ("a: \u{7f}\r\n", Err(InvalidField)),
    ("a: b\0c\r\n", Err(InvalidField)),
];

#[test]
fn lines_follow_the_grammar() {
    for (lines, expected) in LINES {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
        let (result, head) = by_rfc(&text);
        let of = |span: Span| String::from_utf8_lossy(span.of(text.as_bytes())).into_owned();
        let line = |field: &Field| format!("{}={}", of(field.name), of(field.value));
        let found: Vec<String> = head.fields.iter().skip(1).map(line).collect();
        let found = result.map(|_| found.join(" "));
        assert_eq!(
            found.as_deref().map_err(|error| *error),
            *expected,
            "{text:?}"
        );
    }
}

#[test]
fn the_offending_byte_is_logged() {
    let table = [
        ("foo\r\n", "\"foo\\x0d...\""),
        ("a/b: c\r\n", "\"a\\x2f...\""),
        ("a: b\u{1}c\r\n", "\"a: b\\x01...\""),
    ];
    for (lines, expected) in table {
        let text = format!("GET / HTTP/1.1\r\n{lines}\r\n");
        let (result, head) = by_rfc(&text);
        let mut log = Vec::new();
        result
            .unwrap_err()
            .write_log(text.as_bytes(), &head, &mut log);
        let expected = format!("client sent invalid header line: {expected}");
        assert_eq!(String::from_utf8(log).unwrap(), expected);
    }
}

/// Values of `Transfer-Encoding` (RFC 9112 sections 6.1 and 6.3).
const CODINGS: &[(&str, Result<Framing, HeadError>)] = &[
    ("chunked", Ok(Framing::Chunked)),
    ("Chunked", Ok(Framing::Chunked)),
    ("\tchunked\t", Ok(Framing::Chunked)),
    ("gzip, chunked", Err(UnknownTransferEncoding)),
    ("gzip;a=b , chunked", Err(UnknownTransferEncoding)),
    ("identity, chunked", Err(UnknownTransferEncoding)),
    ("", Err(InvalidTransferEncoding)),
    (",", Err(InvalidTransferEncoding)),
    (",chunked", Err(InvalidTransferEncoding)),
    ("chunked,", Err(InvalidTransferEncoding)),
    ("gzip", Err(InvalidTransferEncoding)),
    ("identity", Err(InvalidTransferEncoding)),
    ("chunked, gzip", Err(InvalidTransferEncoding)),
    ("chunked, chunked", Err(InvalidTransferEncoding)),
    ("chunked, gzip, chunked", Err(InvalidTransferEncoding)),
    ("gzip chunked", Err(InvalidTransferEncoding)),
    ("chunked;a=b", Err(InvalidTransferEncoding)),
    ("chunked ;a=b", Err(InvalidTransferEncoding)),
    ("\"chunked\"", Err(InvalidTransferEncoding)),
    ("xchunked", Err(InvalidTransferEncoding)),
    ("chunked\u{b}", Err(InvalidField)),
    ("\u{c}chunked", Err(InvalidField)),
    (
        "chunked\r\nTransfer-Encoding: chunked",
        Err(InvalidTransferEncoding),
    ),
    (
        "gzip\r\nTransfer-Encoding: chunked",
        Err(UnknownTransferEncoding),
    ),
];

#[test]
fn the_last_coding_must_be_chunked() {
    for (value, expected) in CODINGS {
        let text = format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: {value}\r\n\r\n");
        let (result, head) = by_rfc(&text);
        assert_eq!(result.map(|_| head.framing), *expected, "{value:?}");
        if result.is_err() {
            let (nginx, _) = parse(text.as_bytes(), &nginx());
            assert!(nginx.is_err(), "{value:?}");
        }
    }
}

#[test]
fn methods_are_tokens_and_case_sensitive() {
    let (long, longer) = ("A".repeat(32), "A".repeat(33));
    let table: &[(&str, Result<(), HeadError>)] = &[
        ("GET", Ok(())),
        ("BREW", Ok(())),
        ("M-SEARCH", Ok(())),
        (&long, Ok(())),
        (&longer, Err(UnknownMethod)),
        ("get", Err(UnknownMethod)),
        ("Get", Err(UnknownMethod)),
        ("G1", Err(UnknownMethod)),
        ("!#$%&'*+.^`|~", Err(UnknownMethod)),
        ("", Err(InvalidMethod)),
        ("G\"", Err(InvalidMethod)),
        ("g(", Err(InvalidMethod)),
        ("\u{16}\u{3}", Err(InvalidMethod)),
        ("g\r\n", Err(InvalidMethod)),
    ];
    for (method, expected) in table {
        let text = format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n");
        let (result, _) = by_rfc(&text);
        assert_eq!(result.map(|_| ()), *expected, "{method:?}");
    }
}

#[test]
fn options_may_ask_the_server_as_a_whole() {
    let (result, head) = by_rfc("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(result, Ok(HeadStep::Complete));
    assert_eq!(head.form, TargetForm::Asterisk);
    for line in ["GET *", "OPTIONS *x", "OPTIONS **", "OPTIONS */"] {
        let (result, _) = by_rfc(&format!("{line} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(result, Err(InvalidRequestLine), "{line}");
    }
    let (result, _) = parse(b"OPTIONS * HTTP/1.1\r\n\r\n", &nginx());
    assert_eq!(result, Err(InvalidRequestLine));
}

#[test]
fn versions_have_two_digits() {
    for (version, taken) in [("1.1", true), ("1.9", true), ("1.0", true), ("1.01", false)] {
        let (result, _) = by_rfc(&format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n"));
        assert_eq!(result.is_ok(), taken, "{version}");
    }
}

/// `Connection` lines, whether the connection is kept, and the fields that they name.
const CONNECTIONS: &[(&str, bool, &[&str])] = &[
    ("Connection: close", false, &[]),
    ("Connection: x-close", true, &["X-Close"]),
    ("Connection: close\r\nConnection: keep-alive", false, &[]),
    ("Connection: keep-alive\r\nConnection: close", false, &[]),
    ("Connection: a,\tB-c ,, close", false, &["A", "b-c"]),
    ("Connection: a\r\nConnection: d", true, &["a", "D"]),
];

#[test]
fn connection_is_a_list_of_options() {
    for (lines, keep_alive, named) in CONNECTIONS {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\n");
        let (result, head) = by_rfc(&text);
        assert_eq!(result, Ok(HeadStep::Complete), "{text:?}");
        assert_eq!(head.keep_alive(), *keep_alive, "{text:?}");
        let names = |name: &str| head.is_connection_option(text.as_bytes(), name.as_bytes());
        assert!(named.iter().all(|name| names(name)), "{text:?}");
        assert!(!names("Host") && !names("B"), "{text:?}");
    }
}

#[test]
fn options_of_a_connection_are_limited() {
    let options = |count: usize| vec!["a"; count].join(",");
    for (lines, taken) in [
        (format!("Connection: {}", options(64)), true),
        (format!("Connection: {}", options(65)), false),
        (format!("Connection: {}", ",".repeat(64)), false),
        (
            format!("Connection: {}\r\nConnection: {}", options(32), options(33)),
            false,
        ),
    ] {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\n");
        for rules in [HeadRules::default(), nginx()] {
            let (result, _) = parse(text.as_bytes(), &rules);
            let expected = if taken {
                Ok(HeadStep::Complete)
            } else {
                Err(TooManyOptions)
            };
            assert_eq!(result, expected, "{lines}");
        }
    }
}
