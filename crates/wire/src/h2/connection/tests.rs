use super::*;
use crate::field_section::RequestReader;
use crate::h2::frame::{Frame, FrameHeader, FrameKind, HEADER_BYTES, write_data};
use crate::h2::hpack::{Decoder, FieldSink, Indexing};
use crate::h2::window::{WINDOW_DEFAULT, WINDOW_MAX};

/// A test client that shows the server's frames as text.
struct Client {
    connection: Connection,
    reader: RequestReader,
    encoder: Encoder,
    decoder: Decoder,
    now_ms: u64,
}

impl Client {
    fn with(rules: ConnectionRules) -> Client {
        Client::with_acknowledgement(rules, true)
    }

    fn with_acknowledgement(rules: ConnectionRules, acknowledges: bool) -> Client {
        let mut client = Client {
            connection: Connection::new(rules),
            reader: RequestReader::default(),
            encoder: Encoder::default(),
            decoder: Decoder::new(4096),
            now_ms: 0,
        };
        let mut bytes = PREFACE.to_vec();
        frame::write_settings(&mut bytes, &[]);
        if acknowledges {
            frame::write_settings_ack(&mut bytes);
        }
        assert_eq!(client.sends(&bytes), "sendable");
        client.received();
        client
    }

    fn new() -> Client {
        Client::with(ConnectionRules {
            streams_max: 2,
            stream_window: 100,
            head: HeadRules::default(),
        })
    }

    /// Passes bytes to the server, at once and in pieces; returns the events, or the connection
    /// error.
    fn sends(&mut self, bytes: &[u8]) -> String {
        let mut events = Vec::new();
        let mut at = 0;
        loop {
            let step = self
                .connection
                .receive(&bytes[at..], &mut self.reader, self.now_ms);
            let step = match step {
                Ok(step) => step,
                Err(error) => {
                    events.push(format!("{:?}", error.code));
                    self.connection.fail(error);
                    break;
                }
            };
            at += step.consumed;
            match step.event {
                Event::More => break,
                Event::Nothing => {}
                Event::Request {
                    stream,
                    ends,
                    fault,
                } => {
                    let path = String::from_utf8_lossy(self.reader.head.origin()).into_owned();
                    let fault = fault.map(|fault| format!(" {fault:?}")).unwrap_or_default();
                    let more = if ends { "" } else { "+" };
                    events.push(format!("{stream}{more} {path}{fault}"));
                }
                Event::Data { stream, data, ends } => {
                    let more = if ends { "" } else { "+" };
                    events.push(format!("{stream}{more} {} bytes", data.len()));
                }
                Event::Trailers { stream } => {
                    let fields = self.reader.head.fields.iter().map(|(name, value)| {
                        let (name, value) = (name.escape_ascii(), value.escape_ascii());
                        format!(" {name}={value}")
                    });
                    events.push(format!("{stream} trailers{}", fields.collect::<String>()));
                }
                Event::BodyFault { stream } => events.push(format!("{stream} body fault")),
                Event::Reset { stream } => events.push(format!("{stream} reset")),
                Event::Prioritized { stream, priority } => {
                    events.push(format!("{stream} urgency {}", priority.urgency));
                }
                Event::Sendable => events.push("sendable".to_owned()),
                Event::GoingAway => events.push("going away".to_owned()),
            }
        }
        events.join(", ")
    }

    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            self.encoder
                .field(name, value, Indexing::WhenRepeated, &mut block);
        }
        block
    }

    fn headers(&mut self, stream: StreamId, ends: bool, more: &[(&str, &str)]) -> Vec<u8> {
        let start = [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "localhost"),
        ];
        let block = self.block(&[&start, more].concat());
        let mut bytes = Vec::new();
        frame::write_headers(&mut bytes, stream, &block, 16384, ends);
        bytes
    }

    fn requests(&mut self, stream: StreamId, ends: bool) -> String {
        let bytes = self.headers(stream, ends, &[]);
        self.sends(&bytes)
    }

    /// The frames from the server.
    fn received(&mut self) -> String {
        let output = std::mem::take(self.connection.output());
        let mut frames = Vec::new();
        let mut rest = output.as_slice();
        while let Some(header) = FrameHeader::parse(rest) {
            let (payload, behind) = rest[HEADER_BYTES..].split_at(header.length as usize);
            rest = behind;
            let stream = header.stream;
            frames.push(match Frame::parse(header, payload).expect("a frame") {
                Frame::Headers { fragment, .. } => {
                    let mut fields = Fields(String::new());
                    self.decoder.decode(fragment, &mut fields).expect("a block");
                    format!("{stream} HEADERS{}", fields.0)
                }
                Frame::Data { data, ends_stream } => {
                    let end = if ends_stream { "." } else { "" };
                    format!("{stream} DATA {}{end}", data.len())
                }
                Frame::RstStream { code } => format!("{stream} RST_STREAM {code:?}"),
                Frame::GoAway { last_stream, code } => format!("GOAWAY {last_stream} {code:?}"),
                Frame::WindowUpdate { increment } => format!("{stream} WINDOW_UPDATE {increment}"),
                other => format!("{other:?}"),
            });
        }
        frames.join(", ")
    }

    fn answers(&mut self, stream: StreamId, ends: bool) {
        let mut block = Vec::new();
        self.connection
            .send_head(stream, ends, &mut block, |encoder, block| {
                encoder.field(b":status", b"200", Indexing::No, block);
            });
    }
}

struct Fields(String);

impl FieldSink for Fields {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        for part in [b" ", name, b"=", value] {
            self.0.push_str(&String::from_utf8_lossy(part));
        }
    }
}

fn frame(kind: FrameKind, flags: u8, stream: StreamId, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    FrameHeader {
        length: payload.len() as u32,
        kind,
        flags,
        stream,
    }
    .write(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn data(stream: StreamId, data: &[u8], ends: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_data(&mut bytes, stream, data, ends);
    bytes
}

#[test]
fn a_request_is_answered() {
    let mut client = Client::new();
    assert_eq!(client.requests(1, true), "1 /");
    client.answers(1, false);
    assert_eq!(client.connection.send_data(1, b"hello", true, 3), 3);
    assert_eq!(client.connection.send_data(1, b"lo", true, 3), 2);
    assert_eq!(
        client.received(),
        "1 HEADERS :status=200, 1 DATA 3, 1 DATA 2."
    );
    assert_eq!(client.connection.open_streams(), 0);
    assert!(!client.connection.may_send(1));
}

#[test]
fn a_preface_is_needed() {
    let rules = ConnectionRules {
        streams_max: 1,
        stream_window: 1,
        head: HeadRules::default(),
    };
    let mut reader = RequestReader::default();
    for (bytes, expected) in [
        (b"PRI * HT".to_vec(), Ok(())),
        (b"GET / HT".to_vec(), Err(ErrorCode::ProtocolError)),
    ] {
        let mut connection = Connection::new(rules);
        let mut at = 0;
        let result = loop {
            match connection.receive(&bytes[at..], &mut reader, 0) {
                Ok(step) if step.event == Event::More => break Ok(()),
                Ok(step) => at += step.consumed,
                Err(error) => break Err(error.code),
            }
        };
        assert_eq!(result, expected);
    }
}

#[test]
fn bodies_come_within_their_windows() {
    let mut client = Client::new();
    assert_eq!(client.requests(1, false), "1+ /");
    assert_eq!(client.sends(&data(1, &[0; 60], false)), "1+ 60 bytes");
    client.connection.grant(1, 60);
    assert_eq!(client.received(), "1 WINDOW_UPDATE 60");
    assert_eq!(client.sends(&data(1, &[0; 100], false)), "1+ 100 bytes");
    assert_eq!(client.sends(&data(1, &[0], false)), "1 reset");
    assert_eq!(client.received(), "1 RST_STREAM FlowControlError");
    assert_eq!(client.sends(&data(1, &[0], true)), "");
    assert_eq!(client.received(), "");
}

#[test]
fn windows_are_widened_for_whoever_reads() {
    let mut client = Client::new();
    assert_eq!(client.requests(1, false), "1+ /");
    client.connection.allow_buffer(1, 90);
    assert_eq!(client.received(), "");
    client.connection.allow_buffer(1, 250);
    assert_eq!(client.received(), "1 WINDOW_UPDATE 150");
    assert_eq!(client.sends(&data(1, &[0; 250], false)), "1+ 250 bytes");
    client.connection.open_stream_window(1);
    assert_eq!(
        client.received(),
        format!("1 WINDOW_UPDATE {WINDOW_MAX}"),
        "as far as it goes"
    );
    assert_eq!(client.sends(&data(1, &[0; 1000], false)), "1+ 1000 bytes");
    client.connection.grant(1, 1000);
    assert_eq!(client.received(), "", "it is wide anyway");
}

#[test]
fn bodies_before_the_acknowledgement_are_refused_where_windows_are_small() {
    for (stream_window, expected) in [(100, ""), (WINDOW_DEFAULT, "1+ /")] {
        let mut client = Client::with_acknowledgement(
            ConnectionRules {
                streams_max: 2,
                stream_window,
                head: HeadRules::default(),
            },
            false,
        );
        assert_eq!(client.requests(1, false), expected);
        if expected.is_empty() {
            assert_eq!(client.received(), "1 RST_STREAM RefusedStream");
        }
        assert_eq!(client.requests(3, true), "3 /");
    }
}

#[test]
fn announced_lengths_hold() {
    for (parts, expected) in [
        (&[3usize, 2][..], "1+ /, 1+ 3 bytes, 1 2 bytes"),
        (&[6, 0], "1+ /, 1 body fault"),
        (&[3], "1+ /, 1 body fault"),
    ] {
        let mut client = Client::new();
        let mut bytes = client.headers(1, false, &[("content-length", "5")]);
        for (number, part) in parts.iter().enumerate() {
            bytes.extend(data(1, &vec![0; *part], number + 1 == parts.len()));
        }
        assert_eq!(client.sends(&bytes), expected);
        client.answers(1, true);
        let output = client.received();
        assert_eq!(
            output.contains("RST_STREAM ProtocolError"),
            expected.contains("fault")
        );
    }
}

#[test]
fn unwanted_bodies_end_with_the_response_where_no_frame_of_them_can_come() {
    // Bytes announced and sent, and whether the response resets the stream. A window has 100.
    for (announced, sent, is_reset) in [("5", 3, false), ("500", 99, false), ("500", 100, true)] {
        let mut client = Client::new();
        let mut bytes = client.headers(1, false, &[("content-length", announced)]);
        bytes.extend(data(1, &vec![0; sent], false));
        client.sends(&bytes);
        client.received();
        client.answers(1, true);
        let output = client.received();
        assert_eq!(
            output.contains("1 RST_STREAM NoError"),
            is_reset,
            "{output}"
        );
    }
}

/// The fields behind a body, and the events.
const TRAILERS: &[(&[(&str, &str)], &str)] = &[
    (&[("a", "b"), ("c-d", "e f")], "1 trailers a=b c-d=e f"),
    (&[], "1 0 bytes"),
    (
        &[("connection", "close"), ("te", "trailers")],
        "1 trailers te=trailers",
    ),
    (&[("keep-alive", "1")], "1 0 bytes"),
    (&[("a_b", "1"), ("c", "d")], "1 trailers c=d"),
    (&[(":path", "/")], "1 reset"),
    (&[("a", " b")], "1 reset"),
    (&[("a b", "c")], "1 reset"),
    (&[("a", "b\0c")], "1 reset"),
];

#[test]
fn trailers_end_a_body() {
    for (fields, events) in TRAILERS {
        let mut client = Client::new();
        client.requests(1, false);
        assert_eq!(client.sends(&data(1, b"body", false)), "1+ 4 bytes");
        let block = client.block(fields);
        let mut bytes = Vec::new();
        frame::write_headers(&mut bytes, 1, &block, 16384, true);
        assert_eq!(client.sends(&bytes), *events, "{fields:?}");
    }
}

#[test]
fn windows_hold_back_what_is_sent() {
    let mut client = Client::new();
    client.requests(1, true);
    client.requests(3, true);
    let most = WINDOW_DEFAULT as usize;
    assert_eq!(client.connection.window(1), most);
    while client.connection.send_data(1, &vec![0; most], false, 16384) > 0 {}
    assert_eq!(
        (client.connection.window(1), client.connection.window(3)),
        (0, 0)
    );
    let mut bytes = Vec::new();
    frame::write_window_update(&mut bytes, 0, 10);
    assert_eq!(client.sends(&bytes), "sendable");
    assert_eq!(
        (client.connection.window(1), client.connection.window(3)),
        (0, 10)
    );
    bytes.clear();
    frame::write_settings(&mut bytes, &[(Setting::InitialWindowSize, 1)]);
    frame::write_window_update(&mut bytes, 1, WINDOW_DEFAULT);
    assert_eq!(client.sends(&bytes), "sendable, sendable");
    assert_eq!(
        (client.connection.window(1), client.connection.window(3)),
        (1, 1)
    );
}

/// A name; kind, flags, stream and payload of a frame on stream 1, whose request is answered except
/// for its body; the event, and the frames that the client receives.
type Wrong = (
    &'static str,
    (u8, u8, StreamId, &'static [u8]),
    &'static str,
    &'static str,
);

const WRONGS: &[Wrong] = &[
    (
        "DATA on 0",
        (0x0, 1, 0, b""),
        "ProtocolError",
        "GOAWAY 1 ProtocolError",
    ),
    (
        "DATA on idle",
        (0x0, 1, 3, b""),
        "ProtocolError",
        "GOAWAY 1 ProtocolError",
    ),
    (
        "DATA on half closed",
        (0x0, 1, 1, b"x"),
        "1 reset",
        "1 RST_STREAM StreamClosed",
    ),
    (
        "even",
        (0x1, 5, 2, b"\x82"),
        "ProtocolError",
        "GOAWAY 1 ProtocolError",
    ),
    (
        "CONTINUATION",
        (0x9, 4, 1, b""),
        "ProtocolError",
        "GOAWAY 1 ProtocolError",
    ),
    (
        "RST_STREAM on idle",
        (0x3, 0, 3, &[0; 4]),
        "ProtocolError",
        "GOAWAY 1 ProtocolError",
    ),
    ("RST_STREAM", (0x3, 0, 1, &[0, 0, 0, 8]), "1 reset", ""),
    (
        "PUSH_PROMISE",
        (0x5, 0, 1, &[0; 4]),
        "ProtocolError",
        "GOAWAY 1 ProtocolError",
    ),
    (
        "too large",
        (0x42, 0, 0, &[0; 16 * 1024 + 1]),
        "FrameSizeError",
        "GOAWAY 1 FrameSizeError",
    ),
    (
        "window 0",
        (0x8, 0, 1, &[0; 4]),
        "1 reset",
        "1 RST_STREAM ProtocolError",
    ),
    (
        "window of all 0",
        (0x8, 0, 0, &[0; 4]),
        "ProtocolError",
        "GOAWAY 1 ProtocolError",
    ),
    (
        "window too large",
        (0x8, 0, 1, &[0x7f, 255, 255, 255]),
        "1 reset",
        "1 RST_STREAM FlowControlError",
    ),
    (
        "window of all too large",
        (0x8, 0, 0, &[0x7f, 255, 255, 255]),
        "FlowControlError",
        "GOAWAY 1 FlowControlError",
    ),
    (
        "window on idle",
        (0x8, 0, 5, &[0, 0, 0, 1]),
        "ProtocolError",
        "GOAWAY 1 ProtocolError",
    ),
    (
        "depends on itself",
        (0x2, 0, 1, &[0, 0, 0, 1, 0]),
        "ProtocolError",
        "GOAWAY 1 ProtocolError",
    ),
    ("PING", (0x6, 0, 0, b"12345678"), "", "PingAck"),
    ("unknown", (0x42, 0, 9, b"x"), "", ""),
    (
        "trailers",
        (0x1, 5, 1, b""),
        "1 reset",
        "1 RST_STREAM StreamClosed",
    ),
    (
        "no block",
        (0x1, 5, 3, b"\x40"),
        "CompressionError",
        "GOAWAY 3 CompressionError",
    ),
];

#[test]
fn frames_at_wrong_times_are_refused() {
    for (name, (kind, flags, stream, payload), events, output) in WRONGS {
        let mut client = Client::new();
        client.requests(1, true);
        client.answers(1, false);
        client.received();
        let bytes = frame(FrameKind::of(*kind), *flags, *stream, payload);
        assert_eq!(client.sends(&bytes), *events, "{name}");
        assert_eq!(client.received(), *output, "{name}");
    }
}

#[test]
fn more_streams_than_allowed_are_refused() {
    let mut client = Client::new();
    for stream in [1, 3] {
        client.requests(stream, true);
    }
    assert_eq!(client.requests(5, true), "");
    assert_eq!(client.received(), "5 RST_STREAM RefusedStream");
    client.answers(1, true);
    assert_eq!(client.requests(7, true), "7 /");
    assert_eq!(client.requests(1, true), "StreamClosed");
}

#[test]
fn after_go_away_only_open_streams_go_on() {
    let mut client = Client::new();
    client.requests(1, true);
    client.connection.go_away();
    assert_eq!(client.received(), "GOAWAY 1 NoError");
    assert_eq!(client.requests(3, true), "");
    client.answers(1, true);
    assert_eq!(client.received(), "1 HEADERS :status=200");
    assert_eq!(client.connection.open_streams(), 0);
}

#[test]
fn a_late_head_resets_its_stream() {
    let mut client = Client::new();
    let bytes = client.headers(1, true, &[]);
    assert_eq!(client.sends(&bytes[..12]), "");
    assert!(client.connection.give_up_head(&bytes[..12]));
    assert_eq!(client.received(), "1 RST_STREAM ProtocolError");
    assert_eq!(client.sends(&bytes), "");
    assert_eq!(client.requests(3, true), "3 /");
}

#[test]
fn priorities_come_before_with_and_after_their_streams() {
    let mut client = Client::new();
    let update = |stream: u32, value: &[u8]| {
        let payload = [&stream.to_be_bytes(), value].concat();
        frame(FrameKind::PriorityUpdate, 0, 0, &payload)
    };
    client.sends(&update(1, b"u=1"));
    let bytes = client.headers(1, true, &[("priority", "u=5")]);
    client.sends(&bytes);
    let bytes = client.headers(3, true, &[("priority", "u=5, i")]);
    client.sends(&bytes);
    let of = |client: &Client, stream| client.connection.priority(stream).urgency;
    assert_eq!((of(&client, 1), of(&client, 3)), (1, 5));
    assert_eq!(client.sends(&update(3, b"u=0")), "3 urgency 0");
    assert_eq!(of(&client, 3), 0);
}

/// A name, the frames of each round, and the number of rounds that is too many.
type Flood = (&'static str, fn(&mut Client, u32) -> Vec<u8>, u32);

/// Frames that cost more than their size, and the number that is too many.
fn floods() -> Vec<Flood> {
    vec![
        (
            "rapid reset",
            |client, round| {
                let stream = round * 2 + 1;
                let mut bytes = client.headers(stream, true, &[]);
                frame::write_rst_stream(&mut bytes, stream, ErrorCode::Cancel);
                bytes
            },
            500,
        ),
        (
            "made to reset",
            |client, round| {
                let stream = round * 2 + 1;
                let mut bytes = client.headers(stream, true, &[]);
                frame::write_window_update(&mut bytes, stream, 0);
                bytes
            },
            500,
        ),
        (
            "settings",
            |_, _| frame(FrameKind::Settings, 0, 0, b""),
            100,
        ),
        (
            "ping",
            |_, _| frame(FrameKind::Ping, 0, 0, b"12345678"),
            1100,
        ),
        (
            "priority",
            |_, _| frame(FrameKind::Priority, 0, 1, &[0, 0, 0, 3, 0]),
            1100,
        ),
        (
            "window",
            |_, _| frame(FrameKind::WindowUpdate, 0, 0, &[0, 0, 0, 1]),
            2100,
        ),
        (
            "unknown",
            |_, _| frame(FrameKind::Unknown(0x42), 0, 0, b""),
            300,
        ),
        (
            "empty",
            |client, round| match round {
                0 => client.headers(1, false, &[]),
                _ => data(1, b"", false),
            },
            300,
        ),
        (
            "continuation",
            |_, round| match round {
                0 => frame(FrameKind::Headers, 0, 1, b"\x82"),
                _ => frame(FrameKind::Continuation, 0, 1, b"\x82"),
            },
            100,
        ),
    ]
}

#[test]
fn floods_end_the_connection_and_slow_peers_do_not() {
    for (name, frames, most) in floods() {
        for (pause_ms, expected) in [(0, true), (1_000, false)] {
            let mut client = Client::new();
            let mut ended = false;
            for round in 0..most {
                client.now_ms += pause_ms;
                let bytes = frames(&mut client, round);
                ended |= client.sends(&bytes).contains("EnhanceYourCalm");
                client.received();
            }
            assert_eq!(ended, expected, "{name}, {pause_ms} ms apart");
        }
    }
}

#[test]
fn divided_heads_are_no_flood() {
    let mut client = Client::new();
    for stream in (1..200).step_by(2) {
        let first = frame(FrameKind::Headers, 0x1, stream, b"\x82\x86");
        let rest = frame(FrameKind::Continuation, 0x4, stream, b"\x84\x41\x01x");
        let events = client.sends(&[first, rest].concat());
        assert!(!events.contains("EnhanceYourCalm"), "{stream}: {events}");
    }
}

#[test]
fn many_tiny_parts_of_a_body_are_a_flood() {
    let padded = frame(FrameKind::Data, 0x8, 1, &[99; 101]);
    for (name, part, expected) in [
        ("a byte with 99 of padding", padded, true),
        ("a byte", data(1, b"x", false), true),
        ("two bytes", data(1, b"xx", false), true),
        ("the least message of gRPC", data(1, &[0; 5], false), false),
    ] {
        let mut client = Client::with(ConnectionRules {
            streams_max: 1,
            stream_window: WINDOW_MAX,
            head: HeadRules::default(),
        });
        client.requests(1, false);
        let parts = part.repeat(1_000);
        let ended = (0..100).any(|_| client.sends(&parts).contains("EnhanceYourCalm"));
        assert_eq!(ended, expected, "{name}");
    }
}

#[test]
fn a_stream_with_many_tiny_parts_is_reset_and_others_are_served() {
    let mut client = Client::with(ConnectionRules {
        streams_max: 2,
        stream_window: WINDOW_MAX,
        head: HeadRules::default(),
    });
    client.requests(1, false);
    client.requests(3, false);
    let tiny = data(1, b"x", false);
    client.sends(&tiny.repeat(16_384));
    assert!(!client.received().contains("RST_STREAM"));
    assert_eq!(client.sends(&tiny), "1 reset");
    assert!(client.received().contains("1 RST_STREAM EnhanceYourCalm"));
    // What was on its way is not wanted any more, and the other stream goes on.
    assert_eq!(client.sends(&tiny), "");
    assert_eq!(client.sends(&data(3, b"x", true)), "3 1 bytes");
}

#[test]
fn lists_of_fields_are_limited_even_in_small_blocks() {
    let mut client = Client::new();
    let large = "x".repeat(2000);
    let bytes = client.headers(1, true, &[("a", &large)]);
    client.sends(&bytes);
    let bytes = client.headers(3, true, &[("a", &large)]);
    client.sends(&bytes);
    let many = vec![("a", large.as_str()); 60];
    let bytes = client.headers(5, true, &many);
    assert!(bytes.len() < 200);
    assert_eq!(client.sends(&bytes), "EnhanceYourCalm");
}

#[test]
fn long_heads_are_split_by_the_clients_frame_size() {
    for (payload_bytes_max, expected) in [
        (
            None,
            &["Headers 16384", "Continuation 16384", "Continuation 2243"][..],
        ),
        (Some(1 << 17), &["Headers 35011"]),
    ] {
        let mut client = Client::new();
        if let Some(bytes) = payload_bytes_max {
            let mut settings = Vec::new();
            frame::write_settings(&mut settings, &[(Setting::MaxFrameSize, bytes)]);
            assert_eq!(client.sends(&settings), "sendable");
        }
        client.requests(1, true);
        client.connection.output().clear();
        // The Huffman code makes tildes longer, so they are sent as they are.
        let value = [b'~'; 35_000];
        let mut block = Vec::new();
        client
            .connection
            .send_head(1, true, &mut block, |encoder, block| {
                encoder.field(b"x-long", &value, Indexing::No, block);
            });
        let mut rest = client.connection.output().as_slice();
        let mut frames = Vec::new();
        while let Some(header) = FrameHeader::parse(rest) {
            frames.push(format!("{:?} {}", header.kind, header.length));
            rest = &rest[HEADER_BYTES + header.length as usize..];
        }
        assert_eq!(frames, expected);
    }
}
