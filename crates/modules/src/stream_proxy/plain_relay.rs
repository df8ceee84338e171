//! Bytes of a session both ways, without a future: what a socket has is sent to the other one in
//! the same step. A direction whose receiver is full is not read, so at most one buffer or pipe of
//! each waits.

use std::io;
use std::mem;

use turnpike_lane::pipes::{self, Lent};
use turnpike_lane::sys::epoll::Event;
use turnpike_stream::relay_socket::RelaySocket;
use turnpike_stream::session::Session;
use turnpike_stream::watch::{SocketOf, Watch};
use turnpike_upstream::Picked;

use super::plan::Passing;
use super::relay::{BULK_BYTES_MIN, End, failed, note_first_byte};

/// Bytes of a direction that are passed on in a step: more would keep other sessions waiting.
const BYTES_PER_STEP_MAX: usize = 1024 * 1024;

/// One direction.
#[derive(Default)]
struct RelayHalf {
    rest: Rest,
    /// The last bytes came in bulk: the next go through a pipe.
    is_bulk: bool,
    has_ended: bool,
}

/// What was received and is not sent yet.
#[derive(Default)]
enum Rest {
    #[default]
    Nothing,
    /// These bytes from that place on.
    Bytes(Vec<u8>, usize),
    /// So many bytes in a pipe.
    Pipe(Lent, usize),
}

/// The two ends, and what is between them.
pub(super) struct PlainRelay {
    /// The client's, the server's.
    sockets: [RelaySocket; 2],
    /// By the socket that is read.
    ways: [RelayHalf; 2],
    /// When something moved last.
    last_ms: u64,
}

fn other(of: SocketOf) -> SocketOf {
    match of {
        SocketOf::Client => SocketOf::Server,
        SocketOf::Server => SocketOf::Client,
    }
}

fn end_of(of: SocketOf) -> End {
    match of {
        SocketOf::Client => End::Client,
        SocketOf::Server => End::Upstream,
    }
}

/// What a relay is for.
pub(super) struct Passed<'a> {
    pub(super) passing: &'a Passing,
    pub(super) session: &'a Session,
    pub(super) picked: &'a Picked,
    pub(super) watch: &'a Watch<'a>,
}

impl PlainRelay {
    /// A relay between two sockets; `first` is to be sent to the server before all else.
    pub(super) fn new(sockets: [RelaySocket; 2], first: Vec<u8>, now_ms: u64) -> Self {
        let mut ways = <[RelayHalf; 2]>::default();
        if !first.is_empty() {
            ways[SocketOf::Client as usize].rest = Rest::Bytes(first, 0);
        }
        Self {
            sockets,
            ways,
            last_ms: now_ms,
        }
    }

    /// When something moved last, in the lane's monotonic milliseconds.
    pub(super) fn last_ms(&self) -> u64 {
        self.last_ms
    }

    /// The client's socket; the server's is closed.
    pub(super) fn into_client(self) -> RelaySocket {
        let [client, _] = self.sockets;
        client
    }

    /// Passes on what has come before the sockets were watched. The error is the relay's end.
    pub(super) fn begin(&mut self, passed: &Passed<'_>) -> Result<(), End> {
        self.pass(passed, SocketOf::Client)?;
        self.pass(passed, SocketOf::Server)?;
        let mut watched = self
            .sockets
            .iter_mut()
            .map(|socket| socket.watch_input(passed.watch));
        let watched = watched.try_for_each(|watched| watched);
        watched.map_err(|error| failed(passed.session, "epoll_ctl()", &error, End::Client))
    }

    /// A socket has an event. The error is the relay's end.
    pub(super) fn ready(
        &mut self,
        passed: &Passed<'_>,
        of: SocketOf,
        event: Event,
    ) -> Result<(), End> {
        self.sockets[of as usize].note(event);
        let has_rest = !matches!(self.ways[other(of) as usize].rest, Rest::Nothing);
        if event.is_writable() && has_rest {
            self.pass(passed, other(of))?;
        }
        self.pass(passed, of)
    }

    /// Passes the bytes of one direction on, as far as there are any and they are taken.
    fn pass(&mut self, passed: &Passed<'_>, from: SocketOf) -> Result<(), End> {
        let mut moved = 0;
        loop {
            if !self.send_rest(passed, from)? {
                let socket = &mut self.sockets[other(from) as usize];
                let watched = socket.watch_space(passed.watch);
                return watched
                    .map_err(|error| failed(passed.session, "epoll_ctl()", &error, end_of(from)));
            }
            let way = &self.ways[from as usize];
            if way.has_ended || !self.sockets[from as usize].is_readable() {
                return Ok(());
            }
            if moved >= BYTES_PER_STEP_MAX {
                let watched = self.sockets[from as usize].watch_again(passed.watch);
                return watched
                    .map_err(|error| failed(passed.session, "epoll_ctl()", &error, end_of(from)));
            }
            moved += if way.is_bulk {
                self.move_bytes(passed, from)
            } else {
                self.copy_bytes(passed, from)?
            };
        }
    }

    /// Sends what is left of a direction; `false`: its receiver is full.
    fn send_rest(&mut self, passed: &Passed<'_>, from: SocketOf) -> Result<bool, End> {
        let to = &mut self.sockets[other(from) as usize];
        let way = &mut self.ways[from as usize];
        loop {
            let (sent, is_done) = match &mut way.rest {
                Rest::Nothing => return Ok(true),
                Rest::Bytes(bytes, begin) => match to.send(&bytes[*begin..]) {
                    Ok(0) => return Ok(false),
                    Ok(sent) => {
                        *begin += sent;
                        (sent, *begin == bytes.len())
                    }
                    Err(error) => return Err(send_failed(passed, from, &error)),
                },
                Rest::Pipe(lent, left) => match to.drain(&lent.pipe, *left) {
                    Ok(0) => return Ok(false),
                    Ok(sent) => {
                        *left -= sent;
                        (sent, *left == 0)
                    }
                    Err(error) => return Err(send_failed(passed, from, &error)),
                },
            };
            self.last_ms = passed.session.lane.clock.now_ms();
            count_sent(passed.session, from, sent);
            if is_done && let Rest::Pipe(lent, _) = mem::take(&mut way.rest) {
                lent.give_back();
            }
        }
    }

    /// Receives into the lane's buffer and sends that; what is not taken is kept.
    fn copy_bytes(&mut self, passed: &Passed<'_>, from: SocketOf) -> Result<usize, End> {
        let room = passed.passing.buffer_bytes;
        let mut buffer = passed.session.lane.buffer();
        let source = &mut self.sockets[from as usize];
        let count = match source.receive(&mut buffer, room) {
            Ok(0) => {
                drop(buffer);
                return self.ended(passed, from).map(|()| 0);
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(failed(passed.session, "recv()", &error, end_of(from))),
        };
        self.bytes_arrived(passed, from, count);
        let sent = self.sockets[other(from) as usize].send(&buffer);
        let sent = sent.map_err(|error| send_failed(passed, from, &error))?;
        count_sent(passed.session, from, sent);
        let way = &mut self.ways[from as usize];
        way.is_bulk = count == room;
        if sent < count {
            way.rest = Rest::Bytes(buffer[sent..].to_vec(), 0);
        }
        Ok(count)
    }

    /// Receives into a pipe. What else the socket has to say, its next read shows.
    fn move_bytes(&mut self, passed: &Passed<'_>, from: SocketOf) -> usize {
        let source = &mut self.sockets[from as usize];
        let way = &mut self.ways[from as usize];
        let Some(lent) = passed.session.lane.pipes.lend() else {
            way.is_bulk = false;
            return 0;
        };
        match source.fill(&lent.pipe, pipes::BYTES_MAX) {
            Ok(count) if count > 0 => {
                way.is_bulk = count >= BULK_BYTES_MIN;
                way.rest = Rest::Pipe(lent, count);
                self.bytes_arrived(passed, from, count);
                return count;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => way.is_bulk = false,
        }
        lent.give_back();
        0
    }

    /// One socket has sent its last; everything of it was passed on.
    fn ended(&mut self, passed: &Passed<'_>, from: SocketOf) -> Result<(), End> {
        if !passed.passing.half_close {
            return Err(end_of(from));
        }
        if self.sockets[other(from) as usize].shutdown_write().is_err() {
            return Err(end_of(other(from)));
        }
        self.last_ms = passed.session.lane.clock.now_ms();
        self.ways[from as usize].has_ended = true;
        if self.ways.iter().all(|way| way.has_ended) {
            Err(end_of(from))
        } else {
            Ok(())
        }
    }

    fn bytes_arrived(&mut self, passed: &Passed<'_>, from: SocketOf, count: usize) {
        let session = passed.session;
        self.last_ms = session.lane.clock.now_ms();
        let (received, one) = (&session.bytes_received, session.tries.last());
        match (from, one) {
            (SocketOf::Client, _) => received.set(received.get() + count as u64),
            (SocketOf::Server, Some(one)) => {
                let received = &one.bytes_received;
                received.set(received.get() + count as u64);
                note_first_byte(one, passed.picked, self.last_ms);
            }
            (SocketOf::Server, None) => {}
        }
    }
}

/// Bytes that came from there were sent to the other end.
fn count_sent(session: &Session, from: SocketOf, sent: usize) {
    let counter = match (from, session.tries.last()) {
        (SocketOf::Client, Some(one)) => &one.bytes_sent,
        (SocketOf::Client, None) => return,
        (SocketOf::Server, _) => &session.bytes_sent,
    };
    counter.set(counter.get() + sent as u64);
}

fn send_failed(passed: &Passed<'_>, from: SocketOf, error: &io::Error) -> End {
    failed(passed.session, "send()", error, end_of(other(from)))
}
