//! Tests of heads that were parsed and copied in, and of heads that were built field by field.

use super::*;
use crate::h1::{HeadStep, ResponseHead, parse_response};
use crate::message::{HeadRules, Method};

const TEXT: &[u8] = b"HTTP/1.0 404 Not here\r\nETag: \"a\"\r\nConnection: X-One, close\r\n\
    X-One:  1 \r\nContent-Length: 5\r\n\r\n";

fn copied(text: &[u8], head: &mut Head) {
    let mut parsed = ResponseHead::default();
    let step = parse_response(text, 0, &HeadRules::default(), Method::Get, &mut parsed);
    assert_eq!(step, Ok(HeadStep::Complete));
    parsed.copy_to(head, text);
}

#[test]
fn a_head_is_copied_in_without_the_bytes_after_it() {
    let mut head = Head::default();
    for rest in ["", "hello", "HTTP/1.1 200 OK\r\n\r\n"] {
        let whole = [TEXT, rest.as_bytes()].concat();
        copied(&whole, &mut head);
        assert_eq!((head.status, head.reason()), (404, &b"Not here"[..]));
        assert_eq!(head.version, Version::Http10);
        assert_eq!(head.known(Known::Etag), Some(&b"\"a\""[..]));
        assert_eq!(head.value(b"x-one"), Some(&b"1"[..]));
        assert_eq!(head.content_length(), Some(5));
        let options = ["X-One", "x-one", "ETag", "close"].map(|name| {
            let name = name.as_bytes();
            head.is_connection_option(name)
        });
        assert_eq!(options, [true, true, false, true]);
        assert_eq!(head.fields.bytes(), TEXT);
    }
}

#[test]
fn a_compacted_head_is_equal_and_has_no_other_bytes() {
    let mut head = Head::default();
    copied(TEXT, &mut head);
    let compacted = head.compacted();
    assert_eq!(compacted, head);
    assert!(compacted.is_connection_option(b"X-One"));
    let texts = compacted.fields.iter();
    let texts: usize = texts.map(|(name, value)| name.len() + value.len()).sum();
    let held = compacted.fields.bytes().len();
    assert_eq!(held, texts + compacted.reason().len());
    head.fields.remove(b"etag");
    assert_ne!(compacted, head);
    assert_ne!(Head::response(404, b""), Head::response(404, b"No"));
    let mut cleared = head;
    cleared.clear();
    assert_eq!(cleared, Head::default());
}

#[test]
fn interim_heads_are_followed_by_another() {
    let interim = [(100, true), (101, false), (103, true), (200, false)];
    for (status, expected) in interim {
        assert_eq!(
            Head::response(status, b"").is_interim(),
            expected,
            "{status}"
        );
    }
}
