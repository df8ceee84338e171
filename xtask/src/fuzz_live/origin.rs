//! Origins behind the proxies: a listener with a thread for each connection.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::message::{Framing, Head, Part, chunked, head, is_token};

/// A proxy that sends half a request and nothing more for so long is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// The number of violations that are kept.
const VIOLATIONS_MAX: usize = 20;

/// The reaction of a connection to a request; false ends the connection.
pub(super) type Serve = dyn Fn(&Request, &mut TcpStream) -> bool + Send + Sync;

/// A request as it reached the origin.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) body: Vec<u8>,
}

/// A running origin. Its acceptor ends when the origin is dropped.
pub(super) struct Origin {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_stopped: AtomicBool,
    violations: Mutex<Vec<String>>,
}

impl Origin {
    /// Listens on a port of 127.0.0.1.
    ///
    /// # Errors
    /// The kernel gives no port.
    pub(super) fn start(serve: Arc<Serve>) -> Result<Origin, String> {
        let problem = |error: std::io::Error| format!("no port for an origin: {error}");
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(problem)?;
        let port = listener.local_addr().map_err(problem)?.port();
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if own.is_stopped.load(Ordering::Acquire) {
                    return;
                }
                let (own, serve) = (Arc::clone(&own), Arc::clone(&serve));
                std::thread::spawn(move || connection(stream, &own, &*serve));
            }
        });
        Ok(Origin { port, shared })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Takes the requests that broke a rule, each with the rule.
    pub(super) fn violations(&self) -> Vec<String> {
        let violations = self.shared.violations.lock();
        std::mem::take(&mut *violations.unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        let _ = TcpStream::connect(("127.0.0.1", self.port)); // wakes the acceptor
    }
}

fn connection(mut stream: TcpStream, shared: &Shared, serve: &Serve) {
    let _ = stream.set_nodelay(true); // only speed depends on it
    if stream.set_read_timeout(Some(PATIENCE)).is_err() {
        return;
    }
    let mut received = Vec::new();
    loop {
        match request(&received) {
            Ok(Part::Whole((request, used))) => {
                received.drain(..used);
                if !serve(&request, &mut stream) {
                    return;
                }
            }
            Ok(Part::Cut) => {
                let mut piece = [0; 16384];
                match stream.read(&mut piece) {
                    Ok(length) if length > 0 => received.extend_from_slice(&piece[..length]),
                    _ => return,
                }
            }
            Err(rule) => {
                let mut violations = shared
                    .violations
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                if violations.len() < VIOLATIONS_MAX {
                    violations.push(format!("{rule}, in \"{}\"", received.escape_ascii()));
                }
                let _ = stream.write_all(b"HTTP/1.1 500 Violation\r\nConnection: close\r\n\r\n");
                return;
            }
        }
    }
}

/// Reads a request by the book, and how many bytes it took.
fn request(bytes: &[u8]) -> Result<Part<(Request, usize)>, String> {
    let Part::Whole(head) = head(bytes)? else {
        return Ok(Part::Cut);
    };
    let (method, target) = request_line(&head)?;
    if head.values("host").len() > 1 {
        return Err("two Host fields".to_owned());
    }
    let rest = &bytes[head.bytes..];
    let (body, used) = match head.framing()? {
        Framing::Absent => (Vec::new(), 0),
        Framing::Length(length) => match rest.get(..length) {
            Some(body) => (body.to_vec(), length),
            None => return Ok(Part::Cut),
        },
        Framing::Chunked => match chunked(rest)? {
            Part::Whole(read) => read,
            Part::Cut => return Ok(Part::Cut),
        },
    };
    let request = Request {
        method,
        target,
        body,
    };
    Ok(Part::Whole((request, head.bytes + used)))
}

fn request_line(head: &Head) -> Result<(String, String), String> {
    let line = &head.start_line;
    let problem = || format!("\"{}\" is no request line", line.escape_ascii());
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words.as_slice() else {
        return Err(problem());
    };
    let is_plain = |byte: &u8| !byte.is_ascii_control();
    let is_method = !method.is_empty() && method.iter().all(|byte| is_token(*byte));
    let is_target = !target.is_empty() && target.iter().all(is_plain);
    let is_version = matches!(*version, b"HTTP/1.0" | b"HTTP/1.1");
    if is_method && is_target && is_version {
        Ok((
            String::from_utf8_lossy(method).into_owned(),
            String::from_utf8_lossy(target).into_owned(),
        ))
    } else {
        Err(problem())
    }
}

/// Answers with the request as it was read, so that the two servers can be compared.
pub(super) fn echo(request: &Request, stream: &mut TcpStream) -> bool {
    let body = format!(
        "origin saw {} and {} bytes\n",
        request.method,
        request.body.len()
    );
    let shown = if request.method == "HEAD" { "" } else { &body };
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-Origin: yes\r\n\r\n{shown}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).is_ok()
}
