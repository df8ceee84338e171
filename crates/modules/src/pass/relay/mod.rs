//! A response's body on its way from the server to the client.
//!
//! ```text
//!  socket ─► incoming ─► decoded ─┬─► ready ───────────────┬─► piece for the client
//!                                 └─► file, when ready is full ┘
//! ```
//!
//! Read ahead of the client, a body fills memory first and a file then; when neither takes more,
//! the server waits. Without buffering, each piece is passed on as it comes.

mod answer;
mod limit;
mod moving;
mod spill;

use std::io;
use std::sync::Arc;

use turnpike_http::Quoted;
use turnpike_http::client::Client;
use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::h1::origin::BodyReader;
use turnpike_http::received::Received;
use turnpike_http::response::{BodyFailed, BodyStream, LocalFuture, Response, Source};
use turnpike_http::upstream::Upstream;
use turnpike_lane::log::{Errno, Level};
use turnpike_plan::rate::Rate;
use turnpike_upstream::UPSTREAM_TIMED_OUT;
use turnpike_wire::message::{BodyEnd, Fields, Known};

pub(crate) use answer::{Answer, Cut, begin, discard, go_on, whole_chunks};
use answer::{Rest, finish};
use limit::{Allowed, Limit};
use spill::Spill;

use super::coding::{self, Expander};
use super::head::take_off;
use super::origin::RecordLayer;
use super::response;
use super::response_store::Recorder;
use super::server::UpstreamConnection;
use super::settings::Passing;
use super::try_notes::{CLIENT_GONE, end_try};
use super::upload::{Upload, UploadError};

/// Bytes read of a file at a time.
const FILE_PIECE_BYTES: usize = 64 * 1024;

/// Least room for which a read is worth its call.
const ROOM_BYTES_MIN: usize = 1024;

/// nginx's words.
const SURPLUS_BEHIND_CHUNKS: &str = "upstream sent data after final chunk";
const MALFORMED_CHUNKS: &str = "upstream sent invalid chunked response";

/// How far a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// More is to come.
    Reading,
    /// All of it has come.
    Whole,
    /// The rest will not come.
    Broken,
}

/// What the reader has seen of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyProgress {
    /// Less than all of it.
    Partial,
    /// All of it; the end of the records may be to come.
    Whole,
    /// All of it, and bytes behind, of which the log tells.
    Surplus,
}

/// A body between server and client.
struct Relay {
    passing: Arc<Passing>,
    server: Option<UpstreamConnection>,
    /// What takes off the records around the answer, where it comes in records.
    records: Option<Box<dyn RecordLayer>>,
    upload: Upload,
    reader: BodyReader,
    body: BodyProgress,
    /// Where the server has compressed the body for its way here.
    expander: Option<Expander>,
    /// How its end is marked.
    told_end: BodyEnd,
    /// Received and not decoded.
    incoming: Received,
    /// Decoded, with no place in `ready` or the file yet.
    late: Vec<u8>,
    /// Decoded, for the client next.
    ready: Vec<u8>,
    /// Bytes of the piece that the client is being sent.
    busy_bytes: usize,
    /// Whether the client did not take the last piece at once.
    client_is_slow: bool,
    spill: Option<Spill>,
    /// Whether the file has failed: no other is begun.
    spill_failed: bool,
    /// Whether it is read ahead of the client.
    ahead: bool,
    state: State,
    recorder: Option<Box<dyn Recorder>>,
    limit: Option<Limit>,
}

impl Relay {
    /// A body of which what stands behind the head in the exchange's input has come.
    fn new(exchange: &mut Exchange, answer: Answer) -> Self {
        let Answer {
            passing,
            server,
            records,
            upload,
            recorder,
        } = answer;
        let ahead = response::reads_ahead(exchange, &passing);
        let rate = passing.limit_rate.as_ref().filter(|_| ahead);
        let rate = rate.and_then(|template| {
            let text = template.value(exchange);
            turnpike_conf::value::size(std::str::from_utf8(&text).ok()?)
        });
        let limit = rate.filter(|rate| *rate > 0).map(|rate| Limit {
            rate: Rate {
                bytes_per_second: rate,
            },
            started_ms: exchange.lane.clock.now_ms(),
        });
        let end = server.delivery.end;
        Self {
            passing,
            records,
            upload,
            reader: BodyReader::new(end, exchange.strictness()),
            body: BodyProgress::Partial,
            expander: server.delivery.coding.map(Expander::new),
            server: Some(server),
            told_end: end,
            incoming: std::mem::take(exchange.upstream.input_mut()),
            late: Vec::new(),
            ready: Vec::new(),
            busy_bytes: 0,
            client_is_slow: false,
            spill: None,
            spill_failed: false,
            ahead,
            state: State::Reading,
            recorder,
            limit,
        }
    }

    /// Decodes what has come, up to the end of the body.
    fn decode(&mut self, exchange: &mut Exchange) {
        let mut at = 0;
        while self.state == State::Reading && !self.has_whole_body() {
            let input = self.incoming.get(at..).unwrap_or_default();
            let piece = match self.reader.read(input) {
                Ok(piece) => piece,
                Err(_) => {
                    self.broken(exchange, Level::Error, MALFORMED_CHUNKS);
                    break;
                }
            };
            let data = piece.data;
            let (bytes, taken_bytes, is_last) = (data.len(), piece.taken_bytes, piece.is_last);
            let all_bytes = self.passing.buffers.all_bytes;
            // Usually there is room for it where the client's next piece waits.
            let is_next = self.expander.is_none()
                && self.spill.is_none()
                && self.late.is_empty()
                && self.ready.len() + bytes <= all_bytes;
            let is_all = is_next && self.ready.is_empty() && bytes == self.incoming.len();
            let decoded = if is_next {
                &mut self.ready
            } else {
                &mut self.late
            };
            let start = decoded.len();
            let expanded = match &mut self.expander {
                Some(expander) => expander.expand(data, decoded),
                None if is_all => {
                    // The buffer is handed on as it is.
                    self.incoming.move_to(decoded);
                    Ok(())
                }
                None => {
                    decoded.extend_from_slice(data);
                    Ok(())
                }
            };
            let fresh = decoded.get(start..).unwrap_or_default();
            if let Some(recorder) = &mut self.recorder
                && expanded.is_ok()
                && !fresh.is_empty()
            {
                recorder.piece(fresh);
            }
            if expanded.is_err() {
                let message = "upstream sent a body that does not match its \"Transfer-Encoding\"";
                self.broken(exchange, Level::Error, message);
                break;
            }
            if let Some(one) = exchange.upstream.last_try() {
                one.response_bytes += bytes as u64;
            }
            at += taken_bytes;
            if is_last {
                self.body = BodyProgress::Whole;
            } else if taken_bytes == 0 {
                break;
            }
        }
        if self.has_whole_body() && self.state == State::Reading {
            self.note_surplus(exchange, self.incoming.len() > at);
        }
        self.incoming.clear();
        if self.state == State::Reading {
            self.end(exchange);
        }
        self.settle(exchange);
    }

    fn has_whole_body(&self) -> bool {
        self.body != BodyProgress::Partial
    }

    /// Ends the body where its end has come: that of the records, where there are any.
    fn end(&mut self, exchange: &mut Exchange) {
        let until_close = self.told_end == BodyEnd::UntilClose;
        match &self.records {
            None if self.has_whole_body() => self.whole(exchange),
            Some(records) if records.has_ended() => {
                if self.has_whole_body() || until_close {
                    self.whole(exchange)
                } else {
                    self.broken(exchange, Level::Error, records.early_end())
                }
            }
            _ => {}
        }
    }

    /// Says once that more came than belongs to the body.
    fn note_surplus(&mut self, exchange: &Exchange, surplus: bool) {
        if !surplus || self.body == BodyProgress::Surplus {
            return;
        }
        self.body = BodyProgress::Surplus;
        exchange.account.set_action(Action::ReadingUpstream);
        let message = match self.told_end {
            BodyEnd::Marked => SURPLUS_BEHIND_CHUNKS,
            _ => "upstream sent more data than specified in \"Content-Length\" header",
        };
        exchange.log(Level::Warn, format_args!("{message}"));
    }

    /// Moves what was decoded to where it waits for the client.
    fn settle(&mut self, exchange: &Exchange) {
        if self.late.is_empty() {
            return;
        }
        let unspilled = self.spill.is_none();
        if unspilled && self.ready.is_empty() {
            std::mem::swap(&mut self.ready, &mut self.late);
        } else if unspilled && self.ready.len() + self.late.len() <= self.passing.buffers.all_bytes
        {
            self.ready.append(&mut self.late);
        } else if self.ahead {
            self.spill(exchange);
        }
    }

    /// Takes the next piece that is at hand. `false`: there is none.
    fn take(&mut self, exchange: &Exchange, out: &mut Vec<u8>) -> Result<bool, BodyFailed> {
        if self.ready.is_empty() && self.spill.is_none() {
            std::mem::swap(&mut self.ready, &mut self.late);
        }
        if !self.ready.is_empty() {
            let most = self.passing.buffers.busy_bytes;
            if self.ready.len() <= most || !self.client_is_slow {
                std::mem::swap(out, &mut self.ready);
            } else {
                out.extend(self.ready.drain(..most));
            }
            self.client_is_slow = false;
            self.busy_bytes = out.len();
            self.settle(exchange);
            return Ok(true);
        }
        let Some(spill) = &mut self.spill else {
            return Ok(false);
        };
        match spill.file.read(spill.read_bytes, FILE_PIECE_BYTES, out) {
            Ok(read) => spill.read_bytes += read as u64,
            Err(error) => {
                let path = Quoted(spill.file.path_bytes()).to_string();
                let errno = Errno(&error);
                exchange.log(
                    Level::Crit,
                    format_args!("pread() \"{path}\" failed {errno}"),
                );
                return Err(BodyFailed);
            }
        }
        if spill.read_bytes >= spill.file.size_bytes() {
            self.spill = None;
            self.settle(exchange);
        }
        Ok(true)
    }

    /// Whether something waits for the client.
    fn holds(&self) -> bool {
        !self.ready.is_empty() || self.spill.is_some() || !self.late.is_empty()
    }

    /// Room for what is read next: 0 where the server has to wait.
    fn room(&self) -> usize {
        if !self.late.is_empty() {
            return 0;
        }
        let buffers = &self.passing.buffers;
        let memory = match &self.spill {
            None => {
                let held_bytes = self.ready.len() + self.busy_bytes;
                buffers.all_bytes.saturating_sub(held_bytes)
            }
            Some(_) => 0,
        };
        if memory >= ROOM_BYTES_MIN {
            return memory;
        }
        if !self.ahead || self.spill_failed {
            return 0;
        }
        let spilled = self.spill.as_ref();
        let spilled = spilled.map_or(0, |spill| spill.file.size_bytes());
        let left = buffers.file_bytes_max.saturating_sub(spilled);
        usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffers.file_write_bytes)
    }

    /// Gives back memory that nothing is in, where the client is what is waited for: many slow
    /// clients hold what is for them and no more.
    fn release_room(&mut self, response: &mut Response) {
        if self.incoming.is_empty() {
            self.incoming = Received::default();
        }
        self.late.shrink_to_fit();
        self.ready.shrink_to_fit();
        // The piece that the client takes next.
        response.text_mut().shrink_to_fit();
    }

    /// Reads once, or waits until the rate allows it. Nothing is lost where it is dropped before
    /// its end.
    /// `watches`: the client that has gone is seen here, and nowhere else.
    async fn receive(&mut self, exchange: &mut Exchange, client: Client<'_>, watches: bool) {
        exchange.account.set_action(Action::ReadingUpstream);
        let mut room = self.room().max(ROOM_BYTES_MIN);
        if self.expander.is_some() {
            room = room.min(coding::READ_BYTES_MAX);
        }
        let timeouts = self.passing.timeouts;
        let mut pause = None;
        let now_ms = exchange.lane.clock.now_ms();
        let limit = self.limit.as_ref();
        match limit.map(|limit| limit.allowed(&exchange.upstream, now_ms)) {
            None => {}
            Some(Allowed::Bytes(bytes)) => room = room.min(bytes),
            Some(Allowed::After(time)) => pause = Some(time),
        }
        // What is kept is read to its end, for others.
        let heeded = !self.passing.ignores_client_abort && self.recorder.is_none();
        let watched = (heeded && watches).then_some(client);
        let from = self.incoming.len();
        let Some(server) = &self.server else { return };
        let connection = &server.connection;
        let uploading = (!self.upload.is_over(exchange)).then_some(client);
        let event = tokio::select! {
            biased;
            read = connection.read(self.incoming.room(), room, timeouts.read_ms),
                if pause.is_none() => Event::Read(read),
            () = async { tokio::time::sleep(pause.unwrap_or_default()).await },
                if pause.is_some() => Event::Paused,
            step = upload(&mut self.upload, exchange, uploading, connection, timeouts.send_ms),
                if uploading.is_some() => Event::Sent(step),
            () = gone(watched), if uploading.is_none() => Event::Gone,
        };
        match event {
            Event::Read(read) => self.received(exchange, read, from),
            Event::Paused => {}
            Event::Sent(step) => self.sent(exchange, step),
            Event::Gone => self.broken(exchange, Level::Info, CLIENT_GONE),
        }
    }

    /// Goes on with the request's body, where nothing can be read.
    async fn send(&mut self, exchange: &mut Exchange, client: Client<'_>) {
        let Some(server) = &self.server else { return };
        let send_ms = self.passing.timeouts.send_ms;
        let step = self
            .upload
            .step(exchange, client, &server.connection, send_ms);
        let step = step.await;
        self.sent(exchange, step);
    }

    fn sent(&mut self, exchange: &mut Exchange, step: Result<bool, UploadError>) {
        match step {
            Ok(_) => {}
            // What the server does not want of the request is no reason to stop reading.
            Err(UploadError::Upstream(_)) => self.upload = Upload::given_up(&mut exchange.upstream),
            Err(UploadError::Client(_)) => {
                self.broken(exchange, Level::Info, "client body failed");
            }
        }
    }

    fn received(&mut self, exchange: &mut Exchange, read: io::Result<usize>, from: usize) {
        if let (Ok(1..), Some(records)) = (&read, &mut self.records)
            && let Some(server) = &self.server
            && let Err(reason) = take_off(
                &mut **records,
                exchange,
                &server.connection,
                &mut self.incoming,
                from,
            )
        {
            self.broken(exchange, Level::Error, &reason);
            return;
        }
        let until_close = self.told_end == BodyEnd::UntilClose;
        let ends = match &self.records {
            // Only the last record is not there; the body is.
            Some(records) => self.has_whole_body() || (until_close && records.is_complete()),
            None => until_close,
        };
        match read {
            Ok(0) | Err(_) if ends && self.records.is_some() => self.whole(exchange),
            Ok(0) if ends => self.whole(exchange),
            Ok(0) => self.broken(
                exchange,
                Level::Error,
                "upstream prematurely closed connection",
            ),
            Ok(_) => self.decode(exchange),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.broken(exchange, Level::Error, UPSTREAM_TIMED_OUT)
            }
            Err(error) => {
                let message = format!("recv() failed {}", Errno(&error));
                self.broken(exchange, Level::Error, &message);
            }
        }
    }

    fn whole(&mut self, exchange: &mut Exchange) {
        let coded = self.expander.as_ref();
        if coded.is_some_and(|expander| !expander.is_whole()) {
            let message = "upstream ended its body before its \"Transfer-Encoding\" does";
            self.broken(exchange, Level::Error, message);
            return;
        }
        self.state = State::Whole;
        if let Some(trailers) = self.trailers() {
            take_trailers(
                &mut exchange.response,
                &mut exchange.upstream,
                &self.passing,
                trailers,
            );
        }
        if let Some(mut recorder) = self.recorder.take() {
            recorder.whole(exchange);
        }
        if let Some(server) = self.server.take() {
            let is_exact = self.body != BodyProgress::Surplus;
            let rest = Rest::nothing_if(is_exact && self.upload.is_done(exchange));
            finish(exchange, server, self.records.take(), rest);
        }
    }

    fn trailers(&mut self) -> Option<Fields> {
        match &mut self.records {
            Some(records) => records.take_trailers(),
            None => self.reader.trailers(),
        }
    }

    fn broken(&mut self, exchange: &mut Exchange, level: Level, message: &str) {
        self.state = State::Broken;
        exchange.log(level, format_args!("{message}"));
        exchange.sending.close_connection();
        if let Some(mut recorder) = self.recorder.take() {
            recorder.broken(exchange);
        }
        if let Some(server) = self.server.take() {
            end_try(
                &mut exchange.upstream,
                &exchange.lane,
                Some(&server.connection),
            );
        }
    }

    /// Whether another piece follows.
    fn more(&self) -> bool {
        self.state != State::Whole || self.holds()
    }
}

impl BodyStream for Relay {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(async move {
            self.busy_bytes = 0;
            loop {
                if self.take(exchange, out)? {
                    exchange.account.set_action(Action::Sending);
                    return Ok(self.more());
                }
                match self.state {
                    State::Reading => self.receive(exchange, client, true).await,
                    State::Whole => return Ok(false),
                    State::Broken => return Err(BodyFailed),
                }
            }
        })
    }

    fn ready(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        match self.take(exchange, out) {
            Ok(true) => Some(Ok(self.more())),
            Ok(false) if self.state == State::Whole => Some(Ok(false)),
            Ok(false) => None,
            Err(failed) => Some(Err(failed)),
        }
    }

    fn read_ahead<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
    ) -> LocalFuture<'a, ()> {
        Box::pin(async move {
            self.client_is_slow = true;
            while self.ahead && self.state == State::Reading && self.room() > 0 {
                self.receive(exchange, client, false).await;
            }
            self.release_room(&mut exchange.response);
            // A client may read nothing of a response before it has sent its whole request.
            while self.state == State::Reading && !self.upload.is_over(exchange) {
                self.send(exchange, client).await;
            }
            std::future::pending().await
        })
    }

    fn source(&self, exchange: &Exchange) -> Option<Source<'_>> {
        self.raw_source(exchange)
    }

    fn source_ready<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
    ) -> LocalFuture<'a, Result<(), BodyFailed>> {
        Box::pin(self.raw_ready(exchange, client))
    }

    fn moved(
        &mut self,
        exchange: &mut Exchange,
        moved: io::Result<usize>,
    ) -> Result<bool, BodyFailed> {
        self.raw_moved(exchange, moved)
    }

    fn outlives_client(&mut self) -> bool {
        self.recorder.is_some() && self.state == State::Reading
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        if let Some(mut recorder) = self.recorder.take() {
            recorder.broken(exchange);
        }
        if let Some(server) = self.server.take() {
            end_try(
                &mut exchange.upstream,
                &exchange.lane,
                Some(&server.connection),
            );
        }
    }
}

enum Event {
    Read(io::Result<usize>),
    /// The rate allows to read again.
    Paused,
    Sent(Result<bool, UploadError>),
    Gone,
}

async fn upload(
    upload: &mut Upload,
    exchange: &mut Exchange,
    client: Option<Client<'_>>,
    connection: &turnpike_upstream::Connection,
    timeout_ms: u64,
) -> Result<bool, UploadError> {
    match client {
        Some(client) => upload.step(exchange, client, connection, timeout_ms).await,
        None => std::future::pending().await,
    }
}

async fn gone(client: Option<Client<'_>>) {
    match client {
        Some(client) => client.gone().await,
        None => std::future::pending().await,
    }
}

/// Keeps the fields behind a body, and passes them on where the protocol of the origin does.
fn take_trailers(
    response: &mut Response,
    upstream: &mut Upstream,
    passing: &Passing,
    trailers: Fields,
) {
    if passing.origin.passes_trailers() {
        for (name, value) in trailers.iter() {
            let known = Known::of(name);
            if !passing.responses.hidden.has(known, name) && !is_framing(known) {
                response.trailers_mut().add(name, value);
            }
        }
    }
    upstream.set_trailers(trailers);
}

/// Fields that say how a message ends have no place behind it (RFC 9110 section 6.5.1).
fn is_framing(known: Known) -> bool {
    matches!(
        known,
        Known::ContentLength | Known::TransferEncoding | Known::Connection | Known::Trailer
    )
}
