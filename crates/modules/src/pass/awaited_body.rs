//! The short way of a body: one that the buffers can hold is received behind its head without a
//! task, and leaves together with our head. Its length is known, or it is in chunks that follow
//! each other at once.
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
//! relay from the beginning. So is a chunked body as soon as its sender pauses between two chunks:
//! it may have meant what it has sent for now.

use std::io;

use turnpike_http::client::Client;
use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::h1::origin::BodyReader;
use turnpike_http::phase::{Awaiting, Verdict, Waiting, Work};
use turnpike_lane::event_loop::WatchedSocket;
use turnpike_wire::message::BodyEnd;

use super::relay::{self, Answer, Cut};
use super::response;
use super::try_notes::{client_went_away, end_try};

/// How long a client may wait for what has come of a body because the rest has not, in
/// milliseconds: the parts of a response that is ready follow each other much faster.
const HELD_MS_MAX: u64 = 100;

/// Bytes asked for beyond the end of a body, so that a server that sends more is noticed.
const SURPLUS_BYTES: usize = 1024;

/// Bytes of a chunk for which the buffer that they came in is worth keeping in place of a copy.
const MOVED_BYTES_MIN: usize = 1024;

/// A body that is awaited. Its exchange keeps the box for its next request.
#[derive(Default)]
struct AwaitedBody(Option<Arriving>);

struct Arriving {
    answer: Answer,
    body: Expected,
    /// When what has come is passed on, in the lane's monotonic milliseconds.
    deadline_ms: u64,
    needs_client: bool,
}

/// What is to come.
enum Expected {
    /// So many bytes in all, which are left in the exchange's input.
    Bytes(usize),
    /// Chunks. What was taken of them stands in the response's text.
    Chunks(BodyReader),
}

/// How far the chunks are.
enum Chunks {
    Whole,
    /// The sender is within a chunk.
    Inside,
    /// The sender has paused, or has sent more than the buffers hold.
    Paused,
    Malformed,
}

/// Makes the body of the exchange's response, once all of it is here where that is soon. `emptied`:
/// the read that has brought the end of the head has emptied the socket.
pub(crate) fn begin(exchange: &mut Exchange, answer: Answer, emptied: bool) -> Verdict {
    let Some(body) = expected(exchange, &answer) else {
        return relay::begin(exchange, answer);
    };
    let timeout_ms = match answer.passing.timeouts.read_ms {
        0 => HELD_MS_MAX,
        read_ms => read_ms.min(HELD_MS_MAX),
    };
    let arriving = Arriving {
        body,
        deadline_ms: exchange.lane.clock.now_ms() + timeout_ms,
        needs_client: !answer.passing.ignores_client_abort,
        answer,
    };
    arriving.go_on(exchange, emptied)
}

/// What is to come of a body that may be awaited: it fits into the buffers as far as that is known,
/// and nobody is to see it on its way.
fn expected(exchange: &Exchange, answer: &Answer) -> Option<Expected> {
    let Answer {
        passing, server, ..
    } = answer;
    let body = match server.delivery.end {
        BodyEnd::Length(length) => {
            let length = usize::try_from(length).ok()?;
            let input_bytes = exchange.upstream.input().len();
            let fits = (input_bytes + 1..=passing.buffers.all_bytes).contains(&length);
            fits.then_some(Expected::Bytes(length))?
        }
        BodyEnd::Marked if exchange.response.content_length().is_none() => {
            let reader = BodyReader::new(BodyEnd::Marked, exchange.strictness());
            Expected::Chunks(reader)
        }
        _ => return None,
    };
    let awaited = answer.records.is_none()
        && answer.recorder.is_none()
        && server.delivery.coding.is_none()
        && passing.limit_rate.is_none()
        && answer.upload.is_done(exchange)
        && server.connection.watched_socket().is_some()
        && response::reads_ahead(exchange, passing);
    awaited.then_some(body)
}

impl Arriving {
    fn go_on(self, exchange: &mut Exchange, emptied: bool) -> Verdict {
        exchange.account.set_action(Action::ReadingUpstream);
        match self.body {
            Expected::Bytes(length) => self.read_bytes(exchange, length, emptied),
            Expected::Chunks(_) => self.read_chunks(exchange, emptied),
        }
    }

    /// Reads until all is here, or more has to come. `emptied`: nothing is there to be read yet.
    fn read_bytes(self, exchange: &mut Exchange, length: usize, mut emptied: bool) -> Verdict {
        let connection = &self.answer.server.connection;
        loop {
            let input = exchange.upstream.input_mut();
            let from = input.len();
            let Some(missing) = length.checked_sub(from).filter(|bytes| *bytes > 0) else {
                return relay::begin(exchange, self.answer);
            };
            if emptied && !self.is_ending() {
                return self.await_rest(exchange);
            }
            let room = missing + SURPLUS_BYTES;
            match connection.try_read(input.room(), room) {
                Ok(received @ 1..) => emptied = received < room,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.await_rest(exchange);
                }
                read => return relay::go_on(exchange, self.answer, None, Cut::Read(read)),
            }
        }
    }

    /// The same for chunks, which are taken off as they come.
    fn read_chunks(mut self, exchange: &mut Exchange, mut emptied: bool) -> Verdict {
        let all_bytes = self.answer.passing.buffers.all_bytes;
        loop {
            let Expected::Chunks(reader) = &mut self.body else {
                unreachable!("the caller has looked");
            };
            let taken = take_chunks(exchange, reader);
            let room = all_bytes.saturating_sub(exchange.response.text().len());
            let cut = match taken {
                Chunks::Whole => return self.whole(exchange),
                Chunks::Malformed => Cut::Malformed,
                Chunks::Inside if room > 0 => {
                    if emptied && !self.is_ending() {
                        return self.await_rest(exchange);
                    }
                    let room = room + SURPLUS_BYTES;
                    let connection = &self.answer.server.connection;
                    match connection.try_read(exchange.upstream.input_mut().room(), room) {
                        Ok(received @ 1..) => {
                            emptied = received < room;
                            continue;
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            return self.await_rest(exchange);
                        }
                        read => Cut::Read(read),
                    }
                }
                Chunks::Inside | Chunks::Paused => Cut::Held,
            };
            return self.relay_on(exchange, cut);
        }
    }

    fn whole(self, exchange: &mut Exchange) -> Verdict {
        match self.body {
            Expected::Bytes(_) => relay::begin(exchange, self.answer),
            Expected::Chunks(reader) => relay::whole_chunks(exchange, self.answer, &reader),
        }
    }

    /// What has come is passed on, and the rest as it comes.
    fn relay_on(self, exchange: &mut Exchange, cut: Cut) -> Verdict {
        let reader = match self.body {
            Expected::Bytes(_) => None,
            Expected::Chunks(reader) => Some(reader),
        };
        relay::go_on(exchange, self.answer, reader, cut)
    }

    /// Whether the end of the stream may have been reported together with the last bytes.
    fn is_ending(&self) -> bool {
        let watched_socket = self.answer.server.connection.watched_socket();
        watched_socket.is_none_or(WatchedSocket::is_closed)
    }

    fn await_rest(self, exchange: &mut Exchange) -> Verdict {
        let mut awaited: Box<AwaitedBody> = exchange.rooms.take_spare();
        awaited.0 = Some(self);
        Verdict::Await(awaited)
    }
}

/// Takes the chunks off what has come, and puts what is in them into the response's text.
fn take_chunks(exchange: &mut Exchange, reader: &mut BodyReader) -> Chunks {
    let mut input = std::mem::take(exchange.upstream.input_mut());
    let mut at = 0;
    let taken = loop {
        let piece = match reader.read(input.get(at..).unwrap_or_default()) {
            Ok(piece) => piece,
            Err(_) => break Chunks::Malformed,
        };
        let (length, taken_bytes, is_last) = (piece.data.len(), piece.taken_bytes, piece.is_last);
        let text = exchange.response.received_mut();
        let piece_start = piece.data_start;
        let start = at + piece_start;
        let left_bytes = input.len() - (start + length);
        if text.is_empty() && length >= MOVED_BYTES_MIN && left_bytes <= length {
            // The buffer becomes the text as it stands.
            std::mem::swap(text, &mut input);
            text.cut(start..start + length, &mut input);
            at = taken_bytes - (piece_start + length);
        } else {
            text.room().extend_from_slice(piece.data);
            at += taken_bytes;
        }
        if let Some(one) = exchange.upstream.last_try() {
            one.response_bytes += length as u64;
        }
        if is_last {
            break Chunks::Whole;
        }
        if taken_bytes == 0 {
            break match reader.is_inside_chunk() {
                true => Chunks::Inside,
                false => Chunks::Paused,
            };
        }
    };
    let rest = exchange.upstream.input_mut();
    *rest = input;
    // What is left is behind the body.
    rest.skip(at);
    taken
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
        arriving.go_on(exchange, false)
    }

    fn timed_out(mut self: Box<Self>, exchange: &mut Exchange) -> Verdict {
        let arriving = self.take();
        exchange.rooms.keep_spare(self);
        arriving.relay_on(exchange, Cut::Held)
    }

    fn abandoned(self: Box<Self>, exchange: &mut Exchange) {
        client_went_away(exchange);
        end_try(exchange, Some(&self.arriving().answer.server.connection));
    }

    fn into_waiting(mut self: Box<Self>) -> Box<dyn Waiting> {
        Box::new(Relayed(self.take()))
    }
}

/// A body that is relayed after all.
struct Relayed(Arriving);

impl Work for Relayed {
    async fn run(self, exchange: &mut Exchange, _client: Client<'_>) -> Verdict {
        self.0.relay_on(exchange, Cut::Held)
    }
}
