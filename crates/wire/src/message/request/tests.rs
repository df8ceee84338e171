//! Tests of request heads from HTTP/1: their parts are right wherever the bytes are moved.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::h1::{self, HeadStep, parse_request};
use crate::message::{HeadRules, Strictness};

const HEAD: &[u8] = b"GET http://a.example:81/x%20y?q=1#f HTTP/1.1\r\nHost: b\r\n\
    Connection: X-One, close\r\nContent-Length: 3\r\nX-One: 1\r\n\r\n";

/// Parses the head in `buffer` at `start`, and moves it.
fn moved(buffer: &mut Vec<u8>, start: usize) -> (RequestHead, usize) {
    let rules = HeadRules::default();
    let (mut parsed, mut head) = (h1::RequestHead::default(), RequestHead::default());
    parsed.borrow_room(&mut head);
    let step = parse_request(&buffer[start..], 0, &rules, &mut parsed);
    assert_eq!(step, Ok(HeadStep::Complete));
    let rest = parsed.move_to(&mut head, buffer, start);
    (head, rest)
}

fn check(head: &RequestHead) {
    for (text, expected) in [
        (head.method_text(), "GET"),
        (head.origin(), "/x%20y?q=1#f"),
        (head.path(), "/x%20y"),
        (head.query(), "q=1"),
        (head.protocol(), "HTTP/1.1"),
        (head.scheme().unwrap(), "http"),
        (head.authority().unwrap(), "a.example:81"),
        (head.host().unwrap(), "a.example"),
        (head.known(Known::Host).unwrap(), "a.example:81"),
    ] {
        assert_eq!(text, expected.as_bytes());
    }
    assert_eq!((head.method, head.host_port), (Method::Get, 81));
    assert_eq!(head.body, BodyLength::Bytes(3));
    assert!(head.is_connection_option(b"x-one") && !head.is_connection_option(b"host"));
    assert_eq!(head.fields.bytes(), HEAD);
}

#[test]
fn a_head_takes_the_buffer_if_few_bytes_follow() {
    for (before, behind) in [(0, 0), (0, 3), (0, 1000), (7, 0), (7, 3), (7, 1000)] {
        let rest = vec![b'b'; behind];
        let mut buffer = [&vec![b'a'; before][..], HEAD, &rest].concat();
        let at = buffer.as_ptr();
        let (head, start) = moved(&mut buffer, before);
        check(&head);
        assert_eq!(buffer[start..], rest, "{before} before, {behind} behind");
        let moves = before == 0 && behind < HEAD.len();
        assert_eq!(head.fields.bytes().as_ptr() == at, moves);
    }
}

#[test]
fn the_host_of_the_target_is_that_of_the_field() {
    for (text, expected) in [
        ("GET / HTTP/1.1\r\nHost: B\r\n\r\n", Some("B")),
        ("GET http://A:1/ HTTP/1.1\r\nHost: b\r\n\r\n", Some("A:1")),
        ("GET http://A:1/ HTTP/1.0\r\n\r\n", Some("A:1")),
        ("GET http://A:1/\r\n", Some("A:1")),
        ("GET / HTTP/1.0\r\n\r\n", None),
        // Refused heads, and those that are not whole.
        (
            "GET http://a/ HTTP/1.1\r\nHost: b\r\nHost: c\r\n\r\n",
            Some("a"),
        ),
        ("GET http://a../ HTTP/1.1\r\n", None),
        ("GET http://a/ HTTP/1.1\r\nHost: b\r\n", Some("a")),
        ("GET http://a/ HTTP/1.1", None),
    ] {
        let (mut parsed, mut head) = (h1::RequestHead::default(), RequestHead::default());
        // Whether it is refused makes no difference.
        let _ = parse_request(text.as_bytes(), 0, &HeadRules::default(), &mut parsed);
        parsed.copy_to(&mut head, text.as_bytes());
        let mut hosts = head.fields.values(b"Host");
        assert_eq!(hosts.next(), expected.map(str::as_bytes), "{text}");
        assert!(
            hosts.all(|host| Some(host) == expected.map(str::as_bytes)),
            "{text}"
        );
    }
}

#[test]
fn a_refused_head_keeps_its_parsed_parts() {
    let text = b"POST /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";
    let (mut parsed, mut head) = (h1::RequestHead::default(), RequestHead::default());
    parse_request(text, 0, &HeadRules::default(), &mut parsed).unwrap_err();
    parsed.copy_to(&mut head, text);
    assert_eq!(head.line(), b"POST /a HTTP/1.1");
    assert_eq!(head.host(), Some(b"a".as_slice()));
    assert_eq!(head.fields.len(), 2);
}

#[test]
fn a_head_is_read_again_by_other_rules() {
    let mut buffer = HEAD.to_vec();
    let (mut head, _) = moved(&mut buffer, 0);
    let rules = HeadRules {
        strictness: Strictness::Nginx,
        ..HeadRules::default()
    };
    let mut parsed = h1::RequestHead::default();
    let step = parse_request(head.fields.bytes(), 0, &rules, &mut parsed);
    assert_eq!(step, Ok(HeadStep::Complete));
    parsed.replace(&mut head);
    check(&head);
}

#[test]
fn a_cleared_head_is_empty() {
    let (mut head, _) = moved(&mut HEAD.to_vec(), 0);
    head.clear();
    assert_eq!((head.line(), head.host()), (b"".as_slice(), None));
    assert_eq!(head.known(Known::Host), None);
    assert_eq!(head.body, BodyLength::None);
}
