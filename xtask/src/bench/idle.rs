//! The memory of idle keep-alive connections.

use std::io::{Read, Write};
use std::net::TcpStream;

use turnpike_host::Host;

use super::plan::Plan;
use super::progress::Progress;
use crate::contender::{Contender, OBJECT, serving_pid};

/// Memory of one server.
#[derive(Debug, Clone)]
pub(super) struct Idle {
    pub(super) server: String,
    pub(super) connections: usize,
    /// Bytes of proportional memory per connection.
    pub(super) pss_bytes: f64,
    /// Bytes of resident memory per connection.
    pub(super) rss_bytes: f64,
    /// Resident memory with none, KiB.
    pub(super) empty_rss_kib: u64,
}

/// Opens connections, one request on each, and weighs the serving process before and after.
///
/// # Errors
/// A server does not start, or a connection fails.
pub(super) fn memory(
    plan: &Plan,
    contenders: &[Contender],
    progress: &mut Progress,
) -> Result<Vec<Idle>, String> {
    let mut all = Vec::new();
    for contender in contenders {
        progress.step(&format!("idle connections, {}", contender.name));
        let server = contender.start(&plan.configuration)?;
        let pid = serving_pid(&server)?;
        let open = || connection(server.port()).map_err(|error| format!("{error}"));
        drop(open()?); // lazy set-up is not the connections' share
        let before = Host::here().process_memory(pid);
        let connections = (0..plan.idle)
            .map(|_| open())
            .collect::<Result<Vec<_>, String>>()?;
        let after = Host::here().process_memory(pid);
        let each = |after: u64, before: u64| {
            after.saturating_sub(before) as f64 / connections.len() as f64
        };
        all.push(Idle {
            server: contender.name.clone(),
            connections: connections.len(),
            pss_bytes: each(after.proportional_bytes, before.proportional_bytes),
            rss_bytes: each(after.resident_bytes, before.resident_bytes),
            empty_rss_kib: before.resident_bytes / 1024,
        });
    }
    Ok(all)
}

/// A connection that has had one request answered whole and stays.
fn connection(port: u16) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(turnpike_testkit::DEADLINE))?;
    write!(stream, "GET {OBJECT} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    while !is_whole(&received) {
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            length => received.extend_from_slice(&piece[..length]),
        }
    }
    Ok(stream)
}

/// Whether the head and as many bytes as it announces are there.
fn is_whole(received: &[u8]) -> bool {
    let text = String::from_utf8_lossy(received);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    length.and_then(|length| length.parse().ok()) == Some(body.len())
}
