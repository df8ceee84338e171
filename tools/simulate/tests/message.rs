//! The reader of messages: what it makes of whole, cut and wrong ones.

use turnpike_simulate::message::{Message, response};

/// The body, and whether the message is complete; `Ok(None)`: its head is not.
type Read = Result<Option<(&'static str, bool)>, ()>;

const CASES: &[(&[u8], Read)] = &[
    (b"HTTP/1.1 200 OK\r\nContent-", Ok(None)),
    (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        Ok(Some(("ab", false))),
    ),
    (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd",
        Ok(Some(("abc", true))),
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        Ok(Some(("ab", true))),
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n",
        Ok(Some(("ab", false))),
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        Err(()),
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        Err(()),
    ),
    (b"HTTP/1.1 200 OK\r\n\r\nab", Ok(Some(("ab", false)))),
    (b"HTTP/1.1 204 No Content\r\n\r\nab", Ok(Some(("", true)))),
    (b"200 OK\r\n\r\nab", Err(())),
];

#[test]
fn incomplete_responses_are_read() {
    for (bytes, expected) in CASES {
        let read = response(bytes, false, false).map_err(|_| ());
        let read = read.map(|read| {
            let texts = |message: Message| (message.body, message.is_whole);
            read.map(texts)
        });
        let expected = expected
            .map(|expected| expected.map(|(body, is_whole)| (body.as_bytes().to_vec(), is_whole)));
        assert_eq!(read, expected, "{}", bytes.escape_ascii());
    }
}
