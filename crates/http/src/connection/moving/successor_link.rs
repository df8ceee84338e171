//! The link by which a serving process gives waiting connections to the one after it.
//!
//! ```text
//!  before                                       after
//!    ◄─ VERSION, its listens ─────────────────   has lanes that take connections
//!    ── connections with their descriptors ───►  gives them to its lanes
//!    ── (end) ────────────────────────────────►
//! ```
//!
//! A packet (SOCK_SEQPACKET, unix(7)) carries as many connections as a kernel message carries
//! descriptors. A process that never makes this offer, such as an older program, gets nothing.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::sys::descriptor::{self, DESCRIPTORS_PER_MESSAGE_MAX};
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::sys::socket::{self, More, PeerAddress};
use turnpike_lane::transport::Transport;

use super::{Moving, Origin};
use crate::connection::open::Connection;
use crate::connection::slot::{Await, KeptUntil, Parked};
use crate::connection::tls::security::Security;
use crate::plan::index::ListenIndex;
use crate::requester::ConnectionFacts;

/// The first byte of every packet of the offer: the form of the entries. The last packet has
/// nothing behind it.
const VERSION: u8 = 1;

/// Bytes of a packet of the offer: several of them fit into a link that nobody has read yet.
const OFFER_BYTES_MAX: usize = 16 * 1024;

/// An idle connection is given no longer timeout than this, in milliseconds: what comes from
/// another process must not overflow a deadline.
const IDLE_TIMEOUT_MS_MAX: u64 = 1 << 40;

/// Not in [`io::ErrorKind`]: too many descriptors are on their way (unix(7)).
const ETOOMANYREFS: i32 = 109;

/// Not in [`io::ErrorKind`]: the kernel has no buffer (errno(3)).
const ENOBUFS: i32 = 105;

/// Bytes of an entry without the text of its two addresses: three numbers of 8 bytes, a flag, and
/// two lengths.
const ENTRY_BYTES: usize = 27;

/// Bytes of an address: one byte has its length.
const ADDRESS_BYTES_MAX: usize = u8::MAX as usize;

/// Bytes of a packet.
const PACKET_BYTES_MAX: usize = DESCRIPTORS_PER_MESSAGE_MAX * (ENTRY_BYTES + 2 * ADDRESS_BYTES_MAX);

/// In place of the timeout of an idle connection: no request has come by it yet.
const NO_REQUEST_YET: u64 = u64::MAX;

/// What the address of a unix socket begins with.
const UNIX: &[u8] = b"unix:";

/// The end of the process that gives its connections away.
#[derive(Debug)]
pub struct SuccessorLink {
    socket: OwnedFd,
    /// The listens of the process that takes them.
    listens: Vec<ListenAddress>,
}

/// What became of a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The other process has the descriptors too now.
    Whole,
    /// The link is full: nothing was given.
    Later,
    /// The other process takes nothing any more.
    Never,
}

impl SuccessorLink {
    /// A link over one end of [`descriptor::packet_pair`], if the process at the other end has made
    /// its offer by now.
    pub fn new(socket: OwnedFd) -> Option<Self> {
        let mut listens = Vec::new();
        let mut buffer = vec![0; OFFER_BYTES_MAX];
        loop {
            let count = socket::receive(socket.as_fd(), &mut buffer).ok()?;
            let (&VERSION, mut texts) = buffer[..count].split_first()? else {
                return None;
            };
            if texts.is_empty() {
                return Some(Self { socket, listens });
            }
            while !texts.is_empty() {
                listens.push(read_listen(text(&mut texts)?)?);
            }
        }
    }

    /// This end, for tests that fill the link.
    #[cfg(test)]
    pub(in crate::connection) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether a connection can be given: the other process has its listen, and it has no state
    /// that only this process knows.
    pub(in crate::connection) fn takes(&self, parked: &Parked) -> bool {
        let connection = &parked.connection;
        let listen = &connection.plan.listen(connection.facts.listen).address;
        matches!(parked.waits_for, Await::First | Await::Idle { .. })
            && is_plain(connection)
            && self.listens.contains(listen)
    }

    /// Gives the connections of a packet away.
    pub(super) fn send(&self, packet: &Packet<'_>) -> Sent {
        let socket = self.socket.as_fd();
        match descriptor::send_message(socket, &packet.bytes, &packet.descriptors) {
            Ok(_) => Sent::Whole,
            Err(error) => match (error.kind(), error.raw_os_error()) {
                (io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory, _)
                | (_, Some(ETOOMANYREFS | ENOBUFS)) => Sent::Later,
                _ => Sent::Never,
            },
        }
    }
}

/// Connections on their way into a link.
pub(super) struct Packet<'a> {
    link: &'a SuccessorLink,
    bytes: Vec<u8>,
    descriptors: Vec<BorrowedFd<'a>>,
}

impl<'a> Packet<'a> {
    pub(super) fn new(link: &'a SuccessorLink) -> Self {
        Self {
            link,
            bytes: Vec::new(),
            descriptors: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.descriptors.len() == DESCRIPTORS_PER_MESSAGE_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// Adds a connection; `false`: it cannot be given.
    pub(super) fn add(&mut self, parked: &'a Parked) -> bool {
        if !self.link.takes(parked) {
            return false;
        }
        let connection = &parked.connection;
        let listen = &connection.plan.listen(connection.facts.listen).address;
        let idle_timeout_ms = match parked.waits_for {
            Await::First => NO_REQUEST_YET,
            Await::Idle { timeout_ms, .. } => timeout_ms,
            Await::Rest(_) | Await::Handshake(_) => return false,
        };
        let addresses = [listen_text(listen), peer_text(connection.facts.peer)];
        let facts = &connection.facts;
        for number in [facts.requests, facts.accepted_ns, idle_timeout_ms] {
            self.bytes.extend(number.to_le_bytes());
        }
        self.bytes.push(u8::from(connection.no_delay));
        for text in addresses {
            write_text(&mut self.bytes, &text);
        }
        self.descriptors.push(connection.transport.as_fd());
        true
    }
}

/// Whether its socket and its facts are all there is of a connection.
fn is_plain(connection: &Connection) -> bool {
    matches!(connection.security, Security::Plain)
        && connection.transport.is_plain()
        && connection.proxy_header.is_none()
        && connection.input.is_empty()
}

/// A text behind its length. No address is longer: the path of a unix socket has 107 bytes at most
/// (unix(7)).
fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(&text[..text.len().min(ADDRESS_BYTES_MAX)]);
}

/// Empty for what is no stream.
fn listen_text(address: &ListenAddress) -> Vec<u8> {
    match address {
        ListenAddress::Tcp(address) => address.to_string().into_bytes(),
        ListenAddress::Unix(path) => [UNIX, path].concat(),
        ListenAddress::Udp(_) => Vec::new(),
    }
}

fn peer_text(peer: PeerAddress) -> Vec<u8> {
    match peer {
        PeerAddress::Inet(address) => address.to_string().into_bytes(),
        PeerAddress::Unix => UNIX.to_vec(),
    }
}

/// Offers to take connections of these listens, over one end of [`descriptor::packet_pair`] that
/// nothing was sent over. Does not block.
///
/// # Errors
/// Those of `send(2)`; `WouldBlock` for more listens than the link has room for.
pub fn offer<'a>(
    link: BorrowedFd<'_>,
    listens: impl Iterator<Item = &'a ListenAddress>,
) -> io::Result<()> {
    let mut packet = vec![VERSION];
    for listen in listens {
        if packet.len() + 1 + ADDRESS_BYTES_MAX > OFFER_BYTES_MAX {
            socket::send(link, &packet, More::No)?;
            packet.truncate(1);
        }
        write_text(&mut packet, &listen_text(listen));
    }
    if packet.len() > 1 {
        socket::send(link, &packet, More::No)?;
    }
    socket::send(link, &[VERSION], More::No).map(|_| ())
}

/// Takes the connections that an offer brings until the process at the other end closes the link.
/// It blocks: it is for a thread of its own. `take` returns whether somebody serves the connection.
/// `lost` is called after a packet with the number of its connections that nobody serves, that came
/// without a descriptor since this process has too many open, or that cannot be read.
///
/// # Errors
/// Those of `recvmsg(2)`.
pub fn take_connections(
    link: BorrowedFd<'_>,
    mut take: impl FnMut(Box<Moving>) -> bool,
    mut lost: impl FnMut(u64),
) -> io::Result<()> {
    let mut buffer = vec![0; PACKET_BYTES_MAX];
    let mut sockets = Vec::new();
    loop {
        let count = descriptor::receive_packet_with(link, &mut buffer, &mut sockets)?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..count];
        let mut sockets = sockets.drain(..);
        let mut lost_here = 0;
        while !rest.is_empty() {
            let entry = Entry::read(&mut rest).zip(sockets.next());
            let moving = entry.map(|(entry, socket)| Box::new(entry.into_moving(socket)));
            lost_here += u64::from(!moving.is_some_and(&mut take));
        }
        if lost_here > 0 {
            lost(lost_here);
        }
    }
}

/// What a packet has of a connection beside its descriptor.
struct Entry {
    requests: u64,
    accepted_ns: u64,
    waits_for: Await,
    no_delay: bool,
    listen: ListenAddress,
    peer: PeerAddress,
}

impl Entry {
    /// Takes the next entry of a packet; what cannot be read takes the rest of it.
    fn read(packet: &mut &[u8]) -> Option<Self> {
        let rest = std::mem::take(packet);
        let mut left = rest;
        let entry = Self::parse(&mut left)?;
        *packet = left;
        Some(entry)
    }

    fn parse(left: &mut &[u8]) -> Option<Self> {
        let requests = number(left)?;
        let accepted_ns = number(left)?;
        let waits_for = match number(left)? {
            NO_REQUEST_YET => Await::First,
            timeout_ms => Await::Idle {
                timeout_ms: timeout_ms.min(IDLE_TIMEOUT_MS_MAX),
                // What is left of that time, only the process before knows.
                kept: KeptUntil::after(monotonic_ns() / 1_000_000, 0),
            },
        };
        Some(Self {
            requests,
            accepted_ns,
            waits_for,
            no_delay: *left.split_off_first()? != 0,
            listen: read_listen(text(left)?)?,
            peer: read_peer(text(left)?)?,
        })
    }

    fn into_moving(self, socket: OwnedFd) -> Moving {
        let transport = Transport::plain(socket);
        Moving {
            facts: ConnectionFacts {
                // The lane that takes it sets this and the listen.
                serial: 0,
                listen: ListenIndex(0),
                peer: self.peer,
                socket: transport.facts(),
                local: None,
                requests: self.requests,
                is_pipelined: false,
                accepted_ms: self.accepted_ns / 1_000_000,
                accepted_ns: self.accepted_ns,
            },
            transport,
            no_delay: self.no_delay,
            proxy_header: None,
            security: Security::Plain,
            address: self.listen,
            waits_for: self.waits_for,
            origin: Origin::Process,
        }
    }
}

fn number(left: &mut &[u8]) -> Option<u64> {
    let (bytes, rest) = left.split_first_chunk()?;
    *left = rest;
    Some(u64::from_le_bytes(*bytes))
}

fn text<'a>(left: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::from(*left.split_off_first()?);
    left.split_off(..length)
}

fn read_listen(text: &[u8]) -> Option<ListenAddress> {
    match text.strip_prefix(UNIX) {
        Some(path) => Some(ListenAddress::Unix(path.into())),
        None => read_address(text).map(ListenAddress::Tcp),
    }
}

fn read_peer(text: &[u8]) -> Option<PeerAddress> {
    match text {
        UNIX => Some(PeerAddress::Unix),
        _ => read_address(text).map(PeerAddress::Inet),
    }
}

fn read_address(text: &[u8]) -> Option<SocketAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// An entry as [`Packet::add`] writes it.
    fn entry(timeout_ms: u64, listen: &str, peer: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [7, 5_000_000_123_u64, timeout_ms] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.push(1);
        for text in [listen, peer] {
            bytes.push(text.len() as u8);
            bytes.extend(text.bytes());
        }
        bytes
    }

    #[test]
    fn entries_are_read_as_they_are_written() {
        let rows: &[(&str, &str)] = &[
            ("0.0.0.0:80", "127.0.0.1:40000"),
            ("[::]:443", "[fe80::1%2]:9"),
            ("unix:/run/a.socket", "unix:"),
        ];
        for (listen, peer) in rows {
            let packet = [
                entry(65_000, listen, peer),
                entry(NO_REQUEST_YET, listen, peer),
            ];
            let packet = packet.concat();
            let mut rest = &packet[..];
            let idle = Entry::read(&mut rest).unwrap();
            assert!(matches!(
                idle.waits_for,
                Await::Idle {
                    timeout_ms: 65_000,
                    ..
                }
            ));
            assert_eq!(
                (idle.requests, idle.accepted_ns, idle.no_delay),
                (7, 5_000_000_123, true)
            );
            assert_eq!(listen_text(&idle.listen), listen.as_bytes());
            assert_eq!(peer_text(idle.peer), peer.as_bytes());
            let fresh = Entry::read(&mut rest).unwrap();
            assert!(matches!(fresh.waits_for, Await::First));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn what_cannot_be_read_ends_the_packet() {
        let whole = entry(1, "127.0.0.1:80", "127.0.0.1:9");
        let mut rows: Vec<Vec<u8>> = (1..whole.len()).map(|end| whole[..end].to_vec()).collect();
        rows.push(entry(1, "127.0.0.1", "127.0.0.1:9"));
        rows.push(entry(1, "127.0.0.1:80", "unix:/a"));
        rows.push(entry(1, "", "127.0.0.1:9"));
        for row in rows {
            let mut rest = &row[..];
            assert!(Entry::read(&mut rest).is_none(), "{row:?}");
            assert!(rest.is_empty());
        }
    }
}
