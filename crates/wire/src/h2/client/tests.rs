use super::*;
use crate::field_section::ResponseReader;
use crate::h2::frame::{Frame, FrameHeader, HEADER_BYTES, PAYLOAD_BYTES_DEFAULT};
use crate::h2::hpack::Indexing;
use crate::h2::{write_data, write_go_away, write_headers, write_rst_stream, write_settings};

/// A client whose requests are GET, and a test server.
struct Talk {
    client: ClientConnection,
    reader: ResponseReader,
}

impl Talk {
    /// A client with one request in progress; `ends`: it has no body.
    fn begun(ends: bool, is_head: bool) -> Talk {
        let rules = HeadRules {
            head_bytes_max: 200,
            fields_max: 3,
            ..HeadRules::default()
        };
        let mut talk = Talk {
            client: ClientConnection::new(rules),
            reader: ResponseReader::default(),
        };
        talk.open(ends, is_head);
        talk.client.output().clear();
        talk
    }

    fn open(&mut self, ends: bool, is_head: bool) -> StreamId {
        let mut block = Vec::new();
        self.client
            .open(ends, is_head, &mut block, |encoder, block| {
                encoder.field(b":method", b"GET", Indexing::No, block);
            })
    }

    /// The events of the server's bytes, as text.
    fn hear(&mut self, bytes: &[u8]) -> String {
        let mut output = Vec::new();
        let mut at = 0;
        loop {
            let step = match self.client.receive(&bytes[at..], &mut self.reader, 0) {
                Ok(step) => step,
                Err(error) => {
                    output.push(error.upstream_reason());
                    return output.join("; ");
                }
            };
            at += step.consumed;
            match step.event {
                ServerEvent::More => return output.join("; "),
                ServerEvent::Nothing => {}
                ServerEvent::Head { stream, ends } => {
                    let status = self.reader.head.status;
                    output.push(format!("{stream}: head {status} {ends}"));
                }
                ServerEvent::Data { stream, data, ends } => {
                    let text = String::from_utf8_lossy(data);
                    output.push(format!("{stream}: data {text} {ends}"));
                }
                ServerEvent::Trailers { stream } => {
                    output.push(format!(
                        "{stream}: trailers {}",
                        self.reader.head.fields.len()
                    ));
                }
                ServerEvent::Malformed { stream, fault } => {
                    output.push(format!("{stream}: {}", fault.reason()));
                }
                other => output.push(format!("{other:?}")),
            }
        }
    }
}

/// A frame from the server.
enum Sent {
    Fields(&'static [(&'static str, &'static str)], bool),
    Data(&'static str, bool),
    Reset(ErrorCode),
    GoAway(StreamId),
    Raw(&'static [u8]),
}

use Sent::{Data, Fields, GoAway, Raw, Reset};

fn written(stream: StreamId, parts: &[Sent]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            Fields(fields, ends) => {
                let (mut encoder, mut block) = (Encoder::default(), Vec::new());
                for (name, value) in *fields {
                    encoder.field(name.as_bytes(), value.as_bytes(), Indexing::No, &mut block);
                }
                write_headers(&mut out, stream, &block, 7, *ends);
            }
            Data(text, ends) => write_data(&mut out, stream, text.as_bytes(), *ends),
            Reset(code) => write_rst_stream(&mut out, stream, *code),
            GoAway(last) => write_go_away(&mut out, *last, ErrorCode::NoError),
            Raw(bytes) => out.extend_from_slice(bytes),
        }
    }
    out
}

const OK: Sent = Fields(&[(":status", "200")], false);
const FIVE: Sent = Fields(&[(":status", "200"), ("content-length", "5")], false);
const MANY: &[(&str, &str)] = &[
    (":status", "200"),
    ("a", ""),
    ("b", ""),
    ("c", ""),
    ("d", ""),
];
const LARGE: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
                     xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
                     xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// The frames of a server on the stream of a request without body, and the client's events.
const ANSWERS: &[(&[Sent], &str)] = &[
    (
        &[OK, Data("a", false), Data("b", true)],
        "1: head 200 false; 1: data a false; 1: data b true",
    ),
    (&[Fields(&[(":status", "204")], true)], "1: head 204 true"),
    (
        &[
            Fields(&[(":status", "103"), ("link", "x")], false),
            OK,
            Data("", true),
        ],
        "1: head 103 false; 1: head 200 false; 1: data  true",
    ),
    (
        &[OK, Data("a", false), Fields(&[("grpc-status", "0")], true)],
        "1: head 200 false; 1: data a false; 1: trailers 1",
    ),
    (
        &[FIVE, Data("12345", true)],
        "1: head 200 false; 1: data 12345 true",
    ),
    (
        &[FIVE, Data("123456", true)],
        "1: head 200 false; 1: upstream sent response body larger than indicated content length",
    ),
    (
        &[FIVE, Data("1234", true)],
        "1: head 200 false; 1: upstream prematurely closed stream",
    ),
    (
        &[Fields(&[(":status", "200"), ("content-length", "5")], true)],
        "1: upstream prematurely closed stream",
    ),
    (
        &[Fields(&[("a", "b")], true)],
        "1: upstream sent no :status header",
    ),
    (
        &[Fields(&[(":status", "20")], true)],
        "1: upstream sent invalid :status",
    ),
    (
        &[Fields(&[(":status", "099")], true)],
        "1: upstream sent invalid :status",
    ),
    (
        &[Fields(&[(":status", "200"), (":status", "200")], true)],
        "1: upstream sent duplicate :status header",
    ),
    (
        &[Fields(&[("a", "b"), (":status", "200")], true)],
        "1: upstream sent out of order pseudo-headers",
    ),
    (
        &[Fields(&[(":path", "/")], true)],
        "1: upstream sent unknown pseudo-header",
    ),
    (
        &[Fields(&[(":status", "200"), ("a b", "")], true)],
        "1: upstream sent invalid header",
    ),
    (
        &[Fields(&[(":status", "200"), ("a", "b\nc")], true)],
        "1: upstream sent invalid header",
    ),
    (
        &[Fields(MANY, true)],
        "1: upstream sent too many header lines",
    ),
    (
        &[Fields(&[(":status", "200"), ("a", LARGE)], true)],
        "1: upstream sent too big header",
    ),
    (
        &[Data("a", false)],
        "1: upstream sent DATA frame before its header",
    ),
    (
        &[OK, Fields(&[("a", "b")], false)],
        "1: head 200 false; 1: upstream sent trailer without end stream flag",
    ),
    (
        &[Fields(&[(":status", "103")], true)],
        "1: upstream prematurely closed stream",
    ),
    // A complete answer must not be used if the server resets the stream at once. With NO_ERROR the
    // server only refuses the rest of the request, and the answer counts.
    (
        &[
            Fields(&[(":status", "200")], true),
            Reset(ErrorCode::Cancel),
        ],
        "1: head 200 true; Reset { stream: 1, code: Cancel }",
    ),
    (
        &[
            Fields(&[(":status", "200")], true),
            Reset(ErrorCode::NoError),
            Reset(ErrorCode::NoError),
        ],
        "1: head 200 true; upstream sent frame for unknown stream",
    ),
    (
        &[Reset(ErrorCode::RefusedStream)],
        "Reset { stream: 1, code: RefusedStream }",
    ),
    (
        &[OK, Reset(ErrorCode::NoError)],
        "1: head 200 false; Reset { stream: 1, code: NoError }",
    ),
    (
        &[Reset(ErrorCode::Cancel), Reset(ErrorCode::Cancel)],
        "Reset { stream: 1, code: Cancel }; upstream sent frame for unknown stream",
    ),
    (
        &[GoAway(1), Fields(&[(":status", "200")], true)],
        "GoingAway { last_stream: 1, code: NoError }; 1: head 200 true",
    ),
    // PUSH_PROMISE, DATA of the connection, an index that no table has, a frame too large.
    (
        &[Raw(&[0, 0, 4, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2])],
        "upstream sent PUSH_PROMISE frame",
    ),
    (
        &[Raw(&[0, 0, 0, 0, 0, 0, 0, 0, 0])],
        "upstream sent DATA frame with incorrect identifier",
    ),
    (
        &[Raw(&[0, 0, 1, 1, 5, 0, 0, 0, 1, 0xff])],
        "upstream sent HEADERS frame with incorrect length",
    ),
    (
        &[Raw(&[0, 0, 1, 1, 5, 0, 0, 0, 1, 0xbe])],
        "upstream sent invalid header block",
    ),
    (
        &[Raw(&[0, 0x40, 1, 0, 0, 0, 0, 0, 1])],
        "upstream sent too large frame",
    ),
];

#[test]
fn answers_are_reported_or_refused() {
    for (at, (frames, expected)) in ANSWERS.iter().enumerate() {
        let mut talk = Talk::begun(true, false);
        assert_eq!(talk.hear(&written(1, frames)), *expected, "case {at}");
    }
    let mut talk = Talk::begun(true, false);
    let unknown = talk.hear(&written(3, &[OK]));
    assert_eq!(unknown, "upstream sent frame for unknown stream");
}

#[test]
fn an_answer_to_head_has_a_length_and_no_body() {
    let mut talk = Talk::begun(true, true);
    let head = Fields(&[(":status", "200"), ("content-length", "5")], true);
    assert_eq!(talk.hear(&written(1, &[head])), "1: head 200 true");
    assert!(talk.client.is_idle());
}

#[test]
fn a_server_may_refuse_the_rest_of_a_request() {
    let no_more = [
        Fields(&[(":status", "200")], true),
        Reset(ErrorCode::NoError),
    ];
    let mut talk = Talk::begun(false, false);
    assert_eq!(talk.hear(&written(1, &no_more)), "1: head 200 true");
    assert!(!talk.client.may_send(1));
    // With any other code the answer must not be used.
    let cancelled = [
        Fields(&[(":status", "200")], true),
        Reset(ErrorCode::Cancel),
    ];
    let mut talk = Talk::begun(false, false);
    assert_eq!(
        talk.hear(&written(1, &cancelled)),
        "1: head 200 true; Reset { stream: 1, code: Cancel }"
    );
}

#[test]
fn a_client_begins_with_preface_and_settings() {
    let mut talk = Talk {
        client: ClientConnection::new(HeadRules::default()),
        reader: ResponseReader::default(),
    };
    assert!(talk.client.output().starts_with(PREFACE));
    let mut rest = &talk.client.output()[PREFACE.len()..];
    let settings = FrameHeader::parse(rest).expect("settings");
    let payload = &rest[HEADER_BYTES..][..settings.length as usize];
    assert_eq!(
        payload,
        [
            0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff
        ]
    );
    rest = &rest[HEADER_BYTES + payload.len()..];
    let update = FrameHeader::parse(rest).expect("an update of the window");
    let parsed = Frame::parse(update, &rest[HEADER_BYTES..]);
    let increment = WINDOW_MAX - 65_535;
    assert_eq!(parsed, Ok(Frame::WindowUpdate { increment }));
    talk.client.output().clear();
    assert!(talk.client.is_idle());
    assert_eq!(talk.open(true, false), 1);
    assert_eq!(talk.open(true, false), 3);
    assert_eq!(talk.client.open_streams(), 2);
}

#[test]
fn a_body_is_sent_as_far_as_the_windows_allow() {
    let mut talk = Talk::begun(false, false);
    let body = vec![b'x'; 70_000];
    let sent = talk.client.send_data(1, &body, true);
    assert_eq!(sent, 65_535);
    let first = FrameHeader::parse(talk.client.output()).expect("a frame");
    assert_eq!(first.length, PAYLOAD_BYTES_DEFAULT);
    talk.client.output().clear();
    assert_eq!(talk.client.send_data(1, &body[sent..], true), 0);
    let mut updates = Vec::new();
    crate::h2::write_window_update(&mut updates, 0, 10_000);
    assert_eq!(talk.hear(&updates), "Sendable");
    assert_eq!(
        talk.client.window(1),
        0,
        "the stream's window is still closed"
    );
    let mut settings = Vec::new();
    write_settings(&mut settings, &[(Setting::InitialWindowSize, 80_000)]);
    assert_eq!(talk.hear(&settings), "Sendable");
    talk.client.output().clear();
    assert_eq!(talk.client.send_data(1, &body[sent..], true), 70_000 - sent);
    assert!(!talk.client.may_send(1));
    let last = FrameHeader::parse(talk.client.output()).expect("a frame");
    assert_eq!((last.length as usize, last.flags), (70_000 - sent, 1));
}

#[test]
fn a_server_limits_streams_and_ends_connections() {
    let mut talk = Talk::begun(true, false);
    let mut settings = Vec::new();
    write_settings(&mut settings, &[(Setting::MaxConcurrentStreams, 1)]);
    talk.hear(&settings);
    assert!(!talk.client.may_open());
    talk.hear(&written(1, &[Fields(&[(":status", "200")], true)]));
    assert!(talk.client.may_open());
    assert!(!talk.client.is_idle(), "settings are to be acknowledged");
    talk.client.output().clear();
    assert!(talk.client.is_idle());
    talk.hear(&written(0, &[GoAway(1)]));
    assert!(!talk.client.may_open());
}

#[test]
fn a_flood_of_frames_ends_the_connection() {
    let mut talk = Talk::begun(true, false);
    let mut pings = Vec::new();
    for _ in 0..1100 {
        pings.extend_from_slice(&[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
    assert_eq!(
        talk.hear(&pings),
        "http2 flood detected: too many PING frames"
    );
    // The limit on frames also bounds the output.
    assert_eq!(talk.client.output().len(), 1024 * 17);
}

#[test]
fn a_server_may_send_its_answer_byte_by_byte() {
    let mut talk = Talk::begun(true, false);
    talk.hear(&written(1, &[OK]));
    let byte = written(1, &[Data("x", false)]);
    for _ in 0..20 {
        let events = talk.hear(&byte.repeat(1_000));
        assert!(events.ends_with("1: data x false"), "{events}");
    }
}
