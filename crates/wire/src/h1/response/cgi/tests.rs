#![allow(clippy::unwrap_used)]

use super::*;
use crate::message::BodyEnd;

/// A head, and its status, reason and framing, or the error.
type Case = (
    &'static str,
    Result<(u16, &'static str, BodyEnd), ResponseError>,
);

const CASES: &[Case] = &[
    ("A: b\r\n\r\n", Ok((200, "", BodyEnd::UntilClose))),
    ("\r\n", Ok((200, "", BodyEnd::UntilClose))),
    ("A: b\n\nbody", Ok((200, "", BodyEnd::UntilClose))),
    (
        "Status: 404 Not Found\r\n\r\n",
        Ok((404, "Not Found", BodyEnd::UntilClose)),
    ),
    ("status:404\r\n\r\n", Ok((404, "", BodyEnd::UntilClose))),
    (
        "Status: 200  Fine \r\nContent-Length: 7\r\n\r\n",
        Ok((200, "Fine", BodyEnd::Length(7))),
    ),
    ("Location: /a\r\n\r\n", Ok((302, "", BodyEnd::UntilClose))),
    (
        "Location: /a\r\nStatus: 201 Created\r\n\r\n",
        Ok((201, "Created", BodyEnd::UntilClose)),
    ),
    ("Status: 304\r\n\r\n", Ok((304, "", BodyEnd::None))),
    (
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
        Ok((200, "", BodyEnd::UntilClose)),
    ),
    ("Status: 99\r\n\r\n", Err(ResponseError::InvalidStatus)),
    ("Status: 100\r\n\r\n", Err(ResponseError::InvalidStatus)),
    ("Status: 101 Up\r\n\r\n", Err(ResponseError::InvalidStatus)),
    ("Status: +12\r\n\r\n", Err(ResponseError::InvalidStatus)),
    ("Status:\r\n\r\n", Err(ResponseError::InvalidStatus)),
    ("Status: OK\r\n\r\n", Err(ResponseError::InvalidStatus)),
    (
        "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
        Err(ResponseError::DuplicateContentLength),
    ),
    (
        "Content-Length: -1\r\n\r\n",
        Err(ResponseError::InvalidContentLength),
    ),
    ("A\0: b\r\n\r\n", Err(ResponseError::InvalidField)),
];

/// Heads that may begin with a status line.
const LINES: &[Case] = &[
    (
        "HTTP/1.1 404 Gone\r\nStatus: 200\r\nContent-Length: 7\r\n\r\n",
        Ok((404, "Gone", BodyEnd::Length(7))),
    ),
    (
        "HTTP/1.0 200\nTransfer-Encoding: chunked\n\n",
        Ok((200, "", BodyEnd::UntilClose)),
    ),
    (
        "HTTP/1.1 101 Switching\r\nUpgrade: a\r\n\r\n",
        Ok((101, "Switching", BodyEnd::None)),
    ),
    (
        "Status: 404 Gone\r\n\r\n",
        Ok((404, "Gone", BodyEnd::UntilClose)),
    ),
    ("H: b\r\n\r\n", Ok((200, "", BodyEnd::UntilClose))),
    ("\r\n", Ok((200, "", BodyEnd::UntilClose))),
    (
        "HTTP/1.1 100 Continue\r\n\r\n",
        Err(ResponseError::InvalidStatus),
    ),
    ("H\0: b\r\n\r\n", Err(ResponseError::InvalidField)),
];

#[test]
fn heads_of_cgi_responses_are_read_at_once_and_byte_by_byte() {
    read_cases(CASES, StatusLine::Absent);
    read_cases(LINES, StatusLine::Optional);
}

fn read_cases(cases: &[Case], line: StatusLine) {
    for (text, expected) in cases {
        let bytes = text.as_bytes();
        let (rules, mut head) = (HeadRules::default(), ResponseHead::default());
        let result = parse_cgi_response(bytes, 0, &rules, line, Method::Get, &mut head);
        let read = result.map(|step| {
            assert_eq!(step, HeadStep::Complete, "{text:?}");
            let reason = std::str::from_utf8(head.reason.of(bytes)).unwrap();
            (head.status, reason, head.framing)
        });
        assert_eq!(read, *expected, "{text:?}");
        let mut pieces = ResponseHead::default();
        let mut step = Ok(HeadStep::Incomplete { scanned: 0 });
        for end in 0..=bytes.len() {
            let Ok(HeadStep::Incomplete { scanned }) = step else {
                break;
            };
            step = parse_cgi_response(
                &bytes[..end],
                scanned,
                &rules,
                line,
                Method::Get,
                &mut pieces,
            );
        }
        assert_eq!(step, result, "{text:?}");
    }
}

#[test]
fn a_head_of_a_cgi_response_has_no_body_for_head() {
    let mut head = ResponseHead::default();
    let text = b"Content-Length: 5\r\n\r\n";
    let rules = HeadRules::default();
    parse_cgi_response(text, 0, &rules, StatusLine::Absent, Method::Head, &mut head).unwrap();
    assert_eq!(head.framing, BodyEnd::None);
    assert_eq!(head.content_length, Some(5));
}

#[test]
fn no_connection_is_kept_behind_an_answer_of_known_length() {
    for method in [Method::Get, Method::Head] {
        let mut head = ResponseHead::default();
        let step = parse_cgi_response(
            b"Content-Length: 8\n\n",
            0,
            &HeadRules::default(),
            StatusLine::Optional,
            method,
            &mut head,
        );
        assert!(matches!(step, Ok(HeadStep::Complete)), "{method:?}");
        assert!(!head.delivery().keeps_connection, "{method:?}");
    }
}
