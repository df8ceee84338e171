//! Asking ourselves: a request through a listening socket that our own lanes are to answer.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use turnpike_plan::control::{Arguments, Command, CommandError};

/// How long one place may take to answer. Nothing in it waits for an upstream; but the machine
/// may be busy with anything.
const ANSWER_WAIT: Duration = Duration::from_secs(20);
/// Places asked at most: every lane, or every address of an ordinary configuration.
const PLACES_MAX: usize = 64;
/// Neither a location nor an upstream is reached by it, nothing is changed by it.
const REQUEST: &[u8] = b"OPTIONS * HTTP/1.1\r\nHost: self-check\r\nUser-Agent: turnpike\r\n\
                         Connection: close\r\n\r\n";
/// Goes before it where the listen expects it; RFC-less, the PROXY protocol's version 1.
const PROXY_HEADER: &[u8] = b"PROXY UNKNOWN\r\n";
/// What every answer begins with.
const ANSWER: &[u8] = b"HTTP/1.1 ";

/// The verb. `proxied` says by its index which listen expects a PROXY header; `None`: it is one of
/// datagrams, on which nobody is asked.
pub(super) struct SelfCheck {
    pub(super) proxied: Vec<Option<bool>>,
    /// Requests that were answered, for the counts of clients' requests to leave out.
    pub(super) answered: Arc<AtomicU64>,
}

impl Command for SelfCheck {
    fn run(&self, arguments: &Arguments) -> Result<Value, CommandError> {
        let places = arguments.get("places").and_then(Value::as_array);
        let places = places.map_or(&[][..], Vec::as_slice);
        for place in places.iter().take(PLACES_MAX) {
            let address = place["address"].as_str().unwrap_or_default();
            let listen = place["listen"].as_u64().unwrap_or_default();
            let proxied = usize::try_from(listen).ok();
            let proxied = proxied.and_then(|listen| self.proxied.get(listen).copied().flatten());
            let Some(proxied) = proxied else {
                // Behind it other protocols than HTTP are spoken.
                continue;
            };
            ask(address, proxied).map_err(|error| {
                CommandError::Failed(format!("no answer through {address} ({error})"))
            })?;
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(json!({ "asked": places.len().min(PLACES_MAX) }))
    }
}

/// Asks at one address. An answer is what begins like one; a connection that is closed in good
/// order is one too, since `return 444` is how many default servers answer.
fn ask(address: &str, proxied: bool) -> io::Result<()> {
    let wrong = |_| io::Error::from(io::ErrorKind::InvalidInput);
    if let Some(path) = address.strip_prefix("unix:") {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(ANSWER_WAIT))?;
        return talk(stream, proxied);
    }
    let address: SocketAddr = address.parse().map_err(wrong)?;
    let stream = TcpStream::connect_timeout(&reachable(address), ANSWER_WAIT)?;
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    talk(stream, proxied)
}

/// A socket on all addresses is reached through the loopback one.
fn reachable(address: SocketAddr) -> SocketAddr {
    let host = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        host => host,
    };
    SocketAddr::new(host, address.port())
}

fn talk(mut stream: impl Read + Write, proxied: bool) -> io::Result<()> {
    if proxied {
        stream.write_all(PROXY_HEADER)?;
    }
    stream.write_all(REQUEST)?;
    let mut answer = [0; ANSWER.len()];
    match stream.read_exact(&mut answer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Err(error) => Err(error),
        Ok(()) if answer == *ANSWER => Ok(()),
        Ok(()) => Err(io::ErrorKind::InvalidData.into()),
    }
}
