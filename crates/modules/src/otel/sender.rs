//! Sends a batch to a collector: OTLP over gRPC, or over HTTP/1.1 (opentelemetry-proto, OTLP 1.3).
//!
//! Sending blocks, so it runs on a thread for blocking work. A batch has a connection of its own:
//! there is one every few seconds, and no state that a collector's restart could spoil.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::ServerName;
use turnpike_http::h1::origin::{HeadReader, RequestLines};
use turnpike_http::received::Received;
use turnpike_wire::h2::hpack::Indexing;
use turnpike_wire::h2::{ClientConnection, ConnectionError, ResponseReader, ServerEvent, StreamId};
use turnpike_wire::message::{Head, HeadRules, Method, RequestWriter as _, Strictness, Version};

/// The method of the collector's service.
const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// The bytes before a message of gRPC: whether it is compressed, and its length.
const GRPC_PREFIX_BYTES: usize = 5;

/// The most bytes of an answer: it holds a few numbers, or the text of an error.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The most interim responses before the answer.
const INTERIM_MAX: usize = 16;

/// Where the spans go.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
    /// The path of OTLP over HTTP; `None`: gRPC.
    pub(super) path: Option<String>,
    /// For TLS, with the text of the certificates that are trusted.
    pub(super) tls: Option<(Arc<rustls::ClientConfig>, Arc<[u8]>)>,
}

impl PartialEq for Endpoint {
    fn eq(&self, other: &Endpoint) -> bool {
        let trusted = |endpoint: &Endpoint| endpoint.tls.as_ref().map(|(_, pem)| pem.clone());
        (&self.host, self.port, &self.path) == (&other.host, other.port, &other.path)
            && trusted(self) == trusted(other)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.tls {
            Some(_) => "https",
            None => "http",
        };
        let path = self.path.as_deref().unwrap_or_default();
        write!(out, "{scheme}://{}{path}", self.authority())
    }
}

impl Endpoint {
    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Sends a batch, and waits for the collector's answer until the deadline.
///
/// # Errors
/// Why it was not taken, for the log.
pub(super) fn send(
    endpoint: &Endpoint,
    headers: &[(String, String)],
    body: &[u8],
    deadline: Instant,
) -> Result<(), String> {
    let mut link = Link::open(endpoint, deadline)?;
    match &endpoint.path {
        None => by_grpc(&mut link, endpoint, headers, body),
        Some(path) => by_http(&mut link, endpoint, path, headers, body),
    }
}

/// A connection with a deadline.
struct Link {
    stream: Stream,
    deadline: Instant,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
}

impl Link {
    fn open(endpoint: &Endpoint, deadline: Instant) -> Result<Link, String> {
        let addresses = (endpoint.host.as_str(), endpoint.port).to_socket_addrs();
        let addresses = addresses.map_err(|error| format!("host not found: {error}"))?;
        let mut last = "host not found".to_owned();
        for address in addresses {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(&address, left) {
                Ok(socket) => return Link::begin(endpoint, socket, deadline),
                Err(error) => last = format!("connect() to {address} failed: {error}"),
            }
        }
        Err(last)
    }

    fn begin(endpoint: &Endpoint, socket: TcpStream, deadline: Instant) -> Result<Link, String> {
        let stream = match &endpoint.tls {
            None => Stream::Plain(socket),
            Some((config, _)) => {
                let name = ServerName::try_from(endpoint.host.clone())
                    .map_err(|error| format!("\"{}\": {error}", endpoint.host))?;
                let mut config = rustls::ClientConfig::clone(config);
                config.alpn_protocols = match endpoint.path {
                    None => vec![b"h2".to_vec()],
                    Some(_) => vec![b"http/1.1".to_vec()],
                };
                let session = rustls::ClientConnection::new(Arc::new(config), name);
                let session = session.map_err(|error| error.to_string())?;
                Stream::Tls(Box::new(rustls::StreamOwned::new(session, socket)))
            }
        };
        Ok(Link { stream, deadline })
    }

    /// Gives the next call the time that is left.
    fn limit(&mut self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let socket = match &self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => stream.get_ref(),
        };
        socket.set_read_timeout(Some(left))?;
        socket.set_write_timeout(Some(left))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.limit().map_err(told)?;
        let written = match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        };
        written.map_err(told)
    }

    /// Appends what has come; 0: the collector has closed the connection.
    fn read(&mut self, input: &mut Vec<u8>) -> Result<usize, String> {
        self.limit().map_err(told)?;
        let mut buffer = [0; 4096];
        let count = match &mut self.stream {
            Stream::Plain(socket) => socket.read(&mut buffer),
            Stream::Tls(stream) => stream.read(&mut buffer),
        };
        let count = match count {
            // Collectors may close without TLS's own end.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            count => count.map_err(told)?,
        };
        input.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

/// The words of an error; a socket's timeout is reported as "would block".
fn told(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "the collector did not answer in time".to_owned()
        }
        _ => error.to_string(),
    }
}

fn by_http(
    link: &mut Link,
    endpoint: &Endpoint,
    path: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> Result<(), String> {
    let mut request = Vec::new();
    let mut lines = RequestLines::new(&mut request, Version::Http11);
    lines.line(b"POST", path.as_bytes());
    lines.host(endpoint.authority().as_bytes());
    lines.field(b"Content-Type", b"application/x-protobuf");
    lines.number(b"Content-Length", body.len() as u64);
    lines.field(b"Connection", b"close");
    for (name, value) in headers {
        lines.field(name.as_bytes(), value.as_bytes());
    }
    lines.end();
    request.extend_from_slice(body);
    link.write(&request)?;
    // The head says all.
    match read_status(link)? {
        200..=299 => Ok(()),
        status => Err(format!("the collector answered with status {status}")),
    }
}

/// The status of an answer, behind interim responses.
fn read_status(link: &mut Link) -> Result<u16, String> {
    let rules = HeadRules {
        line_bytes_max: ANSWER_BYTES_MAX,
        head_bytes_max: ANSWER_BYTES_MAX,
        // What matters is the status, not how well the collector writes.
        strictness: Strictness::Nginx,
        ..HeadRules::default()
    };
    let (mut reader, mut head, mut input) =
        (HeadReader::default(), Head::default(), Received::default());
    let none = || "the collector sent no HTTP response".to_owned();
    let mut interim = 0;
    loop {
        let is_whole = reader.read(&mut input, &rules, Method::Post, &mut head);
        match is_whole.map_err(|_| none())? {
            true if head.is_interim() && interim < INTERIM_MAX => interim += 1,
            true => return Ok(head.status),
            false if link.read(input.room())? == 0 => return Err(none()),
            false => {}
        }
    }
}

fn by_grpc(
    link: &mut Link,
    endpoint: &Endpoint,
    headers: &[(String, String)],
    body: &[u8],
) -> Result<(), String> {
    let mut prefixed = vec![0];
    prefixed.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    debug_assert_eq!(prefixed.len(), GRPC_PREFIX_BYTES);
    prefixed.extend_from_slice(body);
    let mut http2 = ClientConnection::new(HeadRules::default());
    let authority = endpoint.authority();
    let scheme = match endpoint.tls {
        Some(_) => "https",
        None => "http",
    };
    let stream = http2.open(false, false, &mut Vec::new(), |encoder, out| {
        let mut field = |name: &str, value: &str| {
            encoder.field(name.as_bytes(), value.as_bytes(), Indexing::No, out);
        };
        field(":method", "POST");
        field(":scheme", scheme);
        field(":path", GRPC_PATH);
        field(":authority", &authority);
        field("te", "trailers");
        field("content-type", "application/grpc");
        for (name, value) in headers {
            field(name, value);
        }
    });
    let mut call = Call {
        stream,
        rest: &prefixed,
        outcome: None,
        input: Vec::new(),
        reader: ResponseReader::default(),
    };
    let since = Instant::now();
    loop {
        call.send(&mut http2);
        let output = std::mem::take(http2.output());
        if !output.is_empty() {
            link.write(&output)?;
        }
        if let Some(outcome) = call.outcome.take() {
            return outcome;
        }
        if link.read(&mut call.input)? == 0 {
            return Err("the collector closed the connection early".to_owned());
        }
        let now_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        call.receive(&mut http2, now_ms)?;
    }
}

/// A call that is under way.
struct Call<'a> {
    stream: StreamId,
    /// What of the request is not sent yet.
    rest: &'a [u8],
    outcome: Option<Result<(), String>>,
    input: Vec<u8>,
    reader: ResponseReader,
}

/// The message about a connection error, whose reason speaks of a client where nginx's does.
fn violation(error: ConnectionError) -> String {
    match error.reason.strip_prefix("client ") {
        Some(deed) => format!("the collector {deed}"),
        None => format!("the collector violated HTTP/2: {}", error.reason),
    }
}

impl Call<'_> {
    /// Sends as much as the windows allow.
    fn send(&mut self, http2: &mut ClientConnection) {
        if !self.rest.is_empty() && http2.may_send(self.stream) {
            let sent = http2.send_data(self.stream, self.rest, true);
            self.rest = &self.rest[sent..];
        }
    }

    /// Takes the frames that have come.
    fn receive(&mut self, http2: &mut ClientConnection, now_ms: u64) -> Result<(), String> {
        let mut consumed = 0;
        let mut body_bytes = 0;
        loop {
            let input = &self.input[consumed..];
            let step = http2
                .receive(input, &mut self.reader, now_ms)
                .map_err(violation)?;
            consumed += step.consumed;
            match step.event {
                ServerEvent::More => break,
                ServerEvent::Head { ends, .. } => {
                    let status = self.reader.head.status;
                    if status > 200 {
                        let words = format!("the collector answered with status {status}");
                        self.outcome = Some(Err(words));
                    } else if ends {
                        self.outcome = Some(self.status());
                    }
                }
                ServerEvent::Trailers { .. } => self.outcome = Some(self.status()),
                ServerEvent::Data { data, ends, .. } => {
                    body_bytes += data.len();
                    if ends || body_bytes > ANSWER_BYTES_MAX {
                        let words = "the collector sent no grpc-status".to_owned();
                        self.outcome = Some(Err(words));
                    }
                }
                ServerEvent::Malformed { fault, .. } => {
                    self.outcome = Some(Err(fault.reason().to_owned()));
                }
                ServerEvent::Reset { code, .. } => {
                    let words = format!("the collector reset the stream: {code}");
                    self.outcome = Some(Err(words));
                }
                ServerEvent::GoingAway { last_stream, code } if last_stream < self.stream => {
                    let words = format!("the collector closed the connection: {code}");
                    self.outcome = Some(Err(words));
                }
                ServerEvent::Nothing | ServerEvent::Sendable | ServerEvent::GoingAway { .. } => {}
            }
            if self.outcome.is_some() {
                break;
            }
        }
        self.input.drain(..consumed);
        Ok(())
    }

    /// What `grpc-status` says in the trailers, or in the head of an answer without a body.
    fn status(&self) -> Result<(), String> {
        let fields = &self.reader.head.fields;
        match fields.value(b"grpc-status") {
            Some(b"0") => Ok(()),
            Some(number) => Err(format!(
                "the collector answered with gRPC status {}: {}",
                String::from_utf8_lossy(number),
                String::from_utf8_lossy(fields.value(b"grpc-message").unwrap_or_default()),
            )),
            None => Err("the collector sent no grpc-status".to_owned()),
        }
    }
}
