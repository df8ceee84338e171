//! Exchanges with either end, their bytes cut in every way.

use super::*;
use crate::field_section::{HeadFault, Indexing, RequestReader, ResponseFault, ResponseReader};
use crate::message::{HeadRules, Priority, Version};

type Fields = &'static [(&'static str, &'static str)];

const GET: Fields = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":path", "/a?b"),
    (":authority", "example.com"),
];

const POST_3: Fields = &[
    (":method", "POST"),
    (":scheme", "https"),
    (":path", "/"),
    (":authority", "example.com"),
    ("content-length", "3"),
];

/// A frame in an exchange.
enum Sent {
    Head(Fields),
    Data(&'static str),
    /// A frame with this number and payload.
    Other(u8, &'static [u8]),
    Bytes(&'static [u8]),
}

use Sent::{Bytes, Data, Head, Other};

fn written(frames: &[Sent]) -> Vec<u8> {
    let mut connection = Connection::client(ConnectionRules::default());
    let (mut block, mut out) = (Vec::new(), Vec::new());
    for frame in frames {
        match frame {
            Head(fields) => {
                let before = out.len();
                let count = connection.write_head(&mut block, &mut out, |encoder, block| {
                    for (name, value) in *fields {
                        encoder.field(name.as_bytes(), value.as_bytes(), Indexing::No, block);
                    }
                });
                assert_eq!(count, out.len() - before);
            }
            Data(data) => {
                write_data_header(&mut out, data.len());
                out.extend_from_slice(data.as_bytes());
            }
            Other(number, payload) => {
                out.extend_from_slice(&[*number, payload.len() as u8]);
                out.extend_from_slice(payload);
            }
            Bytes(bytes) => out.extend_from_slice(bytes),
        }
    }
    out
}

/// The events of a request whose bytes come in pieces, adjacent DATA as one.
fn request(bytes: &[u8], piece: usize, is_end_late: bool) -> Vec<String> {
    let rules = ConnectionRules {
        head: HeadRules {
            head_bytes_max: 200,
            ..HeadRules::default()
        },
        ..ConnectionRules::default()
    };
    let mut connection = Connection::server(rules);
    let (mut stream, mut reader) = (RequestStream::default(), RequestReader::default());
    let (mut events, mut data) = (Vec::new(), String::new());
    let mut pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
    if is_end_late || pieces.is_empty() {
        pieces.push(b"");
    }
    let count = pieces.len();
    for (number, mut input) in pieces.into_iter().enumerate() {
        let ends = number + 1 == count;
        loop {
            let event = connection.receive_request(&mut stream, &mut input, ends, &mut reader, 0);
            let text = match event {
                Ok(RequestEvent::More) => break,
                Ok(RequestEvent::Data(bytes)) => {
                    data.push_str(&String::from_utf8_lossy(bytes));
                    continue;
                }
                Ok(RequestEvent::Head { fault: None, .. }) => {
                    assert_eq!(reader.head.version, Version::Http30);
                    String::from_utf8_lossy(reader.head.line()).into_owned()
                }
                Ok(RequestEvent::Head { fault, .. }) => format!("{fault:?}"),
                Ok(RequestEvent::Trailers) => format!("trailers {}", reader.head.fields.len()),
                Ok(event) => format!("{event:?}"),
                Err(error) => error.code.to_string(),
            };
            if !data.is_empty() {
                events.push(std::mem::take(&mut data));
            }
            events.push(text);
            if event_is_last(&events) {
                return events;
            }
        }
    }
    events
}

fn event_is_last(events: &[String]) -> bool {
    let last = events.last().map_or("", String::as_str);
    last == "End" || last.starts_with("H3_") || last.starts_with("QPACK_")
}

const LINE: &str = "GET /a?b HTTP/3.0";
const POST_LINE: &str = "POST / HTTP/3.0";

/// What a client sends until it ends the stream, and what comes of it.
const REQUESTS: &[(&[Sent], &[&str])] = &[
    (&[Head(GET)], &[LINE, "End"]),
    (&[Head(POST_3), Data("abc")], &[POST_LINE, "abc", "End"]),
    (
        &[Head(POST_3), Data("ab"), Data(""), Data("c")],
        &[POST_LINE, "abc", "End"],
    ),
    (
        &[Head(GET), Data("abc"), Head(&[("x-sum", "1")])],
        &[LINE, "abc", "trailers 1", "End"],
    ),
    (&[Head(GET), Data("abc"), Head(&[])], &[LINE, "abc", "End"]),
    // Frames of unknown kinds may stand anywhere.
    (
        &[Other(0x21, b"grease"), Head(GET), Other(0x21, b"")],
        &[LINE, "End"],
    ),
    (&[], &["Reset(RequestIncomplete)"]),
    (&[Other(0x21, b"grease")], &["Reset(RequestIncomplete)"]),
    // The body is not as long as its head says.
    (&[Head(POST_3), Data("ab")], &[POST_LINE, "ab", "BodyFault"]),
    (
        &[Head(POST_3), Data("ab"), Head(&[("a", "b")])],
        &[POST_LINE, "ab", "trailers 1", "BodyFault"],
    ),
    (
        &[Head(POST_3), Data("ab"), Data("cd")],
        &[POST_LINE, "ab", "BodyFault"],
    ),
    // Frames that may not stand there.
    (&[Data("abc")], &["H3_FRAME_UNEXPECTED"]),
    (
        &[Head(GET), Head(&[]), Data("a")],
        &[LINE, "H3_FRAME_UNEXPECTED"],
    ),
    (
        &[Head(GET), Head(&[]), Head(&[])],
        &[LINE, "H3_FRAME_UNEXPECTED"],
    ),
    (&[Head(GET), Other(4, b"")], &[LINE, "H3_FRAME_UNEXPECTED"]),
    (&[Other(5, b"\0")], &["H3_FRAME_UNEXPECTED"]),
    (&[Other(2, b"")], &["H3_FRAME_UNEXPECTED"]),
    (&[Other(7, b"\0")], &["H3_FRAME_UNEXPECTED"]),
    // Frames and sections that are cut, or not valid.
    (
        &[Head(GET), Bytes(b"\0\x05abc")],
        &[LINE, "abc", "H3_FRAME_ERROR"],
    ),
    (&[Head(GET), Bytes(b"\0")], &[LINE, "H3_FRAME_ERROR"]),
    (&[Other(1, b"\0")], &["QPACK_DECOMPRESSION_FAILED"]),
    (&[Other(1, b"")], &["QPACK_DECOMPRESSION_FAILED"]),
    (&[Other(1, b"\0\0\x80")], &["QPACK_DECOMPRESSION_FAILED"]),
    // Heads and trailers that are malformed (RFC 9114 section 4.1.2), or too large.
    (
        &[Head(&[(":method", "GET")]), Data("a")],
        &["Some(MissingPath)"],
    ),
    (
        &[Head(GET), Head(&[(":path", "/")])],
        &[LINE, "Reset(MessageError)"],
    ),
    (&[Other(1, &[b'a'; 201]), Data("a")], &["Some(TooLarge)"]),
];

#[test]
fn requests_are_read_wherever_their_bytes_are_cut() {
    for (frames, expected) in REQUESTS {
        let bytes = written(frames);
        for piece in 1..=bytes.len().max(1) {
            for is_end_late in [false, true] {
                let events = request(&bytes, piece, is_end_late);
                // A head with which the stream ends needs no other event for that.
                let wanted: Vec<_> = match (expected, events.len()) {
                    ([line, "End"], 1) => [*line].to_vec(),
                    _ => expected.to_vec(),
                };
                assert_eq!(events, wanted, "pieces of {piece} of {bytes:02x?}");
            }
        }
    }
}

#[test]
fn the_end_of_a_stream_that_is_known_with_its_head_says_that_there_is_no_body() {
    let mut connection = Connection::server(ConnectionRules::default());
    for (frames, expected) in [
        (
            &[Head(GET)],
            RequestEvent::Head {
                ends: true,
                fault: None,
            },
        ),
        (
            &[Head(POST_3)],
            RequestEvent::Head {
                ends: false,
                fault: Some(HeadFault::InvalidContentLength),
            },
        ),
    ] {
        let bytes = written(frames);
        let (mut stream, mut reader) = (RequestStream::default(), RequestReader::default());
        let mut input = bytes.as_slice();
        let event = connection.receive_request(&mut stream, &mut input, true, &mut reader, 0);
        assert_eq!(event, Ok(expected));
    }
}

/// What a server sends until it ends the stream, and what comes of it.
const RESPONSES: &[(&[Sent], &[&str])] = &[
    (
        &[Head(&[(":status", "200")]), Data("abc")],
        &["200", "abc", "End"],
    ),
    (
        &[Head(&[(":status", "103")]), Head(&[(":status", "204")])],
        &["103", "204", "End"],
    ),
    (
        &[
            Head(&[(":status", "200")]),
            Data("a"),
            Head(&[("grpc-status", "0")]),
        ],
        &["200", "a", "trailers 1", "End"],
    ),
    (&[Head(&[(":status", "103")])], &["103", "EarlyEnd"]),
    (&[], &["EarlyEnd"]),
    (&[Head(&[])], &["MissingStatus"]),
    (
        &[
            Head(&[(":status", "200"), ("content-length", "2")]),
            Data("abc"),
        ],
        &["200", "TooLong"],
    ),
    (
        &[Head(&[(":status", "200"), ("content-length", "2")])],
        &["200", "EarlyEnd"],
    ),
    (&[Data("a")], &["H3_FRAME_UNEXPECTED"]),
    (&[Other(5, b"\0\0\0")], &["H3_ID_ERROR"]),
];

#[test]
fn responses_are_read() {
    for (frames, expected) in RESPONSES {
        let bytes = written(frames);
        let mut connection = Connection::client(ConnectionRules::default());
        let mut stream = ResponseStream::new(false);
        let (mut reader, mut events) = (ResponseReader::default(), Vec::new());
        let mut input = bytes.as_slice();
        loop {
            let event = connection.receive_response(&mut stream, &mut input, true, &mut reader, 0);
            events.push(match event {
                Ok(ResponseEvent::More) => break,
                Ok(ResponseEvent::Head) => reader.head.status.to_string(),
                Ok(ResponseEvent::Data(data)) => String::from_utf8_lossy(data).into_owned(),
                Ok(ResponseEvent::Trailers) => format!("trailers {}", reader.head.fields.len()),
                Ok(ResponseEvent::Malformed(fault)) => format!("{fault:?}"),
                Ok(ResponseEvent::End) => "End".to_owned(),
                Err(error) => {
                    events.push(error.code.to_string());
                    break;
                }
            });
        }
        assert_eq!(events, *expected, "{bytes:02x?}");
    }
}

#[test]
fn a_response_to_head_has_no_body_whatever_its_length() {
    let bytes = written(&[
        Head(&[(":status", "200"), ("content-length", "9")]),
        Data("a"),
    ]);
    let mut connection = Connection::client(ConnectionRules::default());
    let (mut stream, mut reader) = (ResponseStream::new(true), ResponseReader::default());
    let mut input = bytes.as_slice();
    let mut next = || connection.receive_response(&mut stream, &mut input, true, &mut reader, 0);
    assert_eq!(next(), Ok(ResponseEvent::Head));
    let fault = ResponseFault::TooLong;
    assert_eq!(next(), Ok(ResponseEvent::Malformed(fault)));
}

/// What is sent on one stream, and what comes of it: at a server, and at a client.
const CONTROL: &[(&[u8], &str, &str)] = &[
    (b"\0\x04\0", "Settings", "Settings"),
    (b"\0\x04\x04\x08\x01\x33\x01", "Settings", "Settings"),
    (b"\0\x04\0\x21\x02ab\x21\0", "Settings", "Settings"),
    (
        b"\0\x04\0\x07\x01\x04",
        "Settings GoingAway(4)",
        "Settings GoingAway(4)",
    ),
    (
        b"\0\x04\0\x07\x01\x03",
        "Settings GoingAway(3)",
        "Settings H3_ID_ERROR",
    ),
    (
        b"\0\x04\0\x07\x01\x04\x07\x01\x08",
        "Settings GoingAway(4) H3_ID_ERROR",
        "Settings GoingAway(4) H3_ID_ERROR",
    ),
    (
        b"\0\x04\0\x0d\x01\x04",
        "Settings",
        "Settings H3_FRAME_UNEXPECTED",
    ),
    (
        b"\0\x04\0\x0d\x01\x04\x0d\x01\x03",
        "Settings H3_ID_ERROR",
        "Settings H3_FRAME_UNEXPECTED",
    ),
    (
        b"\0\x04\0\x80\x0f\x07\x00\x07\x08u=1, i",
        "Settings Prioritized(8, 1, true)",
        "Settings H3_FRAME_UNEXPECTED",
    ),
    (
        b"\0\x04\0\x80\x0f\x07\x00\x01\x09",
        "Settings H3_ID_ERROR",
        "Settings H3_FRAME_UNEXPECTED",
    ),
    (
        b"\0\x04\0\x80\x0f\x07\x00\0",
        "Settings H3_FRAME_ERROR",
        "Settings H3_FRAME_ERROR",
    ),
    (
        b"\0\x04\0\x80\x0f\x07\x01\x01\0",
        "Settings H3_ID_ERROR",
        "Settings H3_ID_ERROR",
    ),
    (
        b"\0\x04\0\x03\x01\0",
        "Settings H3_ID_ERROR",
        "Settings H3_ID_ERROR",
    ),
    (
        b"\0\x07\x01\x04",
        "H3_MISSING_SETTINGS",
        "H3_MISSING_SETTINGS",
    ),
    (b"\0\x21\0", "H3_MISSING_SETTINGS", "H3_MISSING_SETTINGS"),
    (
        b"\0\x04\0\x04\0",
        "Settings H3_FRAME_UNEXPECTED",
        "Settings H3_FRAME_UNEXPECTED",
    ),
    (
        b"\0\x04\0\0\0",
        "Settings H3_FRAME_UNEXPECTED",
        "Settings H3_FRAME_UNEXPECTED",
    ),
    (
        b"\0\x04\0\x01\0",
        "Settings H3_FRAME_UNEXPECTED",
        "Settings H3_FRAME_UNEXPECTED",
    ),
    (
        b"\0\x04\0\x05\0",
        "Settings H3_FRAME_UNEXPECTED",
        "Settings H3_FRAME_UNEXPECTED",
    ),
    (
        b"\0\x04\0\x06\0",
        "Settings H3_FRAME_UNEXPECTED",
        "Settings H3_FRAME_UNEXPECTED",
    ),
    (
        b"\0\x04\0\x07\x02\x04\0",
        "Settings H3_FRAME_ERROR",
        "Settings H3_FRAME_ERROR",
    ),
    (
        b"\0\x04\0\x07\x09",
        "Settings H3_FRAME_ERROR",
        "Settings H3_FRAME_ERROR",
    ),
    (b"\0\x04\x01\x08", "H3_FRAME_ERROR", "H3_FRAME_ERROR"),
    (
        b"\0\x04\x02\x08\x02",
        "H3_SETTINGS_ERROR",
        "H3_SETTINGS_ERROR",
    ),
    (
        b"\0\x04\x02\x03\0",
        "H3_SETTINGS_ERROR",
        "H3_SETTINGS_ERROR",
    ),
    (
        b"\0\x04\x04\x06\x01\x06\x01",
        "H3_SETTINGS_ERROR",
        "H3_SETTINGS_ERROR",
    ),
    (b"\0\x04\x44\x01", "H3_EXCESSIVE_LOAD", "H3_EXCESSIVE_LOAD"),
    (b"\x01\0", "H3_STREAM_CREATION_ERROR", "H3_ID_ERROR"),
    (b"\x02\x20\x20", "", ""),
    (
        b"\x02\x3f\xbd\x01",
        "QPACK_ENCODER_STREAM_ERROR",
        "QPACK_ENCODER_STREAM_ERROR",
    ),
    (b"\x03\x48", "", ""),
    (
        b"\x03\x84",
        "QPACK_DECODER_STREAM_ERROR",
        "QPACK_DECODER_STREAM_ERROR",
    ),
    (
        b"\x40\x54abc",
        "Stop(StreamCreationError)",
        "Stop(StreamCreationError)",
    ),
];

/// What comes of a stream's bytes, in pieces.
fn control(mut connection: Connection, bytes: &[u8], piece: usize) -> String {
    let mut stream = UnidirectionalStream::default();
    let mut events = Vec::new();
    for mut input in bytes.chunks(piece) {
        loop {
            events.push(
                match connection.receive_unidirectional(&mut stream, &mut input, 0) {
                    Ok(ControlEvent::More) => break,
                    Ok(ControlEvent::Settings) => "Settings".to_owned(),
                    Ok(ControlEvent::GoingAway { id }) => format!("GoingAway({id})"),
                    Ok(ControlEvent::Prioritized { stream, priority }) => {
                        let Priority {
                            urgency,
                            incremental,
                        } = priority;
                        format!("Prioritized({stream}, {urgency}, {incremental})")
                    }
                    Ok(ControlEvent::Stop(code)) => format!("Stop({code:?})"),
                    Err(error) => {
                        events.push(error.code.to_string());
                        return events.join(" ");
                    }
                },
            );
        }
    }
    events.join(" ")
}

#[test]
fn streams_of_the_peer_are_read_wherever_their_bytes_are_cut() {
    for (bytes, at_server, at_client) in CONTROL {
        for piece in 1..=bytes.len() {
            let rules = ConnectionRules::default();
            let server = control(Connection::server(rules), bytes, piece);
            assert_eq!(server, *at_server, "{bytes:02x?} in pieces of {piece}");
            let client = control(Connection::client(rules), bytes, piece);
            assert_eq!(client, *at_client, "{bytes:02x?} in pieces of {piece}");
        }
    }
}

#[test]
fn a_stream_that_the_connection_needs_may_neither_end_nor_come_twice() {
    for (first, is_needed) in [(0, true), (2, true), (3, true), (0x21, false)] {
        let mut connection = Connection::server(ConnectionRules::default());
        let open = |connection: &mut Connection| {
            let mut stream = UnidirectionalStream::default();
            let opened = connection.receive_unidirectional(&mut stream, &mut &[first][..], 0);
            (stream, opened.err().map(|error| error.code))
        };
        let (stream, error) = open(&mut connection);
        assert_eq!(error, None);
        let end = connection.end_unidirectional(&stream);
        let code = end.err().map(|error| error.code);
        assert_eq!(code, is_needed.then_some(ErrorCode::ClosedCriticalStream));
        let (_, error) = open(&mut connection);
        assert_eq!(error, is_needed.then_some(ErrorCode::StreamCreationError));
    }
}

#[test]
fn our_control_stream_is_read_by_the_other_end() {
    let rules = ConnectionRules {
        has_connect_protocol: true,
        ..ConnectionRules::default()
    };
    let mut server = Connection::server(rules);
    let mut out = Vec::new();
    server.open_control(&mut out);
    server.go_away(8, &mut out);
    server.go_away(8, &mut out);
    server.go_away(4, &mut out);
    let mut client = Connection::client(ConnectionRules::default());
    let mut stream = UnidirectionalStream::default();
    let mut input = out.as_slice();
    let mut next = || client.receive_unidirectional(&mut stream, &mut input, 0);
    assert_eq!(next(), Ok(ControlEvent::Settings));
    assert_eq!(next(), Ok(ControlEvent::GoingAway { id: 8 }));
    assert_eq!(next(), Ok(ControlEvent::GoingAway { id: 4 }));
    assert_eq!(next(), Ok(ControlEvent::More));
    assert!(client.is_open() && client.peer().has_connect_protocol);
}

/// What a client sends without end on one stream, and how many of it are taken at most: on its
/// control stream behind SETTINGS, or on a request's stream behind its head. That head has earned
/// two priorities and an empty frame.
const FLOODS: &[(bool, &[u8], usize)] = &[
    (true, b"\x80\x0f\x07\x00\x01\x04", 1026),
    (true, b"\x21\0", 257),
    (true, b"\x07\x01\0", 257),
    (false, b"\0\0", 257),
    (false, b"\x21\0", 257),
    (false, b"\0\x01a", 16_384),
];

#[test]
fn floods_end() {
    for (is_control, frame, expected) in FLOODS {
        let mut connection = Connection::server(ConnectionRules::default());
        let mut control = UnidirectionalStream::default();
        let mut input = &b"\0\x04\0"[..];
        while connection.receive_unidirectional(&mut control, &mut input, 0)
            != Ok(ControlEvent::More)
        {}
        let (mut stream, mut reader) = (RequestStream::default(), RequestReader::default());
        let head = written(&[Head(GET)]);
        let mut input = head.as_slice();
        let begun = connection.receive_request(&mut stream, &mut input, false, &mut reader, 0);
        assert_eq!(
            begun,
            Ok(RequestEvent::Head {
                ends: false,
                fault: None
            })
        );
        let taken = (0..100_000).take_while(|_| {
            let mut input = *frame;
            while !input.is_empty() {
                let is_taken = match is_control {
                    true => connection
                        .receive_unidirectional(&mut control, &mut input, 0)
                        .is_ok(),
                    false => !matches!(
                        connection.receive_request(&mut stream, &mut input, false, &mut reader, 0),
                        Err(_) | Ok(RequestEvent::Reset(_))
                    ),
                };
                if !is_taken {
                    return false;
                }
            }
            true
        });
        assert_eq!(taken.count(), *expected, "{frame:02x?}");
    }
}

#[test]
fn codes_have_their_numbers() {
    for code in ErrorCode::ALL {
        assert_eq!(ErrorCode::of(code.number()), code);
        let is_of_qpack = code.to_string().starts_with("QPACK_");
        assert_eq!(code.number() >= 0x200, is_of_qpack, "{code}");
    }
    assert_eq!(ErrorCode::of(0x21), ErrorCode::NoError);
}
