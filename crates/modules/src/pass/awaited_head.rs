//! The short way: a request that fits into a connection is written in the turn, and the lane's own
//! event loop reports the answer, and before that the end of connecting. There is no task or timer.
//!
//! Whatever does not fit (a server that breaks, an answer that asks for another server, a body
//! that has not come whole) goes on as a future, from where it is.

use std::io;

use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::phase::{Awaiting, Verdict, Waiting};
use turnpike_http::regex::Settled;
use turnpike_lane::event_loop::WatchedSocket;
use turnpike_upstream::ConnectError;

use super::attempt::{Attempt, Pending, Step};
use super::awaited_body;
use super::conditions::Failure;
use super::head::{ReceivedHead, received};
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
    /// Whether the last read has emptied the socket.
    emptied: bool,
}

/// How far reading a head is.
enum HeadRead {
    /// More has to come.
    Incomplete,
    /// A future goes on: hints are to be sent, or this turn is over.
    GoesOn,
    Whole,
}

impl SentRequest {
    fn new(attempt: Attempt, server: UpstreamConnection) -> Self {
        Self {
            attempt,
            server,
            emptied: false,
        }
    }
}

/// Writes the request. Where all of it leaves at once, its answer is awaited; where connecting is
/// under way, its end is.
pub(crate) fn begin(
    exchange: &mut Exchange,
    mut attempt: Attempt,
    server: UpstreamConnection,
) -> Verdict {
    let written = attempt.write_request(exchange, &server.connection);
    if !matches!(exchange.settle_matching(), Settled::Decided) {
        let step = match server.connection.is_connecting() {
            true => Step::Connecting(server),
            false => Step::Write(server),
        };
        return wait(attempt, step);
    }
    if written.is_err() {
        return wait(attempt, server.stopped(Stop::Verdict(Verdict::Status(500))));
    }
    match send(exchange, attempt, server) {
        Ok(sent) => sent.await_answer(exchange),
        Err(verdict) => verdict,
    }
}

/// Sends the request that is written; a server that is not connected yet is to be awaited before.
///
/// # Errors
/// What to do where the lane's loop cannot wait for the server.
fn send(
    exchange: &mut Exchange,
    mut attempt: Attempt,
    mut server: UpstreamConnection,
) -> Result<SentRequest, Verdict> {
    let was_connecting = server.connection.is_connecting();
    exchange.account.set_action(match was_connecting {
        true => Action::ConnectingUpstream,
        false => Action::SendingUpstream,
    });
    match attempt.upload.try_send(exchange, &server.connection) {
        Ok(sent) => attempt.sent = sent > 0,
        Err(UploadError::Upstream(error)) if was_connecting => {
            let stop = not_connected(exchange, &ConnectError::Connect(error));
            return Err(wait(attempt, Step::Stopped(None, server.picked, stop)));
        }
        Err(error) => {
            let stop = attempt.not_sent(exchange, &server, error);
            return Err(wait(attempt, server.stopped(stop)));
        }
    }
    let is_connecting = server.connection.is_connecting();
    if was_connecting && !is_connecting {
        connected(exchange);
        exchange.account.set_action(Action::SendingUpstream);
    }
    let watched_sockets = exchange.lane.watched_sockets.get();
    let awaited = (is_connecting || attempt.upload.is_done(exchange))
        && server.connection.is_plain()
        && watched_sockets
            .is_some_and(|watched_sockets| server.connection.watch(watched_sockets).is_ok());
    match (is_connecting, awaited) {
        (true, true) => return Ok(SentRequest::new(attempt, server)),
        (true, false) => return Err(wait(attempt, Step::Connecting(server))),
        (false, true) => {}
        (false, false) => return Err(wait(attempt, Step::Send(server))),
    }
    match attempt.await_head(exchange) {
        Ok(_) => Ok(SentRequest::new(attempt, server)),
        Err(stop) => Err(wait(attempt, server.stopped(stop))),
    }
}

fn wait(attempt: Attempt, step: Step) -> Verdict {
    Verdict::Wait(Box::new(Pending { attempt, step }))
}

impl AwaitedHead {
    fn sent(&self) -> &SentRequest {
        match &self.0 {
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

    fn recycle(mut self: Box<Self>, exchange: &mut Exchange) -> SentRequest {
        let sent = self.take();
        exchange.rooms.keep_spare(self);
        sent
    }
}

impl SentRequest {
    fn await_answer(self, exchange: &mut Exchange) -> Verdict {
        let mut awaited: Box<AwaitedHead> = exchange.rooms.take_spare();
        awaited.0 = Some(self);
        Verdict::Await(awaited)
    }

    /// Goes on as a future.
    fn stopped(self, stop: Stop) -> Verdict {
        wait(self.attempt, self.server.stopped(stop))
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
            self.emptied = matches!(read, Ok(received) if received < room);
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
        match server.connection.is_connecting() {
            true => attempt.connect_deadline_ms(&server.connection),
            false => attempt.head_deadline_ms,
        }
    }

    fn needs_client(&self) -> bool {
        self.sent().attempt.needs_client()
    }

    fn ready(self: Box<Self>, exchange: &mut Exchange) -> Verdict {
        let mut sent = self.recycle(exchange);
        if sent.server.connection.is_connecting() {
            sent = match send(exchange, sent.attempt, sent.server) {
                Ok(sent) => sent,
                Err(verdict) => return verdict,
            };
            if sent.server.connection.is_connecting() {
                return sent.await_answer(exchange);
            }
            // The event may also have said that the server spoke first, which no other one repeats.
        }
        match sent.read(exchange) {
            Ok(HeadRead::Incomplete) => return sent.await_answer(exchange),
            Ok(HeadRead::GoesOn) => return wait(sent.attempt, Step::Send(sent.server)),
            Ok(HeadRead::Whole) => {}
            Err(stop) => return sent.stopped(stop),
        }
        let emptied = sent.emptied;
        match sent.attempt.judge(exchange) {
            None => match sent.attempt.answered(exchange, sent.server) {
                Ok(answer) => awaited_body::begin(exchange, answer, emptied),
                Err(verdict) => verdict,
            },
            Some(failure) => sent.stopped(Stop::Failed(failure)),
        }
    }

    fn timed_out(self: Box<Self>, exchange: &mut Exchange) -> Verdict {
        let sent = self.recycle(exchange);
        if sent.server.connection.is_connecting() {
            let stop = not_connected(exchange, &ConnectError::TimedOut);
            return wait(sent.attempt, Step::Stopped(None, sent.server.picked, stop));
        }
        sent.stopped(Stop::Failed(Failure::Timeout))
    }

    fn abandoned(self: Box<Self>, exchange: &mut Exchange) {
        client_went_away(exchange);
        end_try(exchange, Some(&self.sent().server.connection));
    }

    fn into_waiting(mut self: Box<Self>) -> Box<dyn Waiting> {
        let SentRequest {
            attempt, server, ..
        } = self.take();
        let step = match server.connection.is_connecting() {
            true => Step::Connecting(server),
            false => Step::Send(server),
        };
        Box::new(Pending { attempt, step })
    }
}
