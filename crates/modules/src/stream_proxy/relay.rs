//! Bytes of a session, both ways. What was received of one end is sent to the other before more is
//! received: an end that takes nothing is sent nothing, and nothing is read for it.
//!
//! Bytes are copied through a buffer. Where they come in bulk and neither end has TLS, they go
//! through a pipe inside the kernel, which copies nothing.

use std::cell::Cell;
use std::io;

use turnpike_lane::alternating::first_of;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::pipes;
use turnpike_lane::waiting::RelayEnd;
use turnpike_stream::client::Connected;
use turnpike_stream::session::Session;
use turnpike_stream::upstream::Try;
use turnpike_upstream::{Connection, Picked};

use super::activity::{Activity, pause};
use super::direction_limit::DirectionLimit;
use super::plan::Passing;

/// Fewer bytes in a pipe are the end of a bulk: to copy so few costs less than to move them.
pub(super) const BULK_BYTES_MIN: usize = 16 * 1024;

/// A session while its bytes are passed on.
pub(super) struct Relay<'a> {
    passing: &'a Passing,
    session: &'a Session,
    client: &'a Connected,
    connection: &'a Connection,
    picked: &'a Picked,
    /// The try of the server.
    one: &'a Try,
    upload: DirectionLimit,
    download: DirectionLimit,
    activity: Activity,
    /// Directions that have ended, where each ends on its own.
    ended: Cell<u8>,
}

/// Why a relay ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client has sent its last, or cannot be reached.
    Client,
    /// The server has.
    Upstream,
    /// Nothing happened for too long.
    Idle,
}

impl End {
    /// Writes it to the error log.
    pub(super) fn log(self, session: &Session) {
        let message = match self {
            Self::Client => "client disconnected",
            Self::Upstream => "upstream disconnected",
            Self::Idle => "connection timed out (110: Connection timed out)",
        };
        session.log(Level::Info, format_args!("{message}"));
    }
}

/// A call has failed, which ends a relay so.
pub(super) fn failed(session: &Session, call: &str, error: &io::Error, end: End) -> End {
    let errno = Errno(error);
    session.log(Level::Info, format_args!("{call} failed {errno}"));
    end
}

/// Something has come of a server.
pub(super) fn note_first_byte(one: &Try, picked: &Picked, now_ms: u64) {
    if one.note_first_byte(now_ms) {
        picked.header_received(now_ms);
    }
}

/// How the next bytes of a direction are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Buffer,
    /// The last bytes came in bulk.
    Pipe,
}

/// One direction of a relay.
struct Direction<'a> {
    from: RelayEnd<'a>,
    to: RelayEnd<'a>,
    limit: DirectionLimit,
    /// Bytes received of the one, and sent to the other.
    received: &'a Cell<u64>,
    sent: &'a Cell<u64>,
    /// What it means that the one has ended, and that the other has.
    ends: [End; 2],
}

impl<'a> Relay<'a> {
    pub(super) fn new(
        passing: &'a Passing,
        (session, one): (&'a Session, &'a Try),
        client: &'a Connected,
        (picked, connection): (&'a Picked, &'a Connection),
        [upload, download]: [DirectionLimit; 2],
    ) -> Self {
        Self {
            passing,
            session,
            client,
            connection,
            picked,
            one,
            upload,
            download,
            activity: Activity::new(session.lane.clock.clone(), passing.idle_timeout_ms),
            ended: Cell::new(0),
        }
    }

    /// Passes bytes on until the session ends; `first` was read from the client already.
    pub(super) async fn run(&self, first: Vec<u8>) {
        let up = Direction {
            from: self.client.relay_end(),
            to: self.connection.relay_end(),
            limit: self.upload,
            received: &self.session.bytes_received,
            sent: &self.one.bytes_sent,
            ends: [End::Client, End::Upstream],
        };
        let down = Direction {
            from: self.connection.relay_end(),
            to: self.client.relay_end(),
            limit: self.download,
            received: &self.one.bytes_received,
            sent: &self.session.bytes_sent,
            ends: [End::Upstream, End::Client],
        };
        let end = tokio::select! {
            biased;
            end = first_of(self.pass(&down, Vec::new()), self.pass(&up, first)) => end,
            () = self.activity.idle() => End::Idle,
        };
        end.log(self.session);
    }

    /// Passes the bytes of one direction on; what is in the buffer was received before.
    async fn pass(&self, direction: &Direction<'_>, mut buffer: Vec<u8>) -> End {
        let Direction {
            from, to, limit, ..
        } = direction;
        let [from_end, to_end] = direction.ends;
        let mut carrier = Carrier::Buffer;
        loop {
            let mut rest = buffer.as_slice();
            while !rest.is_empty() {
                match to.write(rest).await {
                    Ok(sent) => {
                        rest = &rest[sent..];
                        self.note(direction.sent, sent);
                    }
                    Err(error) => return self.failed("send()", &error, to_end),
                }
            }
            buffer.clear();
            if carrier == Carrier::Pipe {
                match self.move_bytes(direction).await {
                    Ok(next) => carrier = next,
                    Err(error) => return self.failed("send()", &error, to_end),
                }
                continue;
            }
            let clock = &self.session.lane.clock;
            let received = direction.received.get();
            let room_max = self.passing.buffer_bytes;
            let room = limit.next_room(clock, received, room_max).await;
            match from.read(&mut buffer, room).await {
                Ok(0) if self.passing.half_close => {
                    if to.shutdown_write().is_err() {
                        return to_end;
                    }
                    return self.ended(from_end).await;
                }
                Ok(0) => return from_end,
                Ok(count) => {
                    self.bytes_arrived(direction, count);
                    let is_bulk = count == room && limit.bytes_per_second == 0;
                    if is_bulk && from.is_plain() && to.is_plain() {
                        carrier = Carrier::Pipe;
                    }
                    pause(limit.pause_ms(count)).await;
                }
                Err(error) => return self.failed("recv()", &error, from_end),
            }
        }
    }

    /// Waits for bytes and moves them through a pipe, which the session has until they are sent.
    /// What else a socket has to say, its next read shows. The error is that of sending.
    async fn move_bytes(&self, direction: &Direction<'_>) -> io::Result<Carrier> {
        if direction.from.readable().await.is_err() {
            return Ok(Carrier::Buffer);
        }
        let Some(lent) = self.session.lane.pipes.lend() else {
            return Ok(Carrier::Buffer);
        };
        let (mut left, next) = match direction.from.try_fill(&lent.pipe, pipes::BYTES_MAX) {
            Ok(count) if count < BULK_BYTES_MIN => (count, Carrier::Buffer),
            Ok(count) => (count, Carrier::Pipe),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (0, Carrier::Pipe),
            Err(_) => (0, Carrier::Buffer),
        };
        if left > 0 {
            self.bytes_arrived(direction, left);
        }
        while left > 0 {
            let sent = direction.to.drain(&lent.pipe, left).await?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left -= sent;
            self.note(direction.sent, sent);
        }
        lent.give_back();
        Ok(next)
    }

    /// One direction has ended, and the other goes on; the second one ends the session.
    async fn ended(&self, end: End) -> End {
        self.activity.note();
        self.ended.set(self.ended.get() + 1);
        match self.ended.get() {
            1 => std::future::pending().await,
            _ => end,
        }
    }

    fn failed(&self, call: &str, error: &io::Error, end: End) -> End {
        failed(self.session, call, error, end)
    }

    /// Bytes have come.
    fn bytes_arrived(&self, direction: &Direction<'_>, count: usize) {
        self.note(direction.received, count);
        if direction.ends[0] == End::Upstream {
            note_first_byte(self.one, self.picked, self.session.lane.clock.now_ms());
        }
    }

    fn note(&self, counter: &Cell<u64>, count: usize) {
        self.activity.note();
        counter.set(counter.get() + count as u64);
    }
}
