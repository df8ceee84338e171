use super::*;
use crate::h1::{HeadStep, RequestHead, parse_request};
use crate::message::{HeadRules, Strictness, reason_phrase};

#[test]
fn heads_are_written() {
    let mut out = Vec::new();
    status_line(&mut out, Version::Http11, 200, reason_phrase(200));
    field(&mut out, b"Server", b"turnpike");
    field(&mut out, b"Empty", b"");
    end(&mut out);
    status_line(&mut out, Version::Http10, 404, reason_phrase(404));
    status_line(&mut out, Version::Http11, 299, reason_phrase(299));
    request_line(&mut out, b"GET", b"/x", Version::Http11);
    let expected = "HTTP/1.1 200 OK\r\nServer: turnpike\r\nEmpty: \r\n\r\n\
        HTTP/1.0 404 Not Found\r\nHTTP/1.1 299 \r\nGET /x HTTP/1.1\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn chunk_heads_are_lower_case_hexadecimal() {
    let table = [
        (0, "0\r\n"),
        (15, "f\r\n"),
        (16, "10\r\n"),
        (u64::MAX, "ffffffffffffffff\r\n"),
    ];
    for (len, expected) in table {
        let mut out = Vec::new();
        write_chunk_head(&mut out, len);
        assert_eq!(out, expected.as_bytes());
    }
}

#[test]
fn fields_are_written_alike_from_any_format() {
    let table = [
        ("a: b\r\n", "a: b\r\n", true),
        ("A-b: c d: e\r\n", "A-b: c d: e\r\n", true),
        ("a: \r\n", "a: \r\n", true),
        ("a:b\r\n", "a: b\r\n", false),
        ("a:  b\r\n", "a: b\r\n", false),
        ("a:\tb\r\n", "a: \tb\r\n", false),
        ("a: b \r\n", "a: b\r\n", false),
        ("a: b\n", "a: b\r\n", false),
        ("a: b\r\r\n", "a: b\r\n", false),
        ("a\r\n", "a: \r\n", false),
    ];
    for (line, written, plain) in table {
        let mut text = format!("GET / HTTP/1.0\r\n{line}\r\n").into_bytes();
        let rules = HeadRules {
            strictness: Strictness::Nginx,
            ..HeadRules::default()
        };
        let mut head = RequestHead::default();
        let step = parse_request(&text, 0, &rules, &mut head);
        assert_eq!(step, Ok(HeadStep::Complete), "{line:?}");
        let found = plain_line(&text, &head.fields[0]);
        assert_eq!(found.is_some(), plain, "{line:?}");
        let mut out = Vec::new();
        write_field(&mut out, &text, &head.fields[0]);
        assert_eq!(String::from_utf8_lossy(&out), written, "{line:?}");
        text.clear();
    }
}
