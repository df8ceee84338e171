//! Changed HTTP/2 connections, without TLS and over it, to a server with locations of all kinds.
//! Another client, on connections of its own, must always be served.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use turnpike_testkit::Server;

use super::frames;
use super::origin::{Origin, Request};
use super::upstreams::{foreign_mark, token};
use super::wire::exchange;
use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;
use crate::http2_frames::{
    CONTINUATION, DATA, FLAG_END, FLAG_END_HEADERS, Frame, GOAWAY, HEADERS, PING, PREFACE,
    RST_STREAM, SETTINGS, WINDOW_UPDATE, first_frame, write_frame,
};
use turnpike_testkit::random::Random;

/// How long nothing may come before our side is ended.
const PATIENCE: Duration = Duration::from_millis(60);
/// Longer than any answer to the other client takes on a busy machine.
const SERVED_WITHIN: Duration = Duration::from_secs(20);
/// Cases whose marks may not be in an answer: those that run at the same time, and many before.
const NEIGHBOURS: u64 = 64;
/// More than a socket holds, so that answers wait.
const LARGE_BYTES: usize = 1 << 20;
/// The most bytes of a frame that clients have not asked for (RFC 9113 section 4.2).
const FRAME_BYTES_MAX: usize = 16_384;

/// The TLS port is reached by a relay of the same server, which knows TLS as a client.
const CONFIGURATION: &str = "
worker_processes 2;
error_log %FOLDER%/error.log warn;
events { worker_connections 512; }
stream {
    server {
        listen 127.0.0.1:%PORT_RELAY%;
        proxy_pass 127.0.0.1:%PORT_SECURE%;
        proxy_timeout 5s;
        proxy_ssl on;
        proxy_ssl_alpn h2;
    }
}
http {
    access_log off;
    proxy_cache_path %FOLDER%/cache keys_zone=z:1m max_size=10m;
    limit_req_zone $binary_remote_addr zone=r:1m rate=10r/s;
    limit_conn_zone $binary_remote_addr zone=c:1m;
    limit_req_log_level info;
    limit_conn_log_level info;
    client_body_temp_path %FOLDER%/bodies;
    client_max_body_size 80k;
    client_header_timeout 2s;
    client_body_timeout 2s;
    send_timeout 2s;
    keepalive_timeout 2s;
    keepalive_requests 1000000;
    proxy_read_timeout 1s;
    http2 on;
    ssl_certificate %KEYS%/server.pem;
    ssl_certificate_key %KEYS%/server.key;
    upstream origin { server 127.0.0.1:%ORIGIN% max_fails=0; keepalive 4; }
    server {
        listen 127.0.0.1:%PORT%;
        listen 127.0.0.1:%PORT_SECURE% ssl;
        root %FOLDER%/html;
        location = /marker { return 200 marker; }
        location /return { return 200 returned; }
        location /list/ { autoindex on; }
        location /deny { deny all; }
        location /slow/ { alias %FOLDER%/html/; limit_rate 100k; }
        location /limited/ {
            alias %FOLDER%/html/;
            limit_req zone=r burst=5;
            limit_conn c 2;
        }
        location /put/ { dav_methods PUT DELETE MOVE COPY; }
        location /grpc/ { grpc_pass 127.0.0.1:%PORT_BEHIND%; }
        proxy_http_version 1.1;
        proxy_set_header Connection '';
        location /proxy/ { proxy_pass http://origin; }
        location /unbuffered/ {
            proxy_pass http://origin;
            proxy_request_buffering off;
            proxy_buffering off;
        }
        location /cached/ {
            proxy_pass http://origin;
            proxy_cache z;
            proxy_cache_valid any 1s;
            proxy_cache_revalidate on;
        }
        location /socket {
            proxy_pass http://origin;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $http_connection;
        }
    }
    server {
        listen 127.0.0.1:%PORT_BEHIND%;
        location / { add_trailer grpc-status 0 always; return 200 '$request_uri'; }
    }
}
";

/// What a client does when it has sent everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// Reads to the end.
    Read,
    /// Leaves without reading.
    Leave,
}

/// A case: what is sent where, and what then.
struct Script {
    bytes: Vec<u8>,
    is_secure: bool,
    after: After,
}

/// Our server with its origin, and the client that must be served.
pub(super) struct Connections {
    server: Server,
    origin: Origin,
    _keys: Certificates,
    innocent: Mutex<Innocent>,
    /// Answers without TLS and over it.
    answers: [AtomicU64; 2],
}

impl Connections {
    /// Starts the server, its origin, and the other client.
    ///
    /// # Errors
    /// The server's output.
    pub(super) fn start(ours: &Contender) -> Result<Connections, String> {
        let keys = Certificates::create(&[("server", Kind::Ecdsa)])?;
        let origin = Origin::start(Arc::new(answer))?;
        let text = CONFIGURATION
            .replace("%KEYS%", &keys.path().display().to_string())
            .replace("%ORIGIN%", &origin.port().to_string());
        let server = ours
            .builder(&text)
            .file("html/static.txt", "static ".repeat(100))
            .file("html/large", "l".repeat(LARGE_BYTES))
            .file("html/list/a.txt", "")
            .file("html/put/.keep", "")
            .try_start()
            .map_err(|error| error.to_string())?;
        let innocent = Mutex::new(Innocent::connect(server.port())?);
        Ok(Connections {
            server,
            origin,
            _keys: keys,
            innocent,
            answers: Default::default(),
        })
    }

    /// How many answers came without TLS and over it: most requests are understood.
    pub(super) fn answers(&self) -> [u64; 2] {
        self.answers
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed))
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// The bytes of a case.
    pub(super) fn bytes(seed: u64, case: u64) -> Vec<u8> {
        Script::of_case(seed, case).bytes
    }

    /// Runs a case.
    ///
    /// # Errors
    /// The fault of our server.
    pub(super) fn run(&self, seed: u64, case: u64) -> Result<(), String> {
        let script = Script::of_case(seed, case);
        let port = if script.is_secure {
            self.server.port_named("RELAY")
        } else {
            self.server.port()
        };
        match script.after {
            After::Read => {
                let answers = judge(port, &script.bytes, seed, case)?;
                let count = &self.answers[usize::from(script.is_secure)];
                count.fetch_add(answers as u64, Ordering::Relaxed);
            }
            After::Leave => {
                let stream = TcpStream::connect(("127.0.0.1", port));
                let mut stream = stream.map_err(|error| format!("no connection: {error}"))?;
                let timeout = stream.set_write_timeout(Some(PATIENCE));
                // It may be closed before all is sent.
                let _ = timeout.and_then(|()| stream.write_all(&script.bytes));
            }
        }
        let mut innocent = self.innocent.lock().unwrap_or_else(PoisonError::into_inner);
        innocent.ask(self.server.port())?;
        match self.origin.violations().as_slice() {
            [] => Ok(()),
            some => Err(format!(
                "the origin got a malformed request: {}",
                some.join("\n")
            )),
        }
    }
}

impl Script {
    fn of_case(seed: u64, case: u64) -> Script {
        let mut random = Random::of_case(seed, case);
        let is_secure = random.once_in(4);
        let after = if random.once_in(5) {
            After::Leave
        } else {
            After::Read
        };
        let bytes = frames::of_case(&token(seed, case), &mut random);
        Script {
            bytes,
            is_secure,
            after,
        }
    }
}

/// Answers with the target, in which the case's mark is.
fn answer(request: &Request, stream: &mut TcpStream) -> bool {
    let shown = if request.method == "HEAD" {
        ""
    } else {
        &request.target
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"same\"\r\n\r\n{shown}",
        request.target.len()
    );
    stream.write_all(head.as_bytes()).is_ok()
}

/// Sends the bytes, and judges what comes back; returns the number of answers.
fn judge(port: u16, bytes: &[u8], seed: u64, case: u64) -> Result<usize, String> {
    let received = exchange(port, &[bytes], PATIENCE)?;
    let shown = &received.bytes[..received.bytes.len().min(2000)];
    let problem = |what: String| format!("{what}\n  here: \"{}\"", shown.escape_ascii());
    if received.is_hung {
        return Err(problem("the connection is not closed".to_owned()));
    }
    let others = case.saturating_sub(NEIGHBOURS)..=case + NEIGHBOURS;
    let others = others.filter(|other| *other != case);
    let others: Vec<String> = others.map(|other| token(seed, other)).collect();
    if let Some(other) = foreign_mark(&received.bytes, &others) {
        return Err(problem(format!("bytes of another response: {other}")));
    }
    // What is no HTTP/2 is answered as HTTP/1.
    if received.bytes.starts_with(b"HTTP/1.") {
        Ok(0)
    } else {
        well_formed(&received.bytes).map_err(problem)
    }
}

/// What was sent of a stream's answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Head,
    Body,
    Ended,
}

/// Judges the frames of a server (RFC 9113 sections 4 to 6 and 8.1); returns the number of answers.
fn well_formed(mut bytes: &[u8]) -> Result<usize, String> {
    let mut streams: BTreeMap<u32, Answer> = BTreeMap::new();
    let mut block: Option<u32> = None;
    let mut is_first = true;
    while let Some((frame, rest)) = first_frame(bytes) {
        bytes = rest;
        let named = format!(
            "frame of kind {}, flags {}, stream {}, {} bytes",
            frame.kind,
            frame.flags,
            frame.stream,
            frame.payload.len()
        );
        if is_first && (frame.kind != SETTINGS || frame.flags & FLAG_END != 0) {
            return Err(format!("the first is a {named}"));
        }
        is_first = false;
        if frame.payload.len() > FRAME_BYTES_MAX || !has_its_length(frame) {
            return Err(format!("a {named}"));
        }
        let is_inside = block.is_some_and(|stream| stream == frame.stream);
        if is_inside != (frame.kind == CONTINUATION) || block.is_some() != is_inside {
            return Err(format!("a {named} at a block of fields"));
        }
        if matches!(frame.kind, HEADERS | CONTINUATION) {
            let is_open = frame.flags & FLAG_END_HEADERS == 0;
            block = is_open.then_some(frame.stream);
        }
        if matches!(frame.kind, DATA | HEADERS | RST_STREAM) {
            let before = streams.get(&frame.stream).copied();
            let now = next(before, frame).ok_or(format!("a {named} out of turn"))?;
            streams.insert(frame.stream, now);
        }
    }
    Ok(streams.len())
}

/// Whether a frame is of a kind that a server sends, at a stream or at none, with the length of its
/// kind.
fn has_its_length(frame: Frame) -> bool {
    let length = frame.payload.len();
    match frame.kind {
        DATA | HEADERS | CONTINUATION => frame.stream % 2 == 1,
        RST_STREAM => length == 4 && frame.stream % 2 == 1,
        WINDOW_UPDATE => length == 4 && frame.payload != [0; 4],
        SETTINGS => length.is_multiple_of(6) && frame.stream == 0,
        PING => length == 8 && frame.stream == 0,
        GOAWAY => length >= 8 && frame.stream == 0,
        _ => false,
    }
}

/// The state of an answer after a frame; `None` if the frame may not come.
fn next(before: Option<Answer>, frame: Frame) -> Option<Answer> {
    let is_end = frame.flags & FLAG_END != 0;
    match (frame.kind, before) {
        // A stream may be reset after its answer, as "stop sending".
        (RST_STREAM, _) => Some(Answer::Ended),
        (_, Some(Answer::Ended)) | (DATA, None) => None,
        // Trailer fields are the end.
        (HEADERS, Some(Answer::Body)) if !is_end => None,
        (_, _) if is_end => Some(Answer::Ended),
        (HEADERS, _) => Some(Answer::Head),
        (_, _) => Some(Answer::Body),
    }
}

/// A client that asks on and on: on a connection that stays, and on a new one each time, which any
/// lane may take.
struct Innocent {
    stream: TcpStream,
    next: u32,
}

impl Innocent {
    fn connect(port: u16) -> Result<Innocent, String> {
        let failed = |error: std::io::Error| format!("the other client: {error}");
        let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
        stream
            .set_read_timeout(Some(SERVED_WITHIN))
            .map_err(failed)?;
        let mut opening = PREFACE.to_vec();
        write_frame(&mut opening, SETTINGS, 0, 0, &[]);
        stream.write_all(&opening).map_err(failed)?;
        Ok(Innocent { stream, next: 1 })
    }

    fn ask(&mut self, port: u16) -> Result<(), String> {
        // A connection that nobody used for a while was closed; a new one must be served.
        let kept = self.ask_here();
        if kept.is_err() {
            *self = Innocent::connect(port)?;
            self.ask_here()?;
        }
        Innocent::connect(port)?.ask_here()
    }

    fn ask_here(&mut self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("the other client is not served: {error}");
        let stream = self.next;
        self.next += 2;
        // GET, http, a literal :path and :authority (RFC 7541 appendix A).
        let block = [
            &[0x82, 0x86, 0x04, 7][..],
            b"/marker",
            &[0x01, 6],
            b"a.test",
        ]
        .concat();
        let mut asked = Vec::new();
        write_frame(
            &mut asked,
            HEADERS,
            FLAG_END | FLAG_END_HEADERS,
            stream,
            &block,
        );
        self.stream.write_all(&asked).map_err(failed)?;
        let mut received = Vec::new();
        loop {
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece).map_err(failed)? {
                0 => return Err("the other client's connection is closed".to_owned()),
                length => received.extend_from_slice(&piece[..length]),
            }
            let mut rest = &received[..];
            while let Some((frame, behind)) = first_frame(rest) {
                let is_own = frame.stream == stream;
                if is_own && frame.kind == DATA && frame.payload == b"marker" {
                    return Ok(());
                }
                if is_own && frame.kind == RST_STREAM || frame.kind == GOAWAY {
                    return Err("the other client's request is refused".to_owned());
                }
                rest = behind;
            }
        }
    }
}

#[cfg(test)]
mod tests;
