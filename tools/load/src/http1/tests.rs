#![allow(clippy::unwrap_used)]

use super::*;

/// An answer, and what it is read as: status, close, bytes taken; `None` for bad bytes.
type Case = (&'static str, bool, Option<(u16, bool, usize)>);

const CASES: &[Case] = &[
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        false,
        Some((200, false, 40)),
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP",
        false,
        Some((200, false, 40)),
    ),
    (
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        false,
        Some((200, true, 40)),
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        true,
        Some((200, false, 38)),
    ),
    (
        "HTTP/1.1 304 Not Modified\r\n\r\n",
        false,
        Some((304, false, 29)),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        false,
        Some((200, false, 58)),
    ),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        false,
        Some((404, false, 63)),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx",
        false,
        None,
    ),
    ("HTTP/2 200\r\n\r\n", false, None),
    ("garbage\r\n\r\n", false, None),
];

#[test]
fn answers_are_read_whole_and_byte_by_byte() {
    let mut http = Http1::new();
    for (text, head_only, expected) in CASES {
        // The second time the head is known from the first.
        for _ in 0..2 {
            let mut exchange = Exchange::default();
            let fed = http.feed(&mut exchange, text.as_bytes(), *head_only, None);
            let seen = fed.ok().map(|fed| {
                let answer = fed.answer.unwrap();
                (answer.status, answer.close, fed.consumed)
            });
            assert_eq!(seen, *expected, "{text}");
        }
        let mut exchange = Exchange::default();
        let mut seen = None;
        for (index, byte) in text.bytes().enumerate() {
            match http.feed(&mut exchange, &[byte], *head_only, None) {
                Ok(Fed {
                    answer: Some(answer),
                    ..
                }) => {
                    seen = Some((answer.status, answer.close, index + 1));
                    break;
                }
                Ok(_) => {}
                Err(BadBytes) => break,
            }
        }
        assert_eq!(seen, *expected, "byte by byte: {text}");
    }
}

#[test]
fn a_known_head_is_not_taken_for_another_kind_of_request() {
    let mut http = Http1::new();
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let mut exchange = Exchange::default();
    assert!(
        http.feed(&mut exchange, text, false, None)
            .unwrap()
            .answer
            .is_some()
    );
    let mut exchange = Exchange::default();
    let fed = http.feed(&mut exchange, text, true, None).unwrap();
    assert_eq!((fed.consumed, fed.answer.is_some()), (38, true));
}

#[test]
fn bodies_are_compared_in_pieces() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for (expected, matches) in [
        ("hello", true),
        ("hellO", false),
        ("hell", false),
        ("hello!", false),
    ] {
        let mut http = Http1::new();
        let mut exchange = Exchange::default();
        let mut answer = None;
        for piece in text.chunks(3) {
            let fed = http
                .feed(&mut exchange, piece, false, Some(expected.as_bytes()))
                .unwrap();
            answer = fed.answer.or(answer);
        }
        assert_eq!(answer.unwrap().body_matches, matches, "{expected}");
    }
}

#[test]
fn a_head_without_end_is_refused() {
    let mut http = Http1::new();
    let mut exchange = Exchange::default();
    let mut fed = http.feed(&mut exchange, b"HTTP/1.1 200 OK\r\n", false, None);
    let mut sent = 0;
    while fed.is_ok() && sent < 4 * HEAD_BYTES_MAX {
        fed = http.feed(&mut exchange, &[b'x'; 4096], false, None);
        sent += 4096;
    }
    assert_eq!(fed, Err(BadBytes));
}
