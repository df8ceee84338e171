//! Connections of HTTP/2 on a lane whose client acts between its polls.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::EventHandler as _;
use turnpike_lane::sys::process::{self, Limit, Resource};
use turnpike_lane::turns;
use turnpike_wire::h2::PREFACE;

use super::super::slot::{DrivenWork, Slot};
use super::super::tests::{Command, Lane, Restless};
use super::{Spoken, by_first_bytes};
use crate::exchange::Exchange;
use crate::phase::{Handler, Verdict};
use crate::response::Body;
use crate::streams::shared::Shared;
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

/// Answers with [`ANSWER_BYTES`].
#[derive(Default)]
struct Large;

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
        let plan = testing::plan_with(&[testing::answering::<Large>()], HTTP2).unwrap();
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
        let Some(Slot::Driven(driven)) = lane.connections.slots.get(0) else {
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
    let plan = testing::plan_with(&[testing::answering::<Restless>()], HTTP2).unwrap();
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

/// Answers at once.
#[derive(Default)]
struct Small;

impl Handler for Small {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        exchange.response.set_status(200);
        exchange.response.set_content_length(Some(4));
        exchange.response.text_mut().extend_from_slice(b"here");
        exchange.response.set_body(Body::Text);
        Verdict::Respond
    }
}

/// The frame that ends an answer of [`Small`].
fn end_of_answer(stream: u32) -> Vec<u8> {
    frame(0, 1, stream, b"here")
}

/// Events that a turn takes at most.
const EVENTS_MAX: usize = 512;

/// Has each of so many clients ask something, and lets the lane take the turns that the events
/// need; each client gets `answer`, and no turn leaves a future behind.
fn ask(lane: &mut Lane, clients: &mut [UnixStream], question: &[u8], answer: &[u8]) {
    for client in &mut *clients {
        client.write_all(question).unwrap();
    }
    for _ in 0..clients.len().div_ceil(EVENTS_MAX) {
        lane.turn();
        assert_eq!(lane.connections.driven(), 0, "the loop is bare");
    }
    for client in clients {
        let mut bytes = [0; 4096];
        let count = client.read(&mut bytes).unwrap();
        assert!(bytes[..count].ends_with(answer), "{:?}", &bytes[..count]);
    }
}

/// So many connections that ask now and then: the lane runs its bare loop.
fn assert_bare(connections: usize) {
    let plan = testing::plan_with(&[testing::answering::<Small>()], HTTP2).unwrap();
    let mut lane = Lane::serving(Arc::new(plan));
    let mut clients: Vec<_> = (0..connections)
        .map(|_| {
            let client = lane.client();
            client.set_nonblocking(true).unwrap();
            client
        })
        .collect();
    let opening = [PREFACE.to_vec(), frame(4, 0, 0, &[]), get(1)].concat();
    ask(&mut lane, &mut clients, &opening, &end_of_answer(1));
    ask(&mut lane, &mut clients, &get(3), &end_of_answer(3));
    let pong = frame(6, 1, 0, &[7; 8]);
    ask(&mut lane, &mut clients, &frame(6, 0, 0, &[7; 8]), &pong);
    // Half of a frame is no reason for a future either.
    for client in &mut clients {
        client.write_all(&get(5)[..12]).unwrap();
    }
    (0..connections.div_ceil(EVENTS_MAX)).for_each(|_| lane.turn());
    assert_eq!(lane.connections.driven(), 0, "the loop is bare");
    ask(&mut lane, &mut clients, &get(5)[12..], &end_of_answer(5));
    let waiting = lane.connections.lane.counters.waiting.value();
    assert_eq!(waiting, connections as u64);
    // They close: the lane ends with nothing left, still without a future.
    drop(clients);
    (0..connections.div_ceil(EVENTS_MAX)).for_each(|_| lane.turn());
    assert_eq!((lane.connections.held(), lane.connections.driven()), (0, 0));
    assert_eq!(lane.connections.lane.counters.waiting.value(), 0);
}

#[test]
fn idle_connections_leave_the_loop_bare() {
    for connections in [1, 100] {
        assert_bare(connections);
    }
}

/// Connections of the long test, where the process may have the files for them: two each.
const MANY: u64 = 10_000;

/// Files that the test's process has beside these.
const OTHER_FILES: u64 = 200;

#[test]
#[ignore = "10,000 connections: make test-long"]
fn many_idle_connections_leave_the_loop_bare() {
    let hard = process::limit(Resource::OpenFiles).unwrap().hard;
    process::set_limit(Resource::OpenFiles, Limit { soft: hard, hard }).unwrap();
    let connections = MANY.min(hard.saturating_sub(OTHER_FILES) / 2);
    println!("{connections} connections");
    assert_bare(connections as usize);
}

/// What the client finds in its socket, and whether the lane has closed it, after the lane's turns.
fn told(lane: &mut Lane, client: &mut UnixStream) -> (Vec<u8>, bool) {
    let mut told = Vec::new();
    for _ in 0..3 {
        lane.turn();
        let mut bytes = [0; 4096];
        match client.read(&mut bytes) {
            Ok(0) => return (told, true),
            Ok(count) => told.extend_from_slice(&bytes[..count]),
            Err(_) => {}
        }
    }
    (told, false)
}

/// GOAWAY after stream 1, without an error.
fn go_away() -> Vec<u8> {
    frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])
}

#[test]
fn a_parked_connection_tells_its_client_that_it_ends() {
    /// What happens to the lane, and whether the connection is closed in the same turn.
    type Case = (&'static str, fn(&mut Lane), bool);
    let cases: &[Case] = &[
        (
            "drain",
            |lane| lane.tell(Command::Quit { successor: None }),
            false,
        ),
        (
            "announced drain",
            |lane| lane.tell(Command::Announce),
            false,
        ),
        (
            "place needed",
            |lane| {
                let Lane {
                    event_loop,
                    connections,
                    ..
                } = lane;
                assert!(connections.make_room(event_loop));
            },
            true,
        ),
    ];
    for (name, happens, closes_now) in cases {
        let plan = testing::plan_with(&[testing::answering::<Small>()], HTTP2).unwrap();
        let mut lane = Lane::serving(Arc::new(plan));
        let mut clients = vec![lane.client()];
        clients[0].set_nonblocking(true).unwrap();
        let opening = [PREFACE.to_vec(), frame(4, 0, 0, &[]), get(1)].concat();
        ask(&mut lane, &mut clients, &opening, &end_of_answer(1));
        happens(&mut lane);
        // One that is not closed at once is driven, until its client has read GOAWAY.
        assert_eq!(
            lane.connections.driven(),
            usize::from(!closes_now),
            "{name}"
        );
        let (told, is_closed) = told(&mut lane, &mut clients[0]);
        assert_eq!((told, is_closed), (go_away(), *closes_now), "{name}");
        assert_eq!(lane.connections.lane.counters.waiting.value(), 0, "{name}");
    }
}

#[test]
fn a_parked_connection_is_closed_when_its_time_has_passed() {
    let text = "server { listen 127.0.0.1:80; http2 on; keepalive_timeout 40ms; \
                client_header_timeout 30ms; }";
    // Before SETTINGS, nothing is said; after them, GOAWAY.
    let settings = [PREFACE.to_vec(), frame(4, 0, 0, &[])].concat();
    let none = frame(7, 0, 0, &[0; 8]);
    for (sent, goodbye) in [(PREFACE.to_vec(), Vec::new()), (settings, none)] {
        let plan = testing::plan_with(&[testing::answering::<Small>()], text).unwrap();
        let mut lane = Lane::serving(Arc::new(plan));
        let mut client = lane.client();
        client.write_all(&sent).unwrap();
        lane.turn();
        assert!(matches!(
            lane.connections.slots.get(0),
            Some(Slot::ParkedHttp2(_))
        ));
        let mailbox = lane.mailbox.clone();
        let client = std::thread::spawn(move || {
            let mut told = Vec::new();
            client.read_to_end(&mut told).unwrap();
            mailbox.send(Command::Terminate);
            told
        });
        lane.run();
        let told = client.join().unwrap();
        assert!(told.ends_with(&goodbye), "{told:?}");
        assert_eq!(lane.connections.lane.counters.waiting.value(), 0);
    }
}

#[test]
fn a_request_that_is_answered_at_once_begins_the_idle_time_anew() {
    let plan = testing::plan_with(&[testing::answering::<Small>()], HTTP2).unwrap();
    let mut lane = Lane::serving(Arc::new(plan));
    let mut clients = vec![lane.client()];
    clients[0].set_nonblocking(true).unwrap();
    let deadline_ms = |lane: &Lane| match lane.connections.slots.get(0) {
        Some(Slot::ParkedHttp2(connection)) => connection.deadline_ms().unwrap(),
        _ => panic!("it is parked"),
    };
    let opening = [PREFACE.to_vec(), frame(4, 0, 0, &[]), get(1)].concat();
    ask(&mut lane, &mut clients, &opening, &end_of_answer(1));
    let first_ms = deadline_ms(&lane);
    let before_ms = lane.event_loop.clock.now_ms();
    while lane.event_loop.clock.now_ms() <= before_ms {
        lane.event_loop.clock.update();
    }
    ask(&mut lane, &mut clients, &get(3), &end_of_answer(3));
    assert!(deadline_ms(&lane) > first_ms);
}

#[test]
fn an_idle_connection_is_kept_for_its_least_time() {
    let text = "server { listen 127.0.0.1:80; http2 on; keepalive_min_timeout 60s; }";
    let plan = testing::plan_with(&[testing::answering::<Small>()], text).unwrap();
    let mut lane = Lane::serving(Arc::new(plan));
    let mut clients = vec![lane.client()];
    clients[0].set_nonblocking(true).unwrap();
    let opening = [PREFACE.to_vec(), frame(4, 0, 0, &[]), get(1)].concat();
    ask(&mut lane, &mut clients, &opening, &end_of_answer(1));
    assert!(!lane.connections.make_room(&mut lane.event_loop));
    lane.tell(Command::Quit { successor: None });
    let Some(Slot::ParkedHttp2(connection)) = lane.connections.slots.get(0) else {
        panic!("it is parked");
    };
    let left_ms = connection.deadline_ms().unwrap() - lane.event_loop.clock.now_ms();
    assert!((50_000..=60_000).contains(&left_ms), "{left_ms}");
    // The next request is answered, and is the last one.
    clients[0].write_all(&get(3)).unwrap();
    let (told, is_closed) = told(&mut lane, &mut clients[0]);
    let has = |bytes: &[u8]| told.windows(bytes.len()).any(|window| window == bytes);
    assert!(has(&end_of_answer(3)) && has(&frame(7, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0])));
    assert!(!is_closed, "its client has not read GOAWAY yet");
}
