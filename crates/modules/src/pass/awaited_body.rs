//! The short way of a body: one of known length, which the buffers can hold, is received
//! behind its head without a task, and leaves together with our head.
//!
//! ```text
//!  head ─► all here? ─yes─► the response is whole
//!             │ no
//!             ▼
//!          awaited ──more──► all here? ...
//!             │ too late, broken
//!             ▼
//!          relayed: what has come is sent, and the rest as it comes
//! ```
//!
//! Whoever wants to see the body on its way (a cache, records, a coding, a rate) is served by the
//! relay from the beginning.

use std::io;

use turnpike_http::client::Client;
use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::phase::{Awaiting, Verdict, Waiting, Work};
use turnpike_lane::event_loop::WatchedSocket;
use turnpike_wire::message::BodyEnd;

use super::relay::{self, Answer};
use super::response;
use super::try_notes::{client_went_away, end_try};

/// How long a client may wait for what has come of a body because the rest has not, in
/// milliseconds: the parts of a response that is ready follow each other much faster.
const HELD_MS_MAX: u64 = 100;

/// Bytes asked for beyond the end of a body, so that a server that sends more is noticed.
const SURPLUS_BYTES: usize = 1024;

/// A body that is awaited. Its exchange keeps the box for its next request.
#[derive(Default)]
struct AwaitedBody(Option<Arriving>);

struct Arriving {
    answer: Answer,
    length: usize,
    /// When what has come is passed on, in the lane's monotonic milliseconds.
    deadline_ms: u64,
    needs_client: bool,
}

/// Makes the body of the exchange's response, once all of it is here where that is soon.
pub(crate) fn begin(exchange: &mut Exchange, answer: Answer) -> Verdict {
    let Some(length) = length_of_fitting(exchange, &answer) else {
        return relay::begin(exchange, answer);
    };
    let timeout_ms = match answer.passing.timeouts.read_ms {
        0 => HELD_MS_MAX,
        read_ms => read_ms.min(HELD_MS_MAX),
    };
    // A read that did not fill its room has emptied the socket.
    let first_bytes = answer.passing.buffers.first_bytes as u64;
    let emptied = answer.server.connection.bytes_received() < first_bytes;
    let arriving = Arriving {
        length,
        deadline_ms: exchange.lane.clock.now_ms() + timeout_ms,
        needs_client: !answer.passing.ignores_client_abort,
        answer,
    };
    arriving.read_on(exchange, emptied)
}

/// The length of a body of which not all has come, where it is known, fits into the buffers, and
/// nobody is to see it on its way.
fn length_of_fitting(exchange: &Exchange, answer: &Answer) -> Option<usize> {
    let Answer {
        passing, server, ..
    } = answer;
    let BodyEnd::Length(length) = server.delivery.end else {
        return None;
    };
    let length = usize::try_from(length).ok()?;
    let input_bytes = exchange.upstream.input().len();
    let awaited = (input_bytes + 1..=passing.buffers.all_bytes).contains(&length)
        && answer.records.is_none()
        && answer.recorder.is_none()
        && server.delivery.coding.is_none()
        && passing.limit_rate.is_none()
        && answer.upload.is_done(exchange)
        && server.connection.watched_socket().is_some()
        && response::reads_ahead(exchange, passing);
    awaited.then_some(length)
}

impl Arriving {
    /// Reads until all is here, or more has to come. `emptied`: nothing is there to be read yet.
    fn read_on(self, exchange: &mut Exchange, mut emptied: bool) -> Verdict {
        exchange.account.set_action(Action::ReadingUpstream);
        let connection = &self.answer.server.connection;
        loop {
            let input = exchange.upstream.input_mut();
            let from = input.len();
            let Some(missing) = self.length.checked_sub(from).filter(|bytes| *bytes > 0) else {
                return relay::begin(exchange, self.answer);
            };
            // The end of the stream may have been reported together with the last bytes.
            let closed = connection
                .watched_socket()
                .is_none_or(WatchedSocket::is_closed);
            if emptied && !closed {
                return self.await_rest(exchange);
            }
            let room = missing + SURPLUS_BYTES;
            match connection.try_read(input, room) {
                Ok(received @ 1..) => emptied = received < room,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.await_rest(exchange);
                }
                read => return relay::begin_broken(exchange, self.answer, read),
            }
        }
    }

    fn await_rest(self, exchange: &mut Exchange) -> Verdict {
        let mut awaited: Box<AwaitedBody> = exchange.rooms.take_spare();
        awaited.0 = Some(self);
        Verdict::Await(awaited)
    }
}

impl AwaitedBody {
    fn arriving(&self) -> &Arriving {
        match &self.0 {
            Some(arriving) => arriving,
            None => unreachable!("it is empty only while its exchange keeps it"),
        }
    }

    fn take(&mut self) -> Arriving {
        match self.0.take() {
            Some(arriving) => arriving,
            None => unreachable!("it is taken once"),
        }
    }
}

impl Awaiting for AwaitedBody {
    fn watched_socket(&self) -> &WatchedSocket {
        match self.arriving().answer.server.connection.watched_socket() {
            Some(watched_socket) => watched_socket,
            None => unreachable!("the connection is watched before it is awaited"),
        }
    }

    fn deadline_ms(&self) -> u64 {
        self.arriving().deadline_ms
    }

    fn needs_client(&self) -> bool {
        self.arriving().needs_client
    }

    fn ready(mut self: Box<Self>, exchange: &mut Exchange) -> Verdict {
        let arriving = self.take();
        exchange.rooms.keep_spare(self);
        arriving.read_on(exchange, false)
    }

    fn timed_out(mut self: Box<Self>, exchange: &mut Exchange) -> Verdict {
        let arriving = self.take();
        exchange.rooms.keep_spare(self);
        relay::begin(exchange, arriving.answer)
    }

    fn abandoned(self: Box<Self>, exchange: &mut Exchange) {
        client_went_away(exchange);
        end_try(exchange, Some(&self.arriving().answer.server.connection));
    }

    fn into_waiting(mut self: Box<Self>) -> Box<dyn Waiting> {
        Box::new(Relayed(self.take().answer))
    }
}

/// A body that is relayed after all.
struct Relayed(Answer);

impl Work for Relayed {
    async fn run(self, exchange: &mut Exchange, _client: Client<'_>) -> Verdict {
        relay::begin(exchange, self.0)
    }
}
