//! One HTTP/1.1 exchange on a connection, asked by the server itself: by active checks, by ACME,
//! for OCSP responses, and to warm a cache. It runs on threads of background services and commands,
//! never on a lane.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Uri};
use turnpike_http::h1::origin::{BodyReader, HeadReader, RequestLines};
use turnpike_http::received::Received;
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::timeout::bounded;
use turnpike_plan::background::run_blocking;
use turnpike_upstream::{Address, ConnectOptions, Connection, Tls, TlsConnector};
use turnpike_wire::message::{
    BodyEnd, Delivery, Head, HeadRules, Method, RequestWriter as _, Strictness, Version,
};

use crate::upstream::Names;

/// The most bytes of a body that are kept; nginx's number for checks, and more than an answer of a
/// certificate authority has.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// The most bytes of a head: such an answer needs no more.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// The most fields of a head.
const FIELDS_MAX: usize = 200;

/// Bytes read at a time.
const READ_BYTES: usize = 16 * 1024;

/// The most interim responses before the answer.
const INTERIM_MAX: usize = 16;

/// The step at which an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    Sending,
    ReadingHead,
    ReadingBody,
}

impl Failed {
    /// The action in nginx's log messages, after `while`.
    pub(crate) fn action(self) -> &'static str {
        match self {
            Failed::Sending => "sending request to upstream",
            Failed::ReadingHead => "reading response header from upstream",
            Failed::ReadingBody => "reading upstream",
        }
    }

    /// What failed, for the log.
    fn what(self) -> &'static str {
        match self {
            Failed::Sending => "the request could not be sent",
            Failed::ReadingHead => "no HTTP response arrived",
            Failed::ReadingBody => "the response was cut",
        }
    }
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) head: Head,
    /// The body, cut at [`BODY_BYTES_MAX`].
    pub(crate) body: Vec<u8>,
    /// Whether another request can follow on the connection.
    pub(crate) is_reusable: bool,
}

/// Sends a request, which has this method, and reads the answer. Sending, the head and the body may
/// take `timeout_ms` each: a peer that trickles is as bad as one that is silent.
///
/// # Errors
/// The step that failed.
pub(crate) async fn exchange(
    connection: &Connection,
    request: &[u8],
    method: Method,
    timeout_ms: u64,
) -> Result<Answer, Failed> {
    let (head, delivery, input) = ask(connection, request, method, timeout_ms).await?;
    let mut body = Vec::new();
    let take = |data: &[u8]| {
        body.extend_from_slice(data);
        body.len() < BODY_BYTES_MAX
    };
    let read = bounded(timeout_ms, read_body(connection, input, delivery.end, take));
    let ended = read.await.unwrap_or(Err(Failed::ReadingBody))?;
    body.truncate(BODY_BYTES_MAX);
    Ok(Answer {
        head,
        body,
        is_reusable: ended == Ended::Cleanly && delivery.keeps_connection,
    })
}

/// Sends a request, and reads the head of the answer: returns it with what the body is, and the
/// bytes behind it. Both may take `timeout_ms` each.
async fn ask(
    connection: &Connection,
    request: &[u8],
    method: Method,
    timeout_ms: u64,
) -> Result<(Head, Delivery, Vec<u8>), Failed> {
    let sent = connection.write_all(request, timeout_ms).await;
    sent.map_err(|_| Failed::Sending)?;
    let (mut head, mut input) = (Head::default(), Received::default());
    let read = read_head(connection, method, &mut input, &mut head);
    let read = bounded(timeout_ms, read).await;
    let delivery = read.unwrap_or(Err(Failed::ReadingHead))?;
    Ok((head, delivery, input.into_vec()))
}

/// The time limit of each step of a request, in milliseconds: for servers anywhere.
const STEP_MS: u64 = 30_000;

/// How servers are reached that the configuration names by their addresses on the web.
pub(crate) struct Outlet {
    /// The `resolver`; `None`: the system's is asked.
    pub(crate) names: Option<Names>,
    /// TLS to servers whose addresses begin with `https`.
    pub(crate) connector: Arc<TlsConnector>,
}

impl Outlet {
    /// Sends a request on a connection of its own, and reads the answer. The request's URI is
    /// absolute.
    ///
    /// # Errors
    /// What failed, for the log.
    pub(crate) async fn send(&self, request: &Request<Bytes>) -> Result<Answer, String> {
        let uri = request.uri();
        let invalid = || format!("invalid address \"{uri}\"");
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(invalid()),
        };
        let host = uri.host().ok_or_else(invalid)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let options = ConnectOptions {
            timeout_ms: STEP_MS,
            tls: is_secure.then_some(Tls {
                connector: &self.connector,
                name: host,
                protocols: &[],
                timeout_ms: STEP_MS,
            }),
            ..ConnectOptions::default()
        };
        let mut failed = "it has no address".to_owned();
        for address in self.addresses(host, port).await? {
            let now_ms = monotonic_ns() / 1_000_000;
            match Connection::open_to(&address, &options, now_ms).await {
                Ok(connection) => {
                    let (method, bytes) = written(request)?;
                    let asked = exchange(&connection, &bytes, method, STEP_MS).await;
                    return asked.map_err(|failed| format!("{uri}: {}", failed.what()));
                }
                Err(error) => failed = format!("{address}: {error}"),
            }
        }
        Err(format!("cannot connect to {host}: {failed}"))
    }

    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<Address>, String> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![Address::Inet((address, port).into())]);
        }
        if let Some(names) = &self.names {
            let found = names.addresses(host, port).await;
            return found.map_err(|error| format!("{host} could not be resolved {error}"));
        }
        let place = (host.to_owned(), port);
        let found = run_blocking(move || place.to_socket_addrs());
        let found = found.map_err(|refusal| refusal.to_string())?.await;
        match found {
            Some(Ok(found)) => Ok(found.map(Address::Inet).collect()),
            Some(Err(error)) => Err(format!("{host} could not be resolved: {error}")),
            None => Err(format!("{host} could not be resolved")),
        }
    }
}

/// One address of our own, through which any URL can be requested.
pub(crate) struct OwnListener<'a> {
    pub(crate) address: SocketAddr,
    /// TLS for URLs that begin with `https`.
    pub(crate) connector: &'a Arc<TlsConnector>,
    /// What goes first on each connection.
    pub(crate) proxy_header: &'a [u8],
}

/// How long the whole body of an answer may take, in milliseconds: a large file of a slow server.
const WHOLE_BODY_MS: u64 = 600_000;

impl OwnListener<'_> {
    /// Requests a URL on a connection of its own, and reads the whole answer: returns its status
    /// and the length of its body in bytes.
    ///
    /// # Errors
    /// What failed, for people.
    pub(crate) async fn fetch(&self, uri: &Uri) -> Result<(u16, u64), String> {
        let is_secure = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default();
        let options = ConnectOptions {
            timeout_ms: STEP_MS,
            proxy_header: self.proxy_header,
            tls: is_secure.then_some(Tls {
                connector: self.connector,
                name: host.trim_start_matches('[').trim_end_matches(']'),
                protocols: &[],
                timeout_ms: STEP_MS,
            }),
            ..ConnectOptions::default()
        };
        let request = Request::get(uri).body(Bytes::new());
        let request = request.map_err(|error| error.to_string())?;
        let (method, bytes) = written(&request)?;
        let now_ms = monotonic_ns() / 1_000_000;
        let address = Address::Inet(self.address);
        let connection = Connection::open_to(&address, &options, now_ms).await;
        let connection = connection.map_err(|error| format!("{address}: {error}"))?;
        let asked = ask(&connection, &bytes, method, STEP_MS).await;
        let (head, delivery, input) = asked.map_err(|failed| failed.what().to_owned())?;
        let mut length_bytes = 0;
        let take = |data: &[u8]| {
            length_bytes += data.len() as u64;
            true
        };
        let read = read_body(&connection, input, delivery.end, take);
        let read = bounded(WHOLE_BODY_MS, read).await;
        let read = read.unwrap_or(Err(Failed::ReadingBody));
        read.map_err(|failed| failed.what().to_owned())?;
        Ok((head.status, length_bytes))
    }
}

/// The bytes of a request.
fn written(request: &Request<Bytes>) -> Result<(Method, Vec<u8>), String> {
    let (name, method) = match *request.method() {
        http::Method::GET => ("GET", Method::Get),
        http::Method::HEAD => ("HEAD", Method::Head),
        http::Method::POST => ("POST", Method::Post),
        ref other => return Err(format!("the method {other} is not supported")),
    };
    let uri = request.uri();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let mut bytes = Vec::new();
    let mut lines = RequestLines::new(&mut bytes, Version::Http11);
    lines.line(name.as_bytes(), path.as_bytes());
    lines.host(authority.as_bytes());
    lines.field(b"Connection", b"close");
    if method == Method::Post {
        lines.number(b"Content-Length", request.body().len() as u64);
    }
    for (name, value) in request.headers() {
        lines.field(name.as_str().as_bytes(), value.as_bytes());
    }
    lines.end();
    bytes.extend_from_slice(request.body());
    Ok((method, bytes))
}

/// How a body that was read ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// With nothing behind it.
    Cleanly,
    /// With the connection, too late to look at, or with something behind it.
    Otherwise,
}

async fn read_head(
    connection: &Connection,
    method: Method,
    input: &mut Received,
    head: &mut Head,
) -> Result<Delivery, Failed> {
    let rules = HeadRules {
        line_bytes_max: HEAD_BYTES_MAX,
        head_bytes_max: HEAD_BYTES_MAX,
        fields_max: FIELDS_MAX,
        // What matters is the answer, not how well the server writes.
        strictness: Strictness::Nginx,
        ..HeadRules::default()
    };
    let (mut lines, mut interim) = (HeadReader::default(), 0);
    loop {
        let is_whole = lines.read(input, &rules, method, head);
        if is_whole.map_err(|_| Failed::ReadingHead)? {
            if head.is_interim() && interim < INTERIM_MAX {
                interim += 1;
                continue;
            }
            let delivery = lines.delivery();
            // A coding that nobody asked for: what is compared with would be compressed.
            return match delivery.coding {
                Some(_) => Err(Failed::ReadingHead),
                None => Ok(delivery),
            };
        }
        let read = connection.read(input.room(), READ_BYTES, 0).await;
        if read.map_err(|_| Failed::ReadingHead)? == 0 {
            return Err(Failed::ReadingHead);
        }
    }
}

/// Reads the body as far as `take` wants it, which says after each piece whether it wants more.
async fn read_body(
    connection: &Connection,
    mut input: Vec<u8>,
    end: BodyEnd,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<Ended, Failed> {
    let until_close = end == BodyEnd::UntilClose;
    let mut reader = BodyReader::new(end, Strictness::Nginx);
    loop {
        loop {
            let piece = reader.read(&input).map_err(|_| Failed::ReadingBody)?;
            let wants_more = take(piece.data);
            let (taken_bytes, is_last) = (piece.taken_bytes, piece.is_last);
            input.drain(..taken_bytes);
            if is_last || !wants_more {
                return Ok(if is_last && input.is_empty() {
                    Ended::Cleanly
                } else {
                    Ended::Otherwise
                });
            }
            if taken_bytes == 0 {
                break;
            }
        }
        match connection.read(&mut input, READ_BYTES, 0).await {
            Ok(0) if until_close => return Ok(Ended::Otherwise),
            Err(error) if until_close && error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(Ended::Otherwise);
            }
            Ok(0) | Err(_) => return Err(Failed::ReadingBody),
            Ok(_) => {}
        }
    }
}
