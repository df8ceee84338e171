//! A connection: its streams, the datagrams that it wants sent, and when it wants to be looked at.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use bytes::Bytes;
pub use quinn_proto::StreamId;
use quinn_proto::{
    ConnectionError, ConnectionEvent, ConnectionHandle, Dir, EndpointEvent, ReadError, Side,
    StreamEvent, VarInt, WriteError,
};

use crate::endpoint::Transmit;
use crate::limits::HalfOpen;
use crate::tls::Negotiated;

/// The fewest bytes of a packet that are not of a stream: a first byte, no connection id (that of a
/// browser is empty), a packet number of one byte, the tag, and the type and the stream of a frame
/// (RFC 9000 sections 17.3.1 and 19.8). With more than there are, what is unsent would seem to grow
/// with each packet, until no stream might write.
const OVERHEAD_BYTES_MIN: usize = 1 + 1 + 16 + 1 + 1;

/// The number of a connection at its endpoint, which is given out again once it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub(crate) ConnectionHandle);

impl Handle {
    /// The number itself: small, as that of a place in a list.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.0
    }
}

/// The stream with that number (RFC 9000 section 2.1).
#[must_use]
pub fn stream_id(number: u64) -> StreamId {
    let initiator = match number & 1 {
        0 => Side::Client,
        _ => Side::Server,
    };
    let direction = match number & 2 {
        0 => Dir::Bi,
        _ => Dir::Uni,
    };
    StreamId::new(initiator, direction, number >> 2)
}

/// The number of a stream.
#[must_use]
pub fn stream_number(id: StreamId) -> u64 {
    VarInt::from(id).into_inner()
}

/// The direction of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Both,
    /// From the one who has opened it.
    One,
}

/// What has happened to a connection.
#[derive(Debug)]
pub enum Event {
    /// The handshake is complete: the client is who it says.
    Connected,
    /// The connection has ended.
    Lost(Loss),
    /// The client has opened streams; see [`Connection::accept`].
    Opened(Direction),
    /// There is something to read on a stream.
    Readable(StreamId),
    /// A stream takes more.
    Writable(StreamId),
    /// The client wants no more on a stream.
    Stopped(StreamId),
}

/// Why a connection has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The client has closed it.
    ClosedByClient,
    /// Nothing came for too long.
    TimedOut,
    /// The client does not know the connection any more.
    Reset,
    /// The server has closed it.
    ClosedHere,
    /// The client has broken a rule, or the handshake has failed.
    Failed(String),
}

/// What was read of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes; more may come.
    Some(usize),
    /// So many bytes, and the stream's end.
    End(usize),
    /// The client has given the stream up.
    Reset,
}

/// A connection.
pub struct Connection {
    quinn: quinn_proto::Connection,
    /// Of a connection whose handshake is not complete.
    half_open: Option<HalfOpen>,
    /// Bytes that streams were given and that no datagram has, about: never more than there are.
    unsent_bytes: usize,
    /// The streams that were opened to the client: they never end.
    opened: usize,
}

impl Connection {
    pub(crate) fn new(quinn: quinn_proto::Connection, half_open: HalfOpen) -> Self {
        Self {
            quinn,
            half_open: Some(half_open),
            unsent_bytes: 0,
            opened: 0,
        }
    }

    pub(crate) fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.quinn.poll_endpoint_events()
    }

    pub(crate) fn handle(&mut self, event: ConnectionEvent) {
        self.quinn.handle_event(event);
    }

    /// The next thing that has happened.
    pub fn poll(&mut self) -> Option<Event> {
        loop {
            return Some(match self.quinn.poll()? {
                quinn_proto::Event::Connected => {
                    self.half_open = None;
                    Event::Connected
                }
                quinn_proto::Event::ConnectionLost { reason } => {
                    self.half_open = None;
                    Event::Lost(Loss::of(reason))
                }
                quinn_proto::Event::Stream(event) => match event {
                    StreamEvent::Opened { dir: Dir::Bi } => Event::Opened(Direction::Both),
                    StreamEvent::Opened { dir: Dir::Uni } => Event::Opened(Direction::One),
                    StreamEvent::Readable { id } => Event::Readable(id),
                    StreamEvent::Writable { id } => Event::Writable(id),
                    StreamEvent::Stopped { id, .. } => Event::Stopped(id),
                    StreamEvent::Finished { .. } | StreamEvent::Available { .. } => continue,
                },
                quinn_proto::Event::HandshakeDataReady
                | quinn_proto::Event::DatagramReceived
                | quinn_proto::Event::DatagramsUnblocked => continue,
            });
        }
    }

    /// When the connection wants to be looked at next; see [`Connection::time_passed`].
    pub fn deadline(&mut self) -> Option<Instant> {
        self.quinn.poll_timeout()
    }

    /// Does what is due.
    pub fn time_passed(&mut self, now: Instant) {
        self.quinn.handle_timeout(now);
    }

    /// Writes the next datagrams into `output`, at most so many, all to one address; `None`: there
    /// is nothing to send now.
    pub fn transmit(
        &mut self,
        now: Instant,
        datagrams_max: usize,
        output: &mut Vec<u8>,
    ) -> Option<Transmit> {
        output.clear();
        let transmit = self
            .quinn
            .poll_transmit(now, datagrams_max.max(1), output)?;
        let transmit = Transmit::of(&transmit);
        let overhead_bytes = OVERHEAD_BYTES_MIN * transmit.datagrams();
        let payload_bytes = transmit.bytes.saturating_sub(overhead_bytes);
        self.unsent_bytes = self.unsent_bytes.saturating_sub(payload_bytes);
        Some(transmit)
    }

    /// Bytes that streams were given and that no datagram has yet, about.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Opens a stream to the client; `None`: it allows no more.
    pub fn open(&mut self) -> Option<StreamId> {
        let id = self.quinn.streams().open(Dir::Uni)?;
        self.opened += 1;
        Some(id)
    }

    /// Whether the client has acknowledged all that its own streams were given, and their ends.
    pub fn has_delivered_all(&mut self) -> bool {
        self.quinn.streams().send_streams() <= self.opened
    }

    /// The next stream that the client has opened.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        self.quinn.streams().accept(match direction {
            Direction::Both => Dir::Bi,
            Direction::One => Dir::Uni,
        })
    }

    /// Reads up to so many bytes of a stream behind what `buffer` holds; its end is told with the
    /// last of them.
    pub fn read(&mut self, id: StreamId, bytes_max: usize, buffer: &mut Vec<u8>) -> Read {
        let mut stream = self.quinn.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return Read::End(0);
        };
        let mut count = 0;
        let read = loop {
            if count >= bytes_max {
                break Read::Some(count);
            }
            match chunks.next(bytes_max - count) {
                Ok(Some(chunk)) => {
                    buffer.extend_from_slice(&chunk.bytes);
                    count += chunk.bytes.len();
                }
                Ok(None) => break Read::End(count),
                Err(ReadError::Blocked) => break Read::Some(count),
                Err(ReadError::Reset(_)) => break Read::Reset,
            }
        };
        // What there is to send is looked for after every turn of a connection.
        let _ = chunks.finalize();
        read
    }

    /// Writes to a stream; returns how much of it windows let through.
    pub fn write(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        match self.quinn.send_stream(id).write(bytes) {
            Ok(count) => {
                self.unsent_bytes += count;
                count
            }
            Err(WriteError::Blocked | WriteError::Stopped(_) | WriteError::ClosedStream) => 0,
        }
    }

    /// Ends our side of a stream.
    pub fn finish(&mut self, id: StreamId) {
        // One that has ended already needs no more.
        let _ = self.quinn.send_stream(id).finish();
    }

    /// Gives our side of a stream up, also one that has ended of which something is unsent.
    pub fn reset(&mut self, id: StreamId, code: u64) {
        let is_reset = self.quinn.send_stream(id).reset(number(code)).is_ok();
        if is_reset {
            // How much of it no datagram has is not told. Counted on, it would stop the other
            // streams for ever; the send window bounds what is written too early.
            self.unsent_bytes = 0;
        }
    }

    /// Asks the client to send no more on a stream.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        let _ = self.quinn.recv_stream(id).stop(number(code));
    }

    /// Gives a stream a place before those of lower priority.
    pub fn prioritize(&mut self, id: StreamId, priority: i32) {
        let _ = self.quinn.send_stream(id).set_priority(priority);
    }

    /// Closes the connection and tells the client why.
    pub fn close(&mut self, now: Instant, code: u64, reason: &'static str) {
        self.half_open = None;
        let reason = Bytes::from_static(reason.as_bytes());
        self.quinn.close(now, number(code), reason);
    }

    /// Whether the connection is closed, though late packets of the client may still come.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.quinn.is_closed()
    }

    /// Whether nothing of it is left.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.quinn.is_drained()
    }

    /// Whether the client has not proved yet that it takes part now: what it sends may have been
    /// recorded and sent again.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.quinn.is_handshaking()
    }

    /// The client's address, which may change.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.quinn.remote_address()
    }

    /// Our address, where it is known.
    #[must_use]
    pub fn local(&self) -> Option<IpAddr> {
        self.quinn.local_ip()
    }

    /// What the handshake has come to; `None`: it is not that far.
    #[must_use]
    pub fn negotiated(&self) -> Option<Negotiated> {
        let data = self.quinn.crypto_session().handshake_data()?;
        data.downcast().ok().map(|negotiated| *negotiated)
    }
}

impl Loss {
    fn of(error: ConnectionError) -> Self {
        match error {
            ConnectionError::ApplicationClosed(_) => Self::ClosedByClient,
            ConnectionError::ConnectionClosed(ref close)
                if u64::from(close.error_code) == NO_ERROR =>
            {
                Self::ClosedByClient
            }
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::Reset => Self::Reset,
            ConnectionError::LocallyClosed => Self::ClosedHere,
            ConnectionError::ConnectionClosed(_)
            | ConnectionError::TransportError(_)
            | ConnectionError::VersionMismatch
            | ConnectionError::CidsExhausted => Self::Failed(error.to_string()),
        }
    }
}

/// The code of a close without an error (RFC 9000 section 20.1).
const NO_ERROR: u64 = 0;

/// A code as the protocol writes it: those above its largest number do not exist.
fn number(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}
