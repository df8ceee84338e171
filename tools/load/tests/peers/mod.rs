//! Scripted servers in threads, and a way to run the generator against them.
//!
//! The peers are written without the product's codecs, so that these cannot vouch for themselves.

#![allow(dead_code, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a peer does with a connection.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    /// Answers each request with these bytes; closes after so many.
    Answer { bytes: Vec<u8>, per_connection: u64 },
    /// As `Answer`, but without answers in the first part of each period.
    Freeze { period: Duration, frozen: Duration },
    /// Answers the first request with these bytes and closes.
    AnswerAndClose(Vec<u8>),
    /// Answers one request, waits, and resets.
    ResetWhenIdle,
    /// Resets without reading.
    ResetAtOnce,
    /// Answers as soon as the head is there, and reads no body.
    AnswerEarly(Vec<u8>),
    /// Never answers.
    Silence,
    /// Sends a head and then a body without end.
    Stream,
}

/// A listening peer; it serves until the process ends.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<AtomicU64>,
    pub(crate) connections: Arc<AtomicU64>,
    pub(crate) started: Instant,
}

/// An ordinary answer.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nServer: peer\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// A peer that answers every request.
pub(crate) fn answering(bytes: Vec<u8>) -> Peer {
    Peer::start(Script::Answer {
        bytes,
        per_connection: u64::MAX,
    })
}

/// A loopback port that refuses connections while the socket lives: it is bound and does not
/// listen, so no other test is given the port.
pub(crate) fn refused_port() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    socket.bind(&any.into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, address)
}

impl Peer {
    pub(crate) fn start(script: Script) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = Peer {
            address: listener.local_addr().unwrap(),
            requests: Arc::new(AtomicU64::new(0)),
            connections: Arc::new(AtomicU64::new(0)),
            started: Instant::now(),
        };
        let (requests, connections) = (peer.requests.clone(), peer.connections.clone());
        let started = peer.started;
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                connections.fetch_add(1, Ordering::SeqCst);
                let (script, requests) = (script.clone(), requests.clone());
                std::thread::spawn(move || serve(stream, &script, &requests, started));
            }
        });
        peer
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, script: &Script, requests: &AtomicU64, started: Instant) {
    match script {
        Script::Answer {
            bytes,
            per_connection,
        } => {
            let mut reader = Requests::default();
            for _ in 0..*per_connection {
                if !reader.next(&mut stream, requests) || stream.write_all(bytes).is_err() {
                    return;
                }
            }
        }
        Script::Freeze { period, frozen } => {
            let mut reader = Requests::default();
            while reader.next(&mut stream, requests) {
                let phase = started.elapsed().as_nanos() % period.as_nanos();
                let left = frozen.as_nanos().saturating_sub(phase);
                std::thread::sleep(Duration::from_nanos(left as u64));
                if stream.write_all(&ok("x")).is_err() {
                    return;
                }
            }
        }
        Script::AnswerAndClose(bytes) => {
            Requests::default().next(&mut stream, requests);
            let _ = stream.write_all(bytes);
        }
        Script::ResetWhenIdle => {
            Requests::default().next(&mut stream, requests);
            let _ = stream.write_all(&ok("x"));
            std::thread::sleep(Duration::from_millis(30));
            reset(stream);
        }
        Script::AnswerEarly(bytes) => {
            Requests::default().next(&mut stream, requests);
            let _ = stream.write_all(bytes);
            // Later bytes are not read.
            std::thread::sleep(Duration::from_secs(5));
        }
        Script::ResetAtOnce => reset(stream),
        Script::Silence => {
            let mut sink = [0; 1024];
            while matches!(stream.read(&mut sink), Ok(count) if count > 0) {}
        }
        Script::Stream => {
            Requests::default().next(&mut stream, requests);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
        }
    }
}

fn reset(stream: TcpStream) {
    let socket = socket2::Socket::from(stream);
    let _ = socket.set_linger(Some(Duration::ZERO));
}

/// Finds the ends of requests without bodies.
#[derive(Default)]
struct Requests {
    buffer: Vec<u8>,
}

impl Requests {
    /// Waits for the next request; `false` when the client has gone.
    fn next(&mut self, stream: &mut TcpStream, count: &AtomicU64) -> bool {
        loop {
            if let Some(end) = self
                .buffer
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                self.buffer.drain(..end + 4);
                count.fetch_add(1, Ordering::SeqCst);
                return true;
            }
            let mut chunk = [0; 4096];
            match stream.read(&mut chunk) {
                Ok(taken) if taken > 0 => self.buffer.extend_from_slice(&chunk[..taken]),
                _ => return false,
            }
        }
    }
}

/// Runs the generator with words split at spaces.
pub(crate) fn load(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_turnpike-load"))
        .args(line.split_whitespace())
        .output()
        .unwrap()
}

/// Runs the generator and returns its JSON report and exit status.
pub(crate) fn load_json(line: &str) -> (serde_json::Value, i32) {
    let output = load(&format!("--json {line}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{line}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    (report, output.status.code().unwrap_or(-1))
}
