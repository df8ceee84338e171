//! The order of frames on a connection of HTTP/2 is that of RFC 9218: the urgent first, of those
//! one behind another, and in turn what a client can use in parts.
//!
//! The connection's window decides how many bytes may be sent, so that a test can ask for
//! responses before any of them is sent.

use turnpike_testkit::Server;

use crate::support::frames::{Client, HEADERS, PRIORITY_UPDATE, frame, get, opening};

const CONFIGURATION: &str = "
    events { }
    http {
        access_log off;
        server {
            listen 127.0.0.1:%PORT%;
            http2 on;
            root %FOLDER%/html;
        }
    }";

/// The window of a connection before it is widened (RFC 9113 section 6.9.2).
const FIRST_WINDOW: usize = 65_535;

/// Five frames of the usual size, less a few bytes.
const FILE_BYTES: usize = 40_000;

/// The largest of our frames.
const FRAME_BYTES: usize = 8 * 1024;

/// The widest window of a stream.
const WIDE: u32 = (1 << 31) - 1;

fn server() -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/first", vec![b'x'; FIRST_WINDOW])
        .file("html/file", vec![b'x'; FILE_BYTES])
        .start()
}

/// A client whose connection has no window left.
fn held_back(server: &Server) -> Client {
    let mut client = Client::connect(server, &opening(WIDE));
    client.send(&get(1, "/first", &[]));
    let mut received = 0;
    while received < FIRST_WINDOW {
        received += client.data().payload.len();
    }
    client
}

/// Asks for the file on these streams, and waits until all of them could be sent.
fn ask(client: &mut Client, streams: &[(u32, &str)]) {
    for (stream, priority) in streams {
        client.send(&get(*stream, "/file", &[("priority", priority)]));
    }
    let mut heads = 0;
    while heads < streams.len() {
        heads += usize::from(client.frame().unwrap().kind == HEADERS);
    }
    assert!(client.is_served());
}

fn update(client: &mut Client, stream: u32, priority: &str) {
    let payload = [&stream.to_be_bytes()[..], priority.as_bytes()].concat();
    client.send(&frame(PRIORITY_UPDATE, 0, 0, &payload));
}

/// Widens the window by so many files; returns the frames that use it: stream and bytes.
fn sent(client: &mut Client, files: usize) -> Vec<(u32, usize)> {
    let bytes = files * FILE_BYTES;
    client.widen(0, u32::try_from(bytes).unwrap());
    let (mut frames, mut received) = (Vec::new(), 0);
    while received < bytes {
        let data = client.data();
        received += data.payload.len();
        frames.push((data.stream, data.payload.len()));
    }
    frames
}

/// The streams in their order, each once for all frames that follow each other.
fn order(frames: &[(u32, usize)]) -> Vec<u32> {
    let mut streams: Vec<u32> = frames.iter().map(|(stream, _)| *stream).collect();
    streams.dedup();
    streams
}

/// Streams and their priorities, in the order in which they are asked for.
type Asked = &'static [(u32, &'static str)];

/// What is asked for, and in which order whole files come.
const ORDERS: &[(&str, Asked, &[u32])] = &[
    (
        "the urgent first",
        &[(3, "u=5"), (5, "u=1"), (7, "u=3"), (9, "u=0")],
        &[9, 5, 7, 3],
    ),
    (
        "as asked for, where all are alike",
        &[(3, "u=2"), (5, "u=2"), (7, "u=2")],
        &[3, 5, 7],
    ),
    (
        "3 is the usual urgency",
        &[(3, "u=4"), (5, ""), (7, "u=2"), (9, "?")],
        &[7, 5, 9, 3],
    ),
    (
        "parts are of no use before what is wanted whole",
        &[(3, "u=3, i"), (5, "u=3")],
        &[5, 3],
    ),
];

#[test]
fn responses_come_in_the_order_of_their_urgency() {
    let server = server();
    for (name, streams, expected) in ORDERS {
        let mut client = held_back(&server);
        ask(&mut client, streams);
        let frames = sent(&mut client, streams.len());
        assert_eq!(order(&frames), *expected, "{name}");
        let least = streams.len() * FILE_BYTES.div_ceil(FRAME_BYTES);
        assert!(frames.len() <= least + streams.len(), "{name}: {frames:?}");
    }
}

#[test]
fn responses_that_are_of_use_in_parts_share_each_turn() {
    let server = server();
    let mut client = held_back(&server);
    let streams = [
        (3, "u=2, i"),
        (5, "i, u=2"),
        (7, "u=2, i=?1"),
        (9, "u=6, i"),
    ];
    ask(&mut client, &streams);
    let frames = sent(&mut client, streams.len());
    let mut bytes = [0_usize; 4];
    for (stream, count) in &frames {
        bytes[(*stream as usize - 3) / 2] += count;
        let [shared @ .., last] = bytes;
        let (least, most) = (shared.iter().min().unwrap(), shared.iter().max().unwrap());
        assert!(most - least <= FRAME_BYTES, "{frames:?}");
        assert!(last == 0 || *least == FILE_BYTES, "{frames:?}");
    }
    assert_eq!(bytes, [FILE_BYTES; 4]);
}

#[test]
fn a_client_may_change_its_mind() {
    let server = server();
    let mut client = held_back(&server);
    // Before its stream is open, and while it is.
    update(&mut client, 7, "u=1");
    let streams = [(3, "u=3"), (5, "u=3")];
    ask(&mut client, &streams);
    client.send(&get(7, "/file", &[("priority", "u=7")]));
    while client.frame().unwrap().kind != HEADERS {}
    update(&mut client, 5, "u=2");
    assert!(client.is_served());
    assert_eq!(order(&sent(&mut client, 1)), [7]);
    assert_eq!(order(&sent(&mut client, 1)), [5]);
    update(&mut client, 99, "u=0");
    assert_eq!(order(&sent(&mut client, 1)), [3]);
}
