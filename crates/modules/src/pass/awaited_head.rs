//! The short way: a request that fits into a connection is written in the turn, and the lane's own
//! event loop reports the answer, and before that the end of connecting. There is no task or timer.
//!
//! A request for which this is not enough (a server that breaks, an answer that asks for another
//! server, a body that has not come whole) goes on as a future, from where it is.

use std::io;

use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::phase::{Awaiting, Verdict, Waiting};
use turnpike_http::regex::Settled;
use turnpike_http::rooms::Rooms;
use turnpike_lane::event_loop::WatchedSocket;
use turnpike_upstream::ConnectError;

use super::attempt::{Attempt, Pending, Step};
use super::awaited_body::{self, InSocket};
use super::conditions::Failure;
use super::head::{ReceivedHead, received};
use super::origin::Unwritable;
use super::server::{Stop, UpstreamConnection};
use super::try_notes::{client_went_away, connected, end_try, not_connected};
use super::upload::UploadError;

/// Reads of one answer in a turn: a server may send without end what is no part of a head (the
/// error stream of FastCGI), and the lane's other connections have to come in between.
pub(super) const READS_PER_TURN_MAX: usize = 16;

/// A request whose answer, or whose server's connection, is awaited. Its exchange keeps the box for
/// its next request.
#[derive(Default)]
struct AwaitedHead(Option<SentRequest>);

struct SentRequest {
    attempt: Attempt,
    server: UpstreamConnection,
    in_socket: InSocket,
}

/// How far reading a head is.
enum HeadRead {
    /// More has to come.
    Incomplete,
    /// A future goes on: hints are to be sent, or this turn is over.
    GoesOn,
    Whole,
}

/// Why the lane's loop cannot wait for a server, and how a future goes on.
enum Unawaited {
    /// No connection was made.
    NotConnected(Stop),
    /// The try is over.
    Stopped(Stop),
    /// Connecting goes on.
    Connecting,
    /// The request is to be written.
    Write,
    /// The request is sent so far.
    Send,
}

/// Writes the request. Where all of it leaves at once, its answer is awaited; where connecting is
/// under way, its end is.
pub(crate) fn begin(
    exchange: &mut Exchange,
    attempt: Attempt,
    server: UpstreamConnection,
) -> Verdict {
    let mut awaited: Box<AwaitedHead> = exchange.rooms.take_spare();
    // From here on it stays in its box: it is large, and moving it costs copies.
    let sent = awaited.0.insert(SentRequest {
        attempt,
        server,
        in_socket: InSocket::PerhapsMore,
    });
    let begun = sent.write(exchange).and_then(|()| sent.send(exchange));
    match begun {
        Ok(()) => Verdict::Await(awaited),
        Err(unawaited) => awaited.recycle(&mut exchange.rooms).go_on(unawaited),
    }
}

impl AwaitedHead {
    fn sent(&self) -> &SentRequest {
        match &self.0 {
            Some(sent) => sent,
            None => unreachable!("it is empty only while its exchange keeps it"),
        }
    }

    fn sent_mut(&mut self) -> &mut SentRequest {
        match &mut self.0 {
            Some(sent) => sent,
            None => unreachable!("it is empty only while its exchange keeps it"),
        }
    }

    fn take(&mut self) -> SentRequest {
        match self.0.take() {
            Some(sent) => sent,
            None => unreachable!("it is taken once"),
        }
    }

    fn recycle(mut self: Box<Self>, rooms: &mut Rooms) -> SentRequest {
        let sent = self.take();
        rooms.keep_spare(self, 0);
        sent
    }
}

impl SentRequest {
    /// Writes the request.
    ///
    /// # Errors
    /// How it goes on where it cannot be written now.
    fn write(&mut self, exchange: &mut Exchange) -> Result<(), Unawaited> {
        let connection = &self.server.connection;
        let written = self.attempt.write_request(exchange, connection);
        if !matches!(exchange.settle_matching(), Settled::Decided) {
            return Err(if connection.is_connecting() {
                Unawaited::Connecting
            } else {
                Unawaited::Write
            });
        }
        written.map_err(|Unwritable| Unawaited::Stopped(Stop::Verdict(Verdict::Status(500))))
    }

    /// Sends the request that is written; a server that is not connected yet is to be awaited
    /// before.
    ///
    /// # Errors
    /// What to do where the lane's loop cannot wait for the server.
    fn send(&mut self, exchange: &mut Exchange) -> Result<(), Unawaited> {
        let (attempt, connection) = (&mut self.attempt, &mut self.server.connection);
        let was_connecting = connection.is_connecting();
        exchange.account.set_action(if was_connecting {
            Action::ConnectingUpstream
        } else {
            Action::SendingUpstream
        });
        match attempt.upload.try_send(exchange, connection) {
            Ok(sent) => attempt.sent = sent > 0,
            Err(UploadError::Upstream(error)) if was_connecting => {
                let stop = not_connected(exchange, &ConnectError::Connect(error));
                return Err(Unawaited::NotConnected(stop));
            }
            Err(error) => {
                let stop = attempt.not_sent(exchange, &self.server, error);
                return Err(Unawaited::Stopped(stop));
            }
        }
        let is_connecting = connection.is_connecting();
        if was_connecting && !is_connecting {
            connected(&mut exchange.upstream, &exchange.lane);
            exchange.account.set_action(Action::SendingUpstream);
        }
        let watched_sockets = exchange.lane.watched_sockets.get();
        let awaited = (is_connecting || attempt.upload.is_done(exchange))
            && connection.is_plain()
            && watched_sockets
                .is_some_and(|watched_sockets| connection.watch(watched_sockets).is_ok());
        match (is_connecting, awaited) {
            (true, true) => return Ok(()),
            (true, false) => return Err(Unawaited::Connecting),
            (false, true) => {}
            (false, false) => return Err(Unawaited::Send),
        }
        attempt.await_head(exchange).map_err(Unawaited::Stopped)?;
        Ok(())
    }

    /// Goes on as a future.
    fn go_on(self, unawaited: Unawaited) -> Verdict {
        let Self {
            attempt, server, ..
        } = self;
        let step = match unawaited {
            Unawaited::NotConnected(stop) => Step::Stopped(None, server.picked, stop),
            Unawaited::Stopped(stop) => server.stopped(stop),
            Unawaited::Connecting => Step::Connecting(server),
            Unawaited::Write => Step::Write(server),
            Unawaited::Send => Step::Send(server),
        };
        Verdict::Wait(Box::new(Pending { attempt, step }))
    }

    /// Reads until the head is whole, more has to come, or others have to have their turn.
    fn read(&mut self, exchange: &mut Exchange) -> Result<HeadRead, Stop> {
        let Attempt {
            passing, progress, ..
        } = &mut self.attempt;
        let buffers = &passing.buffers;
        let mut input = std::mem::take(exchange.upstream.input_mut());
        let mut head = std::mem::take(exchange.upstream.head_mut());
        let mut reads = 0;
        let read = loop {
            if reads == READS_PER_TURN_MAX {
                break Ok(HeadRead::GoesOn);
            }
            reads += 1;
            let from = input.len();
            // A buffer that has grown with a body before takes the next one together with its head.
            let grown_bytes = input.room().capacity().min(buffers.all_bytes);
            let room = buffers.first_bytes.max(grown_bytes);
            let room = room.saturating_sub(from).max(1);
            let read = match self.server.connection.try_read(input.room(), room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    break Ok(HeadRead::Incomplete);
                }
                read => read,
            };
            self.in_socket = match &read {
                Ok(received) => InSocket::after_read(*received, room),
                Err(_) => InSocket::PerhapsMore,
            };
            let step = received(exchange, read)
                .and_then(|()| {
                    progress.take_off(exchange, &self.server.connection, &mut input, from)
                })
                .and_then(|()| progress.read_head(exchange, passing, &mut input, &mut head));
            match step {
                // It is read until nothing is there: the end may have come with this piece, and
                // one event reports both.
                Ok(ReceivedHead::Incomplete) => {}
                Ok(ReceivedHead::Hints) => break Ok(HeadRead::GoesOn),
                Ok(ReceivedHead::Whole) => break Ok(HeadRead::Whole),
                Err(stop) => break Err(stop),
            }
        };
        *exchange.upstream.input_mut() = input;
        *exchange.upstream.head_mut() = head;
        read
    }
}

impl Awaiting for AwaitedHead {
    fn watched_socket(&self) -> &WatchedSocket {
        match self.sent().server.connection.watched_socket() {
            Some(watched_socket) => watched_socket,
            None => unreachable!("the connection is watched before it is awaited"),
        }
    }

    fn deadline_ms(&self) -> u64 {
        let SentRequest {
            attempt, server, ..
        } = self.sent();
        if server.connection.is_connecting() {
            attempt.connect_deadline_ms(&server.connection)
        } else {
            attempt.head_deadline_ms
        }
    }

    fn needs_client(&self) -> bool {
        self.sent().attempt.needs_client()
    }

    fn ready(mut self: Box<Self>, exchange: &mut Exchange) -> Verdict {
        let sent = self.sent_mut();
        if sent.server.connection.is_connecting() {
            if let Err(unawaited) = sent.send(exchange) {
                return self.recycle(&mut exchange.rooms).go_on(unawaited);
            }
            if sent.server.connection.is_connecting() {
                return Verdict::Await(self);
            }
            // The event may also have said that the server spoke first, which no other one repeats.
        }
        let failure = match sent.read(exchange) {
            Ok(HeadRead::Incomplete) => return Verdict::Await(self),
            Ok(HeadRead::GoesOn) => {
                return self.recycle(&mut exchange.rooms).go_on(Unawaited::Send);
            }
            Ok(HeadRead::Whole) => sent.attempt.judge(exchange).map(Stop::Failed),
            Err(stop) => Some(stop),
        };
        let sent = self.recycle(&mut exchange.rooms);
        if let Some(stop) = failure {
            return sent.go_on(Unawaited::Stopped(stop));
        }
        match sent.attempt.answered(exchange, sent.server) {
            Ok(answer) => awaited_body::begin(exchange, answer, sent.in_socket),
            Err(verdict) => verdict,
        }
    }

    fn timed_out(self: Box<Self>, exchange: &mut Exchange) -> Verdict {
        let sent = self.recycle(&mut exchange.rooms);
        let unawaited = if sent.server.connection.is_connecting() {
            Unawaited::NotConnected(not_connected(exchange, &ConnectError::TimedOut))
        } else {
            Unawaited::Stopped(Stop::Failed(Failure::Timeout))
        };
        sent.go_on(unawaited)
    }

    fn abandoned(self: Box<Self>, exchange: &mut Exchange) {
        client_went_away(exchange);
        end_try(
            &mut exchange.upstream,
            &exchange.lane,
            Some(&self.sent().server.connection),
        );
    }

    fn into_waiting(mut self: Box<Self>) -> Box<dyn Waiting> {
        let SentRequest {
            attempt, server, ..
        } = self.take();
        let step = if server.connection.is_connecting() {
            Step::Connecting(server)
        } else {
            Step::Send(server)
        };
        Box::new(Pending { attempt, step })
    }
}
