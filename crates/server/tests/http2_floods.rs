//! Clients of HTTP/2 that cost more than they say: each is told why its connection ends, within a
//! counted number of frames, and another client's requests are all answered meanwhile.

#![allow(clippy::unwrap_used)]

use turnpike_testkit::Server;

#[path = "support/frames.rs"]
mod frames;
use frames::{
    ACK, CONTINUATION, Client, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING,
    PRIORITY, PRIORITY_UPDATE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, get, opening,
};

const TURNPIKE: &str = env!("CARGO_BIN_EXE_turnpike");

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log info;
    worker_processes 1;
    events { }
    http {
        server {
            listen 127.0.0.1:%PORT%;
            http2 on;
            http2_max_concurrent_streams 100000;
            keepalive_requests 1000000;
            root %FOLDER%/html;
            location = / { return 200 here; }
        }
    }";

const ENHANCE_YOUR_CALM: u8 = 11;

/// A request for `/`, all of its fields in the static table but for the host.
const REQUEST: &[u8] = b"\x82\x86\x84\x01\x01a";

/// What a client does again and again.
struct Flood {
    name: &'static str,
    /// What it sends before.
    before: fn() -> Vec<u8>,
    /// What it sends the n-th time.
    one: fn(u32) -> Vec<u8>,
    /// How often that is taken: an honest client never does it so often at once.
    accepted: u32,
    /// How often it is done at most before the connection ends.
    refused: u32,
    reason: &'static str,
}

fn nothing() -> Vec<u8> {
    Vec::new()
}

/// The head of a request with a body to come.
fn open_stream() -> Vec<u8> {
    frame(HEADERS, END_HEADERS, 1, REQUEST)
}

fn request(number: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, REQUEST)
}

const RESETS: &str = "http2 flood detected: too many streams were reset";
const EMPTY: &str = "http2 flood detected: too many empty frames";

const FLOODS: &[Flood] = &[
    Flood {
        name: "rapid reset (CVE-2023-44487)",
        before: nothing,
        one: |number| {
            let reset = frame(RST_STREAM, 0, 2 * number + 1, &[0, 0, 0, 8]);
            [request(number), reset].concat()
        },
        accepted: 390,
        refused: 4_000,
        reason: RESETS,
    },
    Flood {
        name: "resets that we are made to send (CVE-2025-8671)",
        before: nothing,
        one: |number| {
            let window = frame(WINDOW_UPDATE, 0, 2 * number + 1, &[0; 4]);
            [request(number), window].concat()
        },
        accepted: 390,
        refused: 4_000,
        reason: RESETS,
    },
    Flood {
        name: "resets by windows that are too large",
        before: nothing,
        one: |number| {
            let wide = [0x7f, 0xff, 0xff, 0xff];
            let window = frame(WINDOW_UPDATE, 0, 2 * number + 1, &wide);
            [request(number), window.clone(), window].concat()
        },
        accepted: 390,
        refused: 4_000,
        reason: RESETS,
    },
    Flood {
        name: "CONTINUATION (CVE-2024-24549 and its like)",
        before: || frame(HEADERS, END_STREAM, 1, REQUEST),
        one: |_| frame(CONTINUATION, 0, 1, b"\x40\x01a\x01b"),
        accepted: 0,
        refused: 640,
        reason: "http2 flood detected: too many CONTINUATION frames",
    },
    Flood {
        name: "empty CONTINUATION",
        before: || frame(HEADERS, END_STREAM, 1, REQUEST),
        one: |_| frame(CONTINUATION, 0, 1, b""),
        accepted: 0,
        refused: 640,
        reason: "http2 flood detected: too many CONTINUATION frames",
    },
    Flood {
        name: "SETTINGS",
        before: nothing,
        one: |number| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, number as u8]),
        accepted: 60,
        refused: 640,
        reason: "http2 flood detected: too many SETTINGS frames",
    },
    Flood {
        name: "acknowledgements of SETTINGS",
        before: nothing,
        one: |_| frame(SETTINGS, ACK, 0, b""),
        accepted: 250,
        refused: 2_560,
        reason: EMPTY,
    },
    Flood {
        name: "PING",
        before: nothing,
        one: |_| frame(PING, 0, 0, b"12345678"),
        accepted: 250,
        refused: 2_560,
        reason: "http2 flood detected: too many PING frames",
    },
    Flood {
        name: "empty DATA",
        before: open_stream,
        one: |_| frame(DATA, 0, 1, b""),
        accepted: 250,
        refused: 2_560,
        reason: EMPTY,
    },
    Flood {
        name: "tiny DATA with padding",
        before: open_stream,
        one: |_| frame(DATA, PADDED, 1, &[&[255, b'x'][..], &[0; 255]].concat()),
        accepted: 1_000,
        refused: 40_000,
        reason: "http2 flood detected",
    },
    Flood {
        name: "unknown frames",
        before: nothing,
        one: |_| frame(0x42, 0, 0, b"x"),
        accepted: 250,
        refused: 2_560,
        reason: EMPTY,
    },
    Flood {
        name: "PRIORITY",
        before: nothing,
        one: |_| frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 1]),
        accepted: 1_000,
        refused: 10_240,
        reason: "client sent too many PRIORITY frames",
    },
    Flood {
        name: "PRIORITY_UPDATE",
        before: nothing,
        one: |_| frame(PRIORITY_UPDATE, 0, 0, b"\x00\x00\x00\x01u=1"),
        accepted: 1_000,
        refused: 10_240,
        reason: "client sent too many PRIORITY frames",
    },
    Flood {
        name: "windows that are widened by a byte",
        before: || request(0),
        one: |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        accepted: 2_000,
        refused: 20_480,
        reason: "http2 flood detected: too many WINDOW_UPDATE frames",
    },
    Flood {
        name: "windows that let go of a byte at a time (CVE-2019-9511)",
        before: || get(1, "/file", &[]),
        one: |_| frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        accepted: 2_000,
        refused: 20_480,
        reason: "http2 flood detected: too many WINDOW_UPDATE frames",
    },
    Flood {
        name: "a list of fields that a table makes large",
        before: nothing,
        one: |_| {
            let field = [&b"\x40\x01a\x7f\xb9\x16"[..], &[b'x'; 3000]].concat();
            let block = [REQUEST, &field, &[0xbe; 4000]].concat();
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)
        },
        accepted: 0,
        refused: 1,
        reason: "client sent too large header list",
    },
];

/// The code of the GOAWAY that ends a connection.
fn ended_by(client: &mut Client) -> Option<u8> {
    while let Some(frame) = client.frame() {
        if frame.kind == GOAWAY {
            return frame.payload.get(7).copied();
        }
    }
    None
}

/// Sends a request, and reads until its head has come.
fn is_answered(client: &mut Client, number: u32) -> bool {
    client.send(&request(number));
    while let Some(frame) = client.frame() {
        if frame.kind == HEADERS {
            return true;
        }
    }
    false
}

/// A client to which no response body may be sent, so that streams stay open.
fn connect(server: &Server) -> Client {
    Client::connect(server, &opening(0))
}

#[test]
fn floods_end_their_own_connection_and_no_other() {
    let server = Server::builder(TURNPIKE)
        .configuration(CONFIGURATION)
        .file("html/file", vec![b'x'; 30_000])
        .start();
    let mut innocent = connect(&server);
    let mut asked = 0;
    for flood in FLOODS {
        let name = flood.name;
        let before = server.log("error.log").matches(flood.reason).count();
        let mut client = connect(&server);
        client.send(&(flood.before)());
        for number in 0..flood.accepted {
            client.send(&(flood.one)(number));
        }
        assert!(
            flood.accepted == 0 || client.is_served(),
            "{name}: {} are taken",
            flood.accepted
        );
        assert!(is_answered(&mut innocent, asked), "{name}");
        let rest: Vec<u8> = (flood.accepted..flood.refused)
            .flat_map(flood.one)
            .collect();
        client.send(&rest);
        assert!(is_answered(&mut innocent, asked + 1), "{name}");
        asked += 2;
        assert_eq!(ended_by(&mut client), Some(ENHANCE_YOUR_CALM), "{name}");
        turnpike_testkit::wait_for(|| {
            let found = server.log("error.log").matches(flood.reason).count();
            (found > before).then_some(())
        })
        .unwrap_or_else(|| panic!("{name}: the log does not say \"{}\"", flood.reason));
    }
    assert!(is_answered(&mut innocent, asked));
    // Its streams are open, since no response body may be sent to it.
    drop(innocent);
    assert!(server.quit().success());
}
