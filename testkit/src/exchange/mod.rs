//! A raw HTTP/1 peer: it sends exactly the bytes of a test and reads exactly what comes back. It
//! frames responses by the RFC, and shares no code with the server.

mod table;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use crate::DEADLINE;

pub use table::{check, matches};

/// The largest response, head and body, that a test expects.
const RESPONSE_BYTES_MAX: usize = 256 << 20;

/// A client's connection.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    /// Received bytes that were not taken yet.
    received: Vec<u8>,
    is_closed: bool,
    /// The error after which no more can be received.
    error: Option<std::io::Error>,
}

/// A response as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The status line and the header lines, with the empty line that ends them.
    pub head: String,
    /// The body, without its chunk lines.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Peer {
    /// Connects to a port of 127.0.0.1.
    ///
    /// # Panics
    /// It is refused.
    pub fn connect(port: u16) -> Peer {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => Peer::over(stream),
            Err(error) => panic!("port {port}: {error}"),
        }
    }

    /// Uses an existing connection, with options or to another address.
    ///
    /// # Panics
    /// The connection takes no options.
    pub fn over(stream: TcpStream) -> Peer {
        stream
            .set_read_timeout(Some(DEADLINE))
            .expect("a read timeout");
        stream
            .set_write_timeout(Some(DEADLINE))
            .expect("a write timeout");
        stream.set_nodelay(true).expect("no delay"); // a test's writes arrive as they were cut
        Peer {
            stream,
            received: Vec::new(),
            is_closed: false,
            error: None,
        }
    }

    /// The connection below.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends bytes. Errors are ignored: if the server has closed the connection, its response shows
    /// that.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()); // see above
    }

    /// Ends our side; theirs stays open.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write); // it may be closed already
    }

    /// Sends a request and reads its response. For HEAD see [`Peer::round_without_body`].
    ///
    /// # Panics
    /// No whole response comes.
    pub fn round(&mut self, request: impl AsRef<[u8]>) -> Response {
        self.send(request);
        self.response()
    }

    /// As [`Peer::round`], for requests whose response has only a head.
    ///
    /// # Panics
    /// No whole head comes.
    pub fn round_without_body(&mut self, request: impl AsRef<[u8]>) -> Response {
        self.send(request);
        let (status, head) = self.head();
        Response {
            status,
            head,
            body: Vec::new(),
        }
    }

    /// Reads the next response, framed by its head.
    ///
    /// # Panics
    /// No whole response comes.
    pub fn response(&mut self) -> Response {
        let (status, head) = self.head();
        let mut response = Response {
            status,
            head,
            body: Vec::new(),
        };
        let chunked = response
            .header("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        let length = response
            .header("content-length")
            .map(|value| value.parse::<usize>());
        response.body = match (status, chunked, length) {
            (100..200 | 204 | 304, ..) => Vec::new(),
            (_, true, _) => self.chunks(),
            (_, _, Some(Ok(length))) => self.take(length),
            (_, _, Some(Err(error))) => panic!("{error}:\n{}", response.head),
            (_, _, None) => self.rest(),
        };
        response
    }

    /// Reads until the server closes the connection; a reset counts as its end.
    ///
    /// # Panics
    /// The server does not close it before the deadline.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.received)
    }

    /// Whether the server closes the connection without sending more; waits for that.
    ///
    /// # Panics
    /// The server neither sends nor closes before the deadline.
    pub fn is_closed(&mut self) -> bool {
        self.received.is_empty() && !self.fill()
    }

    /// All received bytes that were not taken.
    pub(crate) fn received(&self) -> &[u8] {
        &self.received
    }

    /// Receives once; false at the end of the connection.
    pub(crate) fn fill(&mut self) -> bool {
        if self.is_closed {
            return false;
        }
        let mut piece = [0; 65536];
        match self.stream.read(&mut piece) {
            Ok(0) => self.is_closed = true,
            Ok(length) => self.received.extend_from_slice(&piece[..length]),
            Err(error) if is_timeout(&error) => {
                panic!(
                    "nothing more comes after:\n{}",
                    self.received.escape_ascii()
                )
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.is_closed = true;
                self.error = Some(error);
            }
        }
        assert!(
            self.received.len() <= RESPONSE_BYTES_MAX,
            "the response does not end"
        );
        !self.is_closed
    }

    /// Takes one head: its status and its text.
    fn head(&mut self) -> (u16, String) {
        let head = self.take_through(b"\r\n\r\n");
        let head = String::from_utf8_lossy(&head).into_owned();
        let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
        match status.and_then(|status| status.parse().ok()) {
            Some(status) => (status, head),
            None => panic!("no status line:\n{head}"),
        }
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = self.take_through(b"\r\n");
            let line = String::from_utf8_lossy(&line);
            let size = line.trim().split(';').next().unwrap_or_default();
            let Ok(size) = usize::from_str_radix(size, 16) else {
                panic!("no chunk size: \"{}\"", line.escape_debug());
            };
            if size == 0 {
                while self.take_through(b"\r\n") != b"\r\n" {} // trailers, then the empty line
                return body;
            }
            body.extend(self.take(size));
            assert_eq!(self.take(2), b"\r\n", "a chunk is longer than it says");
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        while self.received.len() < length {
            assert!(
                self.fill(),
                "closed after {} of {length} bytes",
                self.received.len()
            );
        }
        self.received.drain(..length).collect()
    }

    fn take_through(&mut self, ending: &[u8]) -> Vec<u8> {
        let mut searched = 0;
        loop {
            let found = self.received[searched..]
                .windows(ending.len())
                .position(|at| at == ending);
            if let Some(at) = found {
                return self.take(searched + at + ending.len());
            }
            searched = self.received.len().saturating_sub(ending.len());
            let received = self.received.escape_ascii().to_string();
            assert!(
                self.fill(),
                "closed before a whole head came: \"{received}\" {:?}",
                self.error
            );
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
    )
}

/// Sends bytes on a new connection and reads until the server closes it.
///
/// # Panics
/// The connection is refused, or not closed before the deadline.
pub fn exchange(port: u16, request: impl AsRef<[u8]>) -> Vec<u8> {
    let mut peer = Peer::connect(port);
    peer.send(request);
    peer.rest()
}

#[cfg(test)]
mod tests;
