//! Patterns, and the framing of responses from a scripted origin.
#![allow(clippy::unwrap_used)]

use super::{Peer, matches};
use crate::{Origin, Step};

#[test]
fn patterns() {
    let response = b"HTTP/1.1 200 OK\r\nDate: Sun, 1\r\nA: 600\r\n\r\nline\nlast";
    let cases = [
        ("HTTP/1.1 200 OK\nDate: *\nA: 600\n\nline\nlast", true),
        ("HTTP/1.1 200 OK\n*\nA: *00\n\nline\nlast", true),
        ("HTTP/1.1 200 OK\n*\n\nline\nlast", true),
        ("HTTP/1.1 200 OK\n*", true),
        ("HTTP/1.1 200 OK\nDate: *\nA: 600\n\nline\nlas", false),
        ("HTTP/1.1 200 OK\nA: 600\nDate: *\n\nline\nlast", false),
        ("HTTP/1.1 404*\n*", false),
        ("", false),
    ];
    for (pattern, expected) in cases {
        assert_eq!(matches(pattern, response), expected, "{pattern}");
    }
    assert!(!matches(
        "HTTP/1.1 200 OK\nA: 1\n\n",
        b"HTTP/1.1 200 OK\nA: 1\r\n\r\n"
    ));
}

#[test]
fn responses_are_framed_by_their_heads() {
    let stream = concat!(
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "3;x\r\ncde\r\n1\r\nf\r\n0\r\nT: 1\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\nghi",
    );
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send(stream),
        Step::HalfClose,
        Step::ReadToEnd,
    ]]);
    let mut peer = Peer::connect(origin.port());
    peer.send("GET / HTTP/1.1\r\n\r\n");
    for (status, body) in [
        (100, ""),
        (200, "ab"),
        (200, "cdef"),
        (304, ""),
        (200, "ghi"),
    ] {
        let response = peer.response();
        assert_eq!((response.status, response.text().as_str()), (status, body));
    }
    assert!(peer.is_closed());
}
