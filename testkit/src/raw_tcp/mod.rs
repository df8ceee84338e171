//! TCP by raw sockets: segments exactly as a test wants them, from an address that this machine's
//! kernel does not know, so that its own TCP takes no part. It needs root.

mod segment;

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, recv, sendto,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;

pub use segment::{ACK, FIN, PSH, RST, SYN, Segment};

/// How long an answer is waited for before what is not acknowledged is sent again.
const PATIENCE_MS: i64 = 500;

/// How often it is sent again: a minute of a machine that is loaded.
const TRIES_MAX: usize = 120;

/// The text of a segment, at most: what every path here takes.
const TEXT_BYTES_MAX: usize = 1400;

/// The largest packet of the interfaces of tests.
const PACKET_BYTES_MAX: usize = 65536;

/// The sockets.
#[derive(Debug)]
pub struct RawTcp {
    sending: OwnedFd,
    receiving: OwnedFd,
    /// Where packets are received.
    packet: RefCell<Vec<u8>>,
}

impl RawTcp {
    /// Opens the sockets in this thread's network namespace, for segments of IPv4.
    ///
    /// # Errors
    /// The kernel does not permit it.
    pub fn open() -> io::Result<RawTcp> {
        RawTcp::open_as(AddressFamily::Inet, SockProtocol::EthIp)
    }

    /// Opens the sockets as [`RawTcp::open`], for segments of IPv6.
    ///
    /// # Errors
    /// The kernel does not permit it.
    pub fn open_v6() -> io::Result<RawTcp> {
        RawTcp::open_as(AddressFamily::Inet6, SockProtocol::EthIpv6)
    }

    fn open_as(family: AddressFamily, packets: SockProtocol) -> io::Result<RawTcp> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let sending = socket(family, SockType::Raw, flags, SockProtocol::Raw)?;
        let (family, kind) = (AddressFamily::Packet, SockType::Datagram);
        let receiving = socket(family, kind, flags, packets)?;
        let patience = TimeVal::new(0, PATIENCE_MS * 1000);
        setsockopt(&receiving, sockopt::ReceiveTimeout, &patience)?;
        Ok(RawTcp {
            sending,
            receiving,
            packet: RefCell::new(vec![0; PACKET_BYTES_MAX]),
        })
    }

    /// Sends a segment.
    ///
    /// # Errors
    /// Those of sendto(2).
    pub fn send(&self, segment: &Segment) -> io::Result<()> {
        let mut destination = segment.destination;
        if destination.is_ipv6() {
            // A raw socket takes a port for a protocol there.
            destination.set_port(0);
        }
        let destination = SockaddrStorage::from(destination);
        let sending = self.sending.as_raw_fd();
        sendto(sending, &segment.bytes(), &destination, MsgFlags::empty())?;
        Ok(())
    }

    /// The next segment to an address that has come or comes soon; `None`: nothing comes.
    ///
    /// # Errors
    /// Those of recv(2).
    pub fn receive(&self, address: IpAddr) -> io::Result<Option<Segment>> {
        self.receive_by(address, MsgFlags::empty())
    }

    /// The next segment to an address that has come.
    ///
    /// # Errors
    /// Those of recv(2).
    pub fn received(&self, address: IpAddr) -> io::Result<Option<Segment>> {
        self.receive_by(address, MsgFlags::MSG_DONTWAIT)
    }

    fn receive_by(&self, address: IpAddr, flags: MsgFlags) -> io::Result<Option<Segment>> {
        let mut packet = self.packet.borrow_mut();
        loop {
            let bytes = match recv(self.receiving.as_raw_fd(), &mut packet, flags) {
                Ok(bytes) => bytes,
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let segment = Segment::parse(&packet[..bytes]);
            let segment = segment.filter(|segment| segment.destination.ip() == address);
            if segment.is_some() {
                return Ok(segment);
            }
        }
    }

    /// Begins a connection by a SYN with these options, sends each piece as a segment and then a
    /// FIN, and returns all that comes back until the other side ends the connection.
    ///
    /// # Errors
    /// Those of the sockets; nothing comes back any more.
    pub fn exchange(
        &self,
        [source, destination]: [SocketAddr; 2],
        options: &[u8],
        pieces: &[Vec<u8>],
    ) -> io::Result<Vec<u8>> {
        let syn = Segment::syn(source, destination, options);
        let mut connection = Connection::new(&syn, pieces);
        self.send(&syn)?;
        for _ in 0..TRIES_MAX {
            while let Some(segment) = self.receive(source.ip())? {
                if segment.destination != source || segment.source != destination {
                    continue;
                }
                for answer in connection.take(&segment) {
                    self.send(&answer)?;
                }
                if connection.is_over {
                    return Ok(connection.received);
                }
            }
            for again in connection.unacknowledged() {
                self.send(&again)?;
            }
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("nothing comes back; so far {:?}", connection.received),
        ))
    }
}

/// The client's side of a connection.
struct Connection {
    /// What is sent, in order: the SYN is first.
    segments: Vec<Segment>,
    /// How many of them the other side has.
    acknowledged: usize,
    /// The other side's next number, once it is known.
    next: Option<u32>,
    timestamp: Option<u32>,
    received: Vec<u8>,
    is_over: bool,
}

impl Connection {
    fn new(syn: &Segment, pieces: &[Vec<u8>]) -> Connection {
        let mut segments = vec![syn.clone()];
        let mut add = |flags: u8, text: &[u8]| {
            let last = &segments[segments.len() - 1];
            let sequence = last.sequence.wrapping_add(last.length());
            segments.push(Segment {
                sequence,
                flags,
                options: Vec::new(),
                text: text.to_vec(),
                ..syn.clone()
            });
        };
        for text in pieces.iter().flat_map(|piece| piece.chunks(TEXT_BYTES_MAX)) {
            add(ACK | PSH, text);
        }
        add(ACK | FIN, &[]);
        Connection {
            segments,
            acknowledged: 0,
            next: None,
            timestamp: None,
            received: Vec::new(),
            is_over: false,
        }
    }

    /// Takes a segment in; returns those that are to be sent.
    fn take(&mut self, segment: &Segment) -> Vec<Segment> {
        if segment.flags & RST != 0 {
            self.is_over = true;
            return Vec::new();
        }
        let is_first = segment.flags & SYN != 0;
        if is_first && self.next.is_none() {
            self.next = Some(segment.sequence.wrapping_add(1));
            self.timestamp = segment.timestamp();
            self.acknowledged = 1;
            return [vec![self.acknowledgement()], self.unacknowledged()].concat();
        }
        let is_new = |mine: &&Segment| {
            let end = mine.sequence.wrapping_add(mine.length());
            segment.acknowledgement.wrapping_sub(end) as i32 >= 0
        };
        let known = self.segments.iter().take_while(is_new).count();
        self.acknowledged = self.acknowledged.max(known);
        self.timestamp = segment.timestamp().or(self.timestamp);
        if segment.length() == 0 {
            return Vec::new();
        }
        if self.next == Some(segment.sequence) {
            self.next = Some(segment.sequence.wrapping_add(segment.length()));
            self.received.extend(&segment.text);
            self.is_over = segment.flags & FIN != 0;
        }
        vec![self.acknowledgement()]
    }

    /// An acknowledgement of all that came.
    fn acknowledgement(&self) -> Segment {
        let last = &self.segments[self.acknowledged.min(self.segments.len() - 1)];
        let text = Segment {
            flags: ACK,
            text: Vec::new(),
            ..last.clone()
        };
        self.of_now(&text)
    }

    /// What is to be sent again.
    fn unacknowledged(&self) -> Vec<Segment> {
        let rest = &self.segments[self.acknowledged..];
        // Nothing follows a SYN before it is answered.
        let count = if self.next.is_none() { 1 } else { rest.len() };
        let again = rest[..count].iter();
        again.map(|segment| self.of_now(segment)).collect()
    }

    /// A segment with what is known of the other side.
    fn of_now(&self, segment: &Segment) -> Segment {
        let mut segment = segment.clone();
        segment.acknowledgement = self.next.unwrap_or(0);
        if let Some(echo) = self.timestamp.filter(|_| segment.flags & SYN == 0) {
            // Time goes on behind the SYN, or the segment is taken for an old one.
            let own = self.segments[0]
                .timestamp()
                .map_or(0, |first| first.wrapping_add(1));
            segment.options = vec![1, 1, 8, 10];
            segment.options.extend(own.to_be_bytes());
            segment.options.extend(echo.to_be_bytes());
        }
        segment
    }
}

#[cfg(test)]
mod tests;
