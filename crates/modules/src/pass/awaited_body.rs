//! The short way of a body: one that the buffers can hold is received behind its head without a
//! task, and leaves together with our head. Its length is known, or its chunks, records or pieces
//! follow each other at once.
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
//! A body that a cache, a coding or a rate works on is relayed from the beginning. So is a chunked
//! body as soon as its sender pauses between two chunks: it may have meant what it has sent for
//! now. Applications often end their answer a moment later, so that a pause between two records is
//! waited for a little.

use std::io;

use turnpike_http::client::Client;
use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::h1::origin::BodyReader;
use turnpike_http::phase::{Awaiting, Verdict, Waiting, Work};
use turnpike_http::response::Response;
use turnpike_http::rooms::Rooms;
use turnpike_http::upstream::Upstream;
use turnpike_lane::event_loop::WatchedSocket;
use turnpike_upstream::Address;
use turnpike_wire::message::BodyEnd;

use super::awaited_head::READS_PER_TURN_MAX;
use super::head::take_off;
use super::origin::RecordLayer;
use super::relay::{self, Answer, Cut};
use super::try_notes::{client_went_away, end_try};
use super::{http2_connection, response};

/// How long a client may wait for what has come of a body because the rest has not, in
/// milliseconds: the parts of a response that is ready follow each other much faster.
const HELD_MS_MAX: u64 = 100;

/// How long a client may wait for what has come because its sender pauses, in milliseconds: PHP
/// sends the last record when it has cleaned up behind a page, which takes less than one.
const PAUSE_MS_MAX: u64 = 8;

/// Least room for a read of what has no known length: as much as the usual page has.
const OPEN_ROOM_BYTES_MIN: usize = 16 * 1024;

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
    /// When the present wait is over, if that is before.
    pause_ends_ms: Option<u64>,
    /// Whether what comes is acknowledged without delay.
    hastens: bool,
    needs_client: bool,
}

/// What is to come.
enum Expected {
    /// So many bytes in all, which are left in the exchange's input.
    Bytes(usize),
    /// Chunks. What was taken of them stands in the response's text.
    Chunks(BodyReader),
    /// All up to the last record, or to the end of the connection, which is left in the exchange's
    /// input.
    Open,
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

/// What the last read has left in the server's socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InSocket {
    /// Nothing is there to be read yet.
    Nothing,
    PerhapsMore,
}

impl InSocket {
    /// After a read with so much room.
    pub(super) fn after_read(received: usize, room: usize) -> InSocket {
        if received < room {
            InSocket::Nothing
        } else {
            InSocket::PerhapsMore
        }
    }
}

/// Makes the body of the exchange's response, once all of it is here where that is soon.
/// `in_socket`: after the read that has brought the end of the head.
pub(super) fn begin(exchange: &mut Exchange, answer: Answer, in_socket: InSocket) -> Verdict {
    let Some(body) = expected(exchange, &answer) else {
        return relay::begin(exchange, answer);
    };
    let timeout_ms = match answer.passing.timeouts.read_ms {
        0 => HELD_MS_MAX,
        read_ms => read_ms.min(HELD_MS_MAX),
    };
    let arriving = Arriving {
        body,
        pause_ends_ms: None,
        hastens: false,
        deadline_ms: exchange.lane.clock.now_ms() + timeout_ms,
        needs_client: !answer.passing.ignores_client_abort,
        answer,
    };
    arriving.go_on(exchange, in_socket)
}

/// What is to come of a body that may be awaited: it fits into the buffers as far as that is known,
/// and nobody is to see it on its way.
fn expected(exchange: &Exchange, answer: &Answer) -> Option<Expected> {
    let Answer {
        passing, server, ..
    } = answer;
    let input_bytes = exchange.upstream.input().len();
    let body = match server.delivery.end {
        BodyEnd::Length(_) | BodyEnd::UntilClose if answer.records.is_some() => {
            // A server of HTTP/2 may have to be told that its records were read.
            let all_bytes = passing.buffers.all_bytes;
            let fits = match server.delivery.end {
                BodyEnd::Length(length) => length <= all_bytes as u64,
                _ => input_bytes < all_bytes,
            };
            (fits && http2_connection::of(&server.connection).is_none())
                .then_some(Expected::Open)?
        }
        BodyEnd::UntilClose => {
            (input_bytes < passing.buffers.all_bytes).then_some(Expected::Open)?
        }
        BodyEnd::Length(length) => {
            let length = usize::try_from(length).ok()?;
            let fits = (input_bytes + 1..=passing.buffers.all_bytes).contains(&length);
            fits.then_some(Expected::Bytes(length))?
        }
        BodyEnd::Marked if exchange.response.content_length().is_none() => {
            let reader = BodyReader::new(BodyEnd::Marked, exchange.strictness());
            Expected::Chunks(reader)
        }
        _ => return None,
    };
    let awaited = answer.recorder.is_none()
        && server.delivery.coding.is_none()
        && passing.limit_rate.is_none()
        && answer.upload.is_done(exchange)
        && server.connection.watched_socket().is_some()
        && response::reads_ahead(exchange, passing);
    awaited.then_some(body)
}

impl Arriving {
    fn go_on(self, exchange: &mut Exchange, in_socket: InSocket) -> Verdict {
        exchange.account.set_action(Action::ReadingUpstream);
        match self.body {
            Expected::Bytes(length) => self.read_bytes(exchange, length, in_socket),
            Expected::Chunks(_) => self.read_chunks(exchange, in_socket),
            Expected::Open => self.read_open(exchange, in_socket),
        }
    }

    /// Reads until all is here, or more has to come.
    fn read_bytes(
        self,
        exchange: &mut Exchange,
        length: usize,
        mut in_socket: InSocket,
    ) -> Verdict {
        let connection = &self.answer.server.connection;
        loop {
            let input = exchange.upstream.input_mut();
            let from = input.len();
            let Some(missing) = length.checked_sub(from).filter(|bytes| *bytes > 0) else {
                return relay::begin(exchange, self.answer);
            };
            if in_socket == InSocket::Nothing && !self.is_ending() {
                return self.await_rest(&mut exchange.rooms);
            }
            let room = missing + SURPLUS_BYTES;
            match connection.try_read(input.room(), room) {
                Ok(received @ 1..) => in_socket = InSocket::after_read(received, room),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.await_rest(&mut exchange.rooms);
                }
                read => return relay::go_on(exchange, self.answer, None, Cut::Read(read)),
            }
        }
    }

    /// The same for chunks, which are taken off as they come.
    fn read_chunks(mut self, exchange: &mut Exchange, mut in_socket: InSocket) -> Verdict {
        let all_bytes = self.answer.passing.buffers.all_bytes;
        loop {
            let Expected::Chunks(reader) = &mut self.body else {
                unreachable!("the caller has looked");
            };
            let taken = take_chunks(&mut exchange.upstream, &mut exchange.response, reader);
            let room = all_bytes.saturating_sub(exchange.response.text().len());
            let cut = match taken {
                Chunks::Whole => return self.whole(exchange),
                Chunks::Malformed => Cut::Malformed,
                Chunks::Inside if room > 0 => {
                    if in_socket == InSocket::Nothing && !self.is_ending() {
                        return self.await_rest(&mut exchange.rooms);
                    }
                    let room = room + SURPLUS_BYTES;
                    let connection = &self.answer.server.connection;
                    match connection.try_read(exchange.upstream.input_mut().room(), room) {
                        Ok(received @ 1..) => {
                            in_socket = InSocket::after_read(received, room);
                            continue;
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            return self.await_rest(&mut exchange.rooms);
                        }
                        read => Cut::Read(read),
                    }
                }
                Chunks::Inside | Chunks::Paused => Cut::Held,
            };
            return self.relay_on(exchange, cut);
        }
    }

    /// The same for what has no known length, or comes in records.
    fn read_open(mut self, exchange: &mut Exchange, mut in_socket: InSocket) -> Verdict {
        let all_bytes = self.answer.passing.buffers.all_bytes;
        for _ in 0..READS_PER_TURN_MAX {
            let records = self.answer.records.as_deref();
            if records.is_some_and(RecordLayer::has_ended) {
                return self.whole(exchange);
            }
            let left_bytes = records.map_or(0, RecordLayer::left_bytes);
            if in_socket == InSocket::Nothing && !self.is_ending() {
                return self.await_open(exchange, left_bytes > 0);
            }
            let input = exchange.upstream.input_mut();
            let from = input.len();
            let Some(room) = all_bytes.checked_sub(from).filter(|bytes| *bytes > 0) else {
                break;
            };
            let wanted = left_bytes.max(OPEN_ROOM_BYTES_MIN);
            // A record may be there that is none of the body.
            let room = room.min(wanted) + SURPLUS_BYTES;
            match self.answer.server.connection.try_read(input.room(), room) {
                Ok(received @ 1..) => in_socket = InSocket::after_read(received, room),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.await_open(exchange, left_bytes > 0);
                }
                read => return self.relay_on(exchange, Cut::Read(read)),
            }
            if let Err(reason) = self.take_off(exchange, from) {
                return self.relay_on(exchange, Cut::Invalid(reason));
            }
        }
        self.relay_on(exchange, Cut::Held)
    }

    /// Takes the records off what has come behind the first `from` bytes of the exchange's input.
    fn take_off(&mut self, exchange: &mut Exchange, from: usize) -> Result<(), String> {
        let Answer {
            server, records, ..
        } = &mut self.answer;
        let Some(records) = records else {
            return Ok(());
        };
        let mut input = std::mem::take(exchange.upstream.input_mut());
        let taken = take_off(
            &mut **records,
            exchange,
            &server.connection,
            &mut input,
            from,
        );
        if taken.is_err() {
            input.change_behind(from, Vec::truncate);
        }
        *exchange.upstream.input_mut() = input;
        taken
    }

    /// Awaits the rest of a record, or what follows a pause.
    fn await_open(mut self, exchange: &mut Exchange, is_inside: bool) -> Verdict {
        let pause_ends_ms = exchange.lane.clock.now_ms() + PAUSE_MS_MAX;
        self.pause_ends_ms = (!is_inside).then_some(pause_ends_ms);
        self.hasten();
        self.await_rest(&mut exchange.rooms)
    }

    /// Applications send records in several small writes, which their kernel holds back until the
    /// one before is acknowledged. On a connection that has carried a request, ours delays that by
    /// 40 ms, since it expects us to answer.
    fn hasten(&mut self) {
        let server = &self.answer.server;
        let is_tcp = matches!(server.picked.address(), Address::Inet(_));
        if is_tcp && server.connection.is_reused() && !self.hastens {
            server.connection.acknowledge_without_delay();
            self.hastens = true;
        }
    }

    fn whole(self, exchange: &mut Exchange) -> Verdict {
        match self.body {
            Expected::Bytes(_) | Expected::Open => relay::begin(exchange, self.answer),
            Expected::Chunks(reader) => relay::whole_chunks(exchange, self.answer, &reader),
        }
    }

    /// What has come is passed on, and the rest as it comes.
    fn relay_on(self, exchange: &mut Exchange, cut: Cut) -> Verdict {
        let reader = match self.body {
            Expected::Bytes(_) | Expected::Open => None,
            Expected::Chunks(reader) => Some(reader),
        };
        relay::go_on(exchange, self.answer, reader, cut)
    }

    /// Whether the end of the stream may have been reported together with the last bytes.
    fn is_ending(&self) -> bool {
        let watched_socket = self.answer.server.connection.watched_socket();
        watched_socket.is_none_or(WatchedSocket::is_closed)
    }

    fn await_rest(self, rooms: &mut Rooms) -> Verdict {
        let mut awaited: Box<AwaitedBody> = rooms.take_spare();
        awaited.0 = Some(self);
        Verdict::Await(awaited)
    }
}

/// Takes the chunks off what has come, and puts what is in them into the response's text.
fn take_chunks(
    upstream: &mut Upstream,
    response: &mut Response,
    reader: &mut BodyReader,
) -> Chunks {
    let mut input = std::mem::take(upstream.input_mut());
    let mut at = 0;
    let taken = loop {
        let piece = match reader.read(input.get(at..).unwrap_or_default()) {
            Ok(piece) => piece,
            Err(_) => break Chunks::Malformed,
        };
        let (length, taken_bytes, is_last) = (piece.data.len(), piece.taken_bytes, piece.is_last);
        let text = response.received_mut();
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
        if let Some(one) = upstream.last_try() {
            one.response_bytes += length as u64;
        }
        if is_last {
            break Chunks::Whole;
        }
        if taken_bytes == 0 {
            break if reader.is_inside_chunk() {
                Chunks::Inside
            } else {
                Chunks::Paused
            };
        }
    };
    let rest = upstream.input_mut();
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
        let arriving = self.arriving();
        let pause_ends_ms = arriving.pause_ends_ms.unwrap_or(u64::MAX);
        arriving.deadline_ms.min(pause_ends_ms)
    }

    fn needs_client(&self) -> bool {
        self.arriving().needs_client
    }

    fn ready(mut self: Box<Self>, exchange: &mut Exchange) -> Verdict {
        let arriving = self.take();
        exchange.rooms.keep_spare(self, 0);
        arriving.go_on(exchange, InSocket::PerhapsMore)
    }

    fn timed_out(mut self: Box<Self>, exchange: &mut Exchange) -> Verdict {
        let arriving = self.take();
        exchange.rooms.keep_spare(self, 0);
        arriving.relay_on(exchange, Cut::Held)
    }

    fn abandoned(self: Box<Self>, exchange: &mut Exchange) {
        client_went_away(exchange);
        end_try(
            &mut exchange.upstream,
            &exchange.lane,
            Some(&self.arriving().answer.server.connection),
        );
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
