//! HTTP/2: every stream is accounted for, and what the server sets and says holds.
//!
//! The peer writes its frames by hand, so that our own codec cannot vouch for itself.

#![allow(clippy::unwrap_used)]

mod peers;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use peers::load_json;

/// What the peer does beside answering.
#[derive(Clone, Copy, Default)]
struct Habits {
    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    streams_max: Option<u8>,
    /// Requests of a connection that are answered before GOAWAY.
    connection_requests: Option<usize>,
    /// Each so many-th request of a connection is reset.
    resets_each: Option<usize>,
    /// Requests that are waited for before any is answered.
    batch: usize,
}

struct Peer {
    address: SocketAddr,
    /// The most requests that have come at once, once the client knew of our settings.
    most: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head, &stream.to_be_bytes()[..], payload].concat()
}

fn start(habits: Habits) -> Peer {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = Peer {
        address: listener.local_addr().unwrap(),
        most: Arc::default(),
        connections: Arc::default(),
    };
    let (most, connections) = (Arc::clone(&peer.most), Arc::clone(&peer.connections));
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            connections.fetch_add(1, Ordering::SeqCst);
            let most = Arc::clone(&most);
            std::thread::spawn(move || serve(socket, habits, &most));
        }
    });
    peer
}

/// Reads what there is, then answers all that was asked.
fn serve(mut socket: TcpStream, habits: Habits, most: &AtomicUsize) {
    let mut settings = Vec::new();
    if let Some(streams_max) = habits.streams_max {
        settings.extend_from_slice(&[0, 3, 0, 0, 0, streams_max]);
    }
    let _ = socket.write_all(&frame(4, 0, 0, &settings));
    let mut input = Vec::new();
    let mut piece = [0; 64 * 1024];
    let (mut has_preface, mut knows, mut served) = (false, false, 0);
    let mut waiting = Vec::new();
    while let Ok(count @ 1..) = socket.read(&mut piece) {
        input.extend_from_slice(&piece[..count]);
        if !has_preface && input.len() >= 24 {
            assert!(input.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
            input.drain(..24);
            has_preface = true;
        }
        // What came with the acknowledgement may have been sent before it.
        let knew = knows;
        let (asked, mut output) = frames(&mut input, &mut knows);
        if knew {
            most.fetch_max(asked.len(), Ordering::SeqCst);
        }
        waiting.extend(asked);
        let is_whole = waiting.len() >= habits.batch;
        for stream in waiting.drain(..if is_whole { waiting.len() } else { 0 }) {
            served += 1;
            let over = habits.connection_requests.is_some_and(|most| served > most);
            let is_reset = habits.resets_each.is_some_and(|each| served % each == 0);
            match (over, is_reset) {
                (true, _) => {
                    let last = stream.saturating_sub(2).to_be_bytes();
                    output.extend(frame(7, 0, 0, &[&last[..], &[0; 4]].concat()));
                    let _ = socket.write_all(&output);
                    let _ = socket.shutdown(Shutdown::Write);
                    // Closing with something unread would take the answers from the client.
                    while matches!(socket.read(&mut piece), Ok(1..)) {}
                    return;
                }
                (false, true) => output.extend(frame(3, 0, stream, &[0, 0, 0, 2])),
                (false, false) => {
                    output.extend(frame(1, 4, stream, b"\x88"));
                    output.extend(frame(0, 1, stream, b"hello"));
                }
            }
        }
        if socket.write_all(&output).is_err() {
            return;
        }
    }
}

/// Takes the whole frames: the streams whose requests are whole, and what is to be said at once.
/// `knows`: our settings were acknowledged, and what comes from now on was sent after that.
fn frames(input: &mut Vec<u8>, knows: &mut bool) -> (Vec<u32>, Vec<u8>) {
    let (mut asked, mut output) = (Vec::new(), Vec::new());
    while let Some(head) = input.first_chunk::<9>().copied() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        if input.len() < 9 + length {
            break;
        }
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        if head[3] == 0 && length > 0 {
            let granted = (length as u32).to_be_bytes();
            output.extend(frame(8, 0, 0, &granted));
            if head[4] & 1 == 0 {
                output.extend(frame(8, 0, stream, &granted));
            }
        }
        match (head[3], head[4] & 1) {
            (0 | 1, 1) => asked.push(stream),
            (4, 0) => output.extend(frame(4, 1, 0, b"")),
            (4, 1) => {
                *knows = true;
            }
            _ => {}
        }
        input.drain(..9 + length);
    }
    (asked, output)
}

#[test]
fn every_stream_is_accounted_for() {
    let body = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/certificate.pem");
    let upload = format!("--streams 3 --body {body}");
    // (options, habits, answered, reset, most at once, connections)
    let cases: &[(&str, Habits, u64, u64, usize, _)] = &[
        ("--streams 10", Habits::default(), 1000, 0, 10, 4..=4),
        ("", Habits::default(), 1000, 0, 1, 4..=4),
        (&upload, Habits::default(), 1000, 0, 3, 4..=4),
        (
            "-c 1 --streams 10 -C 50",
            Habits::default(),
            1000,
            0,
            10,
            20..=20,
        ),
        (
            "--streams 10",
            Habits {
                streams_max: Some(3),
                ..Habits::default()
            },
            1000,
            0,
            3,
            4..=4,
        ),
        (
            "--streams 10",
            Habits {
                connection_requests: Some(55),
                ..Habits::default()
            },
            1000,
            0,
            10,
            18..=40,
        ),
        (
            "-c 1 --streams 10",
            Habits {
                resets_each: Some(10),
                ..Habits::default()
            },
            900,
            100,
            10,
            1..=1,
        ),
    ];
    for (options, habits, answered, reset, most, connections) in cases {
        let peer = start(*habits);
        let line = format!("-n 1000 -c 4 -t 1 --h2 {options} http://{}/", peer.address);
        let (report, _) = load_json(&line);
        let found = |pointer: &str| report.pointer(pointer).and_then(serde_json::Value::as_u64);
        assert_eq!(found("/requests/answered"), Some(*answered), "{line}");
        assert_eq!(found("/requests/failed"), Some(*reset), "{line}");
        assert!(peer.most.load(Ordering::SeqCst) <= *most, "{line}");
        let opened = peer.connections.load(Ordering::SeqCst);
        assert!(connections.contains(&opened), "{line}: {opened}");
    }
}

/// A server of HTTP/1.1 only.
fn plain_peer() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    address
}

#[test]
fn a_server_without_http2_ends_the_run_at_once() {
    let address = plain_peer();
    let output = peers::load(&format!("-t 1 -c 1 -d 1h --h2 http://{address}/"));
    let text = String::from_utf8(output.stderr).unwrap();
    let line = format!("{address} answers in HTTP/1.1: leave --h2 out, or switch HTTP/2 on there");
    assert!(text.starts_with(&line), "{text}");
    assert_eq!(output.status.code(), Some(2), "{text}");
}

#[test]
fn a_rate_is_a_rate_whatever_the_streams_are() {
    for options in ["--streams 10", "--streams 1", "--streams 10 -c 5"] {
        let peer = start(Habits::default());
        let url = format!("http://{}/", peer.address);
        // The schedule has 50 starts in this time, late or not.
        let line = format!("-t 1 -c 1 --h2 --rate 100 -d 500ms -T 20s {options} {url}");
        let (report, _) = load_json(&line);
        let requests = &report["requests"];
        let count = |name: &str| requests[name].as_u64().unwrap();
        assert_eq!(count("started") + count("unsent"), 50, "{line}: {requests}");
    }
}

#[test]
fn requests_of_a_schedule_join_those_under_way() {
    let habits = Habits {
        batch: 4,
        ..Habits::default()
    };
    let peer = start(habits);
    let url = format!("http://{}/", peer.address);
    let line = format!("-t 1 -c 1 --h2 --streams 4 --rate 100 -n 8 -d 1h -T 1m {url}");
    let (report, status) = load_json(&line);
    assert_eq!(status, 0, "{report:#}");
    assert_eq!(report["requests"]["answered"], 8, "{report:#}");
    assert_eq!(peer.connections.load(Ordering::SeqCst), 1);
}
