//! Connections of HTTP/2 on a lane whose client acts between its polls.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_conf::{ConfError, Row, View};
use turnpike_lane::turns;
use turnpike_wire::h2::PREFACE;

use super::super::Command;
use super::super::slot::{DrivenWork, Slot};
use super::super::tests::{Lane, Restless};
use super::{Spoken, by_first_bytes};
use crate::exchange::Exchange;
use crate::h2::shared::Shared;
use crate::phase::{Handler, HandlerPlace, Verdict};
use crate::plan::{Builder, Family, LocationDraft};
use crate::response::Body;
use crate::testing;

#[test]
fn the_first_bytes_of_a_plain_connection_choose_the_protocol() {
    let table: &[(&str, Spoken)] = &[
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Spoken::Http2),
        ("PRI * HT", Spoken::Unclear),
        ("PRI * HTTP/2.0\r\n\r\nxxxxxxxx", Spoken::Http1),
        ("GET / HTTP/1.1\r\n", Spoken::Http1),
        ("GET /a b HTTP/1.1\r\n", Spoken::Http1),
        ("GET /\r\n", Spoken::Http1),
        ("\r\nGET / HTTP/1.0\r\n", Spoken::Http1),
        ("xxxxxxxxxxxxxxxx\r\n", Spoken::Http1),
        ("INVALID CONNECTION PREF", Spoken::Http1),
        ("INVALID CONNECTION PREFACE\r\n\r\n", Spoken::Http2),
        ("OPTIONS rtsp://a/ RTSP/1.0\r\n", Spoken::Http2),
    ];
    for (bytes, expected) in table {
        assert_eq!(by_first_bytes(bytes.as_bytes()), *expected, "{bytes:?}");
    }
}

const HTTP2: &str = "server { listen 127.0.0.1:80; http2 on; }";

/// Bytes of an answer: more than a socket and the output of a connection hold.
const ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// Bytes by which a window is widened.
const STEP_BYTES: u32 = 16 * 1024;

/// A family that answers every request with [`ANSWER_BYTES`].
struct Large;

impl Family for Large {
    fn name(&self) -> &'static str {
        "large"
    }
    fn rows(&self) -> &'static [Row] {
        &[]
    }
    fn location(
        &self,
        _: View<'_>,
        _: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        draft.add_handler(HandlerPlace::Answer, Arc::new(Large));
        Ok(())
    }
}

impl Handler for Large {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        exchange.response.set_status(200);
        exchange
            .response
            .set_content_length(Some(ANSWER_BYTES as u64));
        exchange.response.text_mut().resize(ANSWER_BYTES, b'x');
        exchange.response.set_body(Body::Text);
        Verdict::Respond
    }
}

/// A frame (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(8, 0, stream, &bytes.to_be_bytes())
}

/// `GET http://a/`, whole.
fn get(stream: u32) -> Vec<u8> {
    frame(1, 0b101, stream, b"\x82\x86\x84\x41\x01a")
}

/// A client that does not wait.
struct Client {
    socket: UnixStream,
}

impl Client {
    fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// Reads until the socket is empty.
    fn drain(&mut self) {
        let mut bytes = vec![0; 1024 * 1024];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The lane has closed the connection, as what it leaves will show.
                _ => return,
            }
        }
    }
}

/// Lets the lane do all that there is to do.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Widens a stream's window until its answer has filled the socket, and waits for the window once
/// more with a rest in the output.
async fn fill_socket(client: &mut Client, shared: &Shared) {
    while shared.unsent_bytes() == 0 {
        client.send(&window_update(1, STEP_BYTES));
        settle().await;
    }
}

/// What the client does at a time when the socket is full.
type Act = fn(&mut Client);

const ACTS: &[(&str, Act)] = &[
    ("window, then room", |client| {
        client.send(&window_update(1, STEP_BYTES));
        client.drain();
    }),
    ("room, then window", |client| {
        client.drain();
        client.send(&window_update(1, STEP_BYTES));
    }),
    ("ping, then room", |client| {
        client.send(&frame(6, 0, 0, &[0; 8]));
        client.drain();
    }),
    ("another request, then room", |client| {
        client.send(&[get(3), window_update(3, STEP_BYTES)].concat());
        client.drain();
    }),
    ("the end of a stream, then room", |client| {
        client.send(&frame(3, 0, 1, &8_u32.to_be_bytes()));
        client.drain();
    }),
];

#[test]
fn a_socket_that_takes_more_while_a_stream_may_send_holds_no_lane_up() {
    for (name, act) in ACTS {
        let plan = testing::plan_with(&[&Large], HTTP2).unwrap();
        let mut lane = Lane::serving(Arc::new(plan));
        let mut client = Client {
            socket: lane.client(),
        };
        client.socket.set_nonblocking(true).unwrap();
        // SETTINGS_INITIAL_WINDOW_SIZE is 0.
        client.send(PREFACE);
        client.send(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
        client.send(&window_update(0, 1 << 30));
        client.send(&get(1));
        lane.turn();
        let Slot::Driven(driven) = &lane.connections.slots[0] else {
            panic!("it is driven");
        };
        let DrivenWork::Streams(shared) = &driven.work else {
            panic!("it speaks HTTP/2");
        };
        let (shared, mailbox) = (Rc::clone(shared), lane.mailbox.clone());
        let left_bytes = Rc::new(Cell::new(None));
        let leaves_bytes = Rc::clone(&left_bytes);
        lane.connections
            .lane
            .run_in_background(Box::pin(async move {
                fill_socket(&mut client, &shared).await;
                act(&mut client);
                settle().await;
                client.drain();
                settle().await;
                leaves_bytes.set(Some(shared.unsent_bytes()));
                mailbox.send(Command::Terminate);
            }));
        let before = turns::spent_polls();
        lane.run();
        assert_eq!(turns::spent_polls(), before, "{name}");
        assert_eq!(left_bytes.get(), Some(0), "{name}");
    }
}

#[test]
fn a_request_that_moves_no_byte_costs_its_stream() {
    let plan = testing::plan_with(&[&Restless], HTTP2).unwrap();
    let mut lane = Lane::serving(Arc::new(plan));
    let mut client = lane.client();
    let mailbox = lane.mailbox.clone();
    let client = std::thread::spawn(move || {
        client.write_all(PREFACE).unwrap();
        client.write_all(&frame(4, 0, 0, &[])).unwrap();
        client.write_all(&get(1)).unwrap();
        // RST_STREAM with INTERNAL_ERROR.
        let reset = frame(3, 0, 1, &2_u32.to_be_bytes());
        let pong = frame(6, 1, 0, &[7; 8]);
        let mut came = Vec::new();
        let mut read_until = |client: &mut UnixStream, frame: &[u8]| {
            while !came.ends_with(frame) {
                let mut bytes = [0; 4096];
                match client.read(&mut bytes) {
                    Ok(count @ 1..) => came.extend(&bytes[..count]),
                    _ => return false,
                }
            }
            true
        };
        let is_reset = read_until(&mut client, &reset);
        client.write_all(&frame(6, 0, 0, &[7; 8])).unwrap();
        let is_alive = read_until(&mut client, &pong);
        mailbox.send(Command::Terminate);
        (is_reset, is_alive)
    });
    lane.run();
    assert_eq!(client.join().unwrap(), (true, true));
}
