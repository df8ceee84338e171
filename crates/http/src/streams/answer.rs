//! An answer on its way into a connection's output: its head, then pieces of its body as DATA.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use turnpike_lane::turns;
use turnpike_wire::message::{Field, Known};

use super::frames::{FieldBlock, Indexing, ResetReason};
use super::stream::Stream;
use super::tunnel;
use crate::client::Client;
use crate::engine::{self, Outcome};
use crate::exchange::{Action, Exchange};
use crate::log::DrivenExchange;
use crate::pieces;
use crate::response::{Body, BodyFailed};
use crate::response_head::{self, HeadWriter};
use crate::segments::{self, Segment};

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendProgress {
    Done,
    /// Windows, the output or other streams hold it back.
    WantsRoom,
    /// The next piece of the body has to be made.
    WantsPiece,
}

/// An answer whose head is sent. The present piece stands in the response's text, or is a body in
/// memory, which is sent from where it stands.
pub(crate) struct BegunAnswer {
    /// Whether the whole body stands in memory.
    is_in_memory: bool,
    /// Bytes of the piece that were sent.
    sent: usize,
    /// Whether pieces follow.
    more: bool,
    is_done: bool,
}

/// Where a driven exchange goes on.
pub(crate) enum Stage {
    /// What its walk has come to.
    Outcome(Outcome),
    /// The answer is partly sent.
    Sending(BegunAnswer),
}

/// A head that is written as a header block.
struct HeadBlock<'a>(&'a mut dyn FieldBlock);

impl HeadWriter for HeadBlock<'_> {
    fn status(&mut self, status: u16, _reason: &str) {
        // HTTP/2 has no 101: a tunnel begins with a success (RFC 8441 section 5).
        let status = if status == 101 { 200 } else { status };
        let digits = [status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
        self.0.field(b":status", &digits, Indexing::WhenRepeated);
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        let indexing = match name {
            "Server" | "Content-Type" | "Vary" | "Allow" | "Date" => Indexing::WhenRepeated,
            _ => Indexing::No,
        };
        self.0.field(name.as_bytes(), value, indexing);
    }

    fn span(&mut self, bytes: &[u8], field: &Field) {
        let indexing = match field.known {
            // They are of a connection of HTTP/1 (RFC 9113 section 8.2.2).
            Known::Connection
            | Known::KeepAlive
            | Known::ProxyConnection
            | Known::TransferEncoding
            | Known::Upgrade => return,
            Known::SetCookie
            | Known::Age
            | Known::ContentRange
            | Known::Location
            | Known::Expires => Indexing::No,
            _ => Indexing::WhenRepeated,
        };
        let (name, value) = (field.name.of(bytes), field.value.of(bytes));
        self.0.field(name, value, indexing);
    }
}

impl BegunAnswer {
    /// Sends the head, and makes ready to send the body. The first piece of a body shows whether
    /// there is any; of one at hand there is, and it is made once it can be sent.
    pub(crate) fn begin(
        exchange: &mut Exchange,
        stream: &Stream,
    ) -> Result<BegunAnswer, BodyFailed> {
        exchange.account.set_action(Action::Sending);
        tunnel::refuse_success(exchange, stream);
        response_head::prepare(exchange);
        let is_tunnel = matches!(exchange.response.body(), Body::Tunnel(_));
        let has_body = !exchange.response.is_head_only()
            && !matches!(exchange.response.body(), Body::Empty | Body::Tunnel(_));
        let mut answer = BegunAnswer {
            is_in_memory: has_body && is_in_memory(exchange),
            sent: 0,
            more: has_body,
            is_done: false,
        };
        if answer.is_in_memory {
            answer.more = false;
        } else if has_body {
            let body = exchange.response.take_stream();
            exchange.response.set_body(Body::Stream(body));
            let room_bytes = stream.shared.room_bytes(stream, chunk_bytes(exchange));
            if pieces::limit(&mut exchange.response, room_bytes) && room_bytes == 0 {
                exchange.response.text_mut().clear();
            } else if let Some(more) = pieces::ready(exchange) {
                answer.more = more?;
            }
        } else {
            exchange.response.text_mut().clear();
        }
        let is_empty = answer.piece(exchange).is_empty() && !answer.more;
        let ends = is_empty && exchange.response.trailers().is_empty() && !is_tunnel;
        let shared = Rc::clone(&stream.shared);
        shared.prepare_output();
        let mut frames = shared.frames.borrow_mut();
        let written = frames.send_head(stream.id, ends, &mut |block| {
            response_head::write(exchange, &mut HeadBlock(block));
        });
        exchange.account.head_written(written as u64);
        exchange.account.sent(written as u64);
        answer.is_done = ends;
        Ok(answer)
    }

    /// What is left of the present piece.
    fn piece<'a>(&self, exchange: &'a Exchange) -> &'a [u8] {
        let response = &exchange.response;
        let text = response.text();
        let piece = if self.is_in_memory {
            match segments::of_body(response.body(), text, 0) {
                Segment::Bytes(bytes) => bytes,
                _ => &[],
            }
        } else {
            text
        };
        piece.get(self.sent..).unwrap_or_default()
    }

    /// Gives the memory of a piece that is sent back: the client may be waited for very long.
    fn release_piece(&self, exchange: &mut Exchange) {
        if !self.is_in_memory && self.piece(exchange).is_empty() {
            drop(exchange.response.take_text());
        }
    }

    /// Bytes that are left of the present piece, where it is the last one.
    pub(crate) fn rest_bytes(&self, exchange: &Exchange) -> usize {
        if self.more {
            usize::MAX
        } else {
            self.piece(exchange).len()
        }
    }

    /// Sends what may be sent now, at most about `bytes_max` of the body.
    pub(crate) fn advance(
        &mut self,
        exchange: &mut Exchange,
        stream: &Stream,
        bytes_max: u64,
    ) -> Result<SendProgress, BodyFailed> {
        let chunk_bytes = chunk_bytes(exchange);
        let mut left = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        stream.shared.prepare_output();
        while !self.is_done {
            let rest = self.piece(exchange).len();
            if rest < chunk_bytes && self.more {
                // What cannot be sent yet is not read either: a client may never want it.
                let room_bytes = stream.shared.room_bytes(stream, chunk_bytes).min(left);
                let piece_bytes_max = room_bytes.saturating_sub(rest);
                let is_held_back = piece_bytes_max == 0 && pieces::limit(&mut exchange.response, 0);
                if is_held_back && rest == 0 {
                    return Ok(SendProgress::WantsRoom);
                }
                if !is_held_back {
                    match pieces::refill(exchange, &mut self.sent, piece_bytes_max) {
                        Some(more) => {
                            self.more = more?;
                            continue;
                        }
                        None if rest == 0 => return Ok(SendProgress::WantsPiece),
                        None => {}
                    }
                }
            }
            if rest == 0 && !exchange.response.trailers().is_empty() {
                send_trailers(exchange, stream);
                break;
            }
            if left == 0 || !stream.shared.has_room() {
                return Ok(SendProgress::WantsRoom);
            }
            let ends = !self.more && exchange.response.trailers().is_empty();
            let piece = self.piece(exchange);
            let mut frames = stream.shared.frames.borrow_mut();
            let sent = frames.send_data(stream.id, piece, ends, chunk_bytes.min(left));
            self.is_done = ends && sent == rest && !frames.may_send(stream.id);
            drop(frames);
            if sent == 0 && !self.is_done {
                return Ok(SendProgress::WantsRoom);
            }
            turns::moved();
            self.sent += sent;
            left -= sent;
            stream.shared.moved(stream, sent);
            exchange.account.sent(sent as u64);
            if !self.is_done && !stream.shared.may_go_on(stream) {
                return Ok(SendProgress::WantsRoom);
            }
        }
        Ok(SendProgress::Done)
    }
}

/// Bytes of a body in a frame.
fn chunk_bytes(exchange: &Exchange) -> usize {
    exchange.location().settings.http2_chunk_bytes
}

/// Whether the response's body is one segment of bytes.
fn is_in_memory(exchange: &Exchange) -> bool {
    let response = &exchange.response;
    let segment = |number| segments::of_body(response.body(), response.text(), number);
    matches!(segment(0), Segment::Bytes(_)) && matches!(segment(1), Segment::End)
}

fn send_trailers(exchange: &Exchange, stream: &Stream) {
    let mut frames = stream.shared.frames.borrow_mut();
    frames.send_head(stream.id, true, &mut |block| {
        for (name, value) in exchange.response.trailers().iter() {
            if response_head::may_send(exchange, name, value) {
                block.field(name, value, Indexing::No);
            }
        }
    });
}

/// Drives an exchange to its end.
pub(crate) async fn drive(exchange: Box<Exchange>, stream: Rc<Stream>, stage: Stage) {
    stream.runs();
    let _unfinished = Unfinished(Rc::clone(&stream));
    let mut driven = DrivenExchange::new(exchange);
    let Some(exchange) = driven.exchange() else {
        return;
    };
    let ended = tokio::select! {
        biased;
        () = stream.closing.notified() => None,
        ended = to_the_end(exchange, &stream, stage) => Some(ended),
    };
    let ended = ended.unwrap_or_else(|| {
        if stream.gives_way_to_others() {
            exchange.gave_way();
            return End::GaveWay;
        }
        exchange.closed_by_command();
        End::Gone
    });
    if let Some(exchange) = driven.into_exchange() {
        end(exchange, &stream, ended);
    }
}

/// A stream in the hands of a future. Where the future is dropped before its end, the stream is
/// reset, so that the others on its connection need not wait for it.
struct Unfinished(Rc<Stream>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let stream = &self.0;
        if stream.shared.holds(stream) {
            stream.shared.reset(stream.id, ResetReason::Failed);
            stream.shared.ended(stream);
        }
    }
}

async fn to_the_end(exchange: &mut Exchange, stream: &Rc<Stream>, stage: Stage) -> End {
    let answer = match stage {
        Stage::Sending(answer) => answer,
        Stage::Outcome(outcome) => match exchange.drive(Client::Http2(stream), outcome).await {
            engine::Answer::Nothing => return End::Nothing,
            engine::Answer::Response => match BegunAnswer::begin(exchange, stream) {
                Ok(answer) => answer,
                Err(BodyFailed) => return End::Cut,
            },
        },
    };
    match tunnel::run(exchange, stream).await {
        Some(ended) => ended,
        None => send(exchange, stream, answer).await,
    }
}

/// How an answer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The answer is sent whole.
    Whole,
    /// There is none.
    Nothing,
    /// The rest of its body cannot be had.
    Cut,
    /// The client took nothing for too long.
    TimedOut,
    /// The client has gone, or an operator has closed the request.
    Gone,
    /// Others need the place of a request that its client does not move.
    GaveWay,
    /// A tunnel has ended, from whichever side.
    TunnelEnded,
}

/// Sends the rest of an answer as fast as its rate limit allows.
async fn send(exchange: &mut Exchange, stream: &Stream, mut answer: BegunAnswer) -> End {
    let timeout_ms = exchange.location().settings.send_timeout_ms;
    let rate = exchange.rate_limit();
    let started_ms = exchange.lane.clock.now_ms();
    loop {
        if stream.is_gone() {
            return End::Gone;
        }
        let mut bytes_max = u64::MAX;
        if let Some(rate) = &rate {
            let elapsed_ms = exchange.lane.clock.now_ms().saturating_sub(started_ms);
            let sent = exchange.account.sent_bytes();
            bytes_max = rate.allowed(elapsed_ms).saturating_sub(sent);
            if bytes_max == 0 {
                stream.shared.has_sent(stream);
                let pause_ms = rate.pause_ms(sent, elapsed_ms);
                let pause = tokio::time::sleep(Duration::from_millis(pause_ms));
                let client = Client::Http2(stream);
                tokio::select! {
                    biased;
                    // Whether the client has gone is seen above.
                    _ = client.unless_gone(pause) => {}
                    () = pieces::read_ahead(exchange, client) => {}
                }
                exchange.lane.clock.update();
                continue;
            }
        }
        let progress = answer.advance(exchange, stream, bytes_max);
        stream.shared.has_sent(stream);
        match progress {
            Ok(SendProgress::Done) => return End::Whole,
            Ok(SendProgress::WantsRoom) => {
                answer.release_piece(exchange);
                if rate.is_some() && stream.shared.has_room() {
                    tokio::task::yield_now().await;
                    if stream.shared.frames.borrow().window(stream.id) > 0 {
                        continue;
                    }
                }
                let waited = tokio::select! {
                    biased;
                    waited = stream.wait_for_room(timeout_ms) => waited,
                    () = pieces::read_ahead(exchange, Client::Http2(stream)) => Ok(()),
                };
                if let Err(error) = waited {
                    return held_back(exchange, &error);
                }
            }
            Ok(SendProgress::WantsPiece) => {
                let client = Client::Http2(stream);
                let made = pieces::next(exchange, client).await;
                answer.sent = 0;
                answer.more = match made {
                    Some(Ok(more)) => more,
                    Some(Err(BodyFailed)) => return End::Cut,
                    None => false,
                };
            }
            Err(BodyFailed) => return End::Cut,
        }
    }
}

fn held_back(exchange: &Exchange, error: &io::Error) -> End {
    if error.kind() != io::ErrorKind::TimedOut {
        return End::Gone;
    }
    exchange.log_client_timeout();
    End::TimedOut
}

/// The exchange is over: it is logged, and what is not whole is reset.
pub(crate) fn end(mut exchange: Box<Exchange>, stream: &Stream, ended: End) {
    let reason = match ended {
        End::Whole => None,
        End::TimedOut => Some(ResetReason::TooSlow),
        End::Nothing if exchange.logged_status() == 408 => Some(ResetReason::TooSlow),
        End::Nothing | End::Cut => Some(ResetReason::Failed),
        End::Gone | End::TunnelEnded => Some(ResetReason::Cancelled),
        End::GaveWay => Some(ResetReason::GaveWay),
    };
    stream.runs();
    exchange
        .account
        .set_completed(matches!(ended, End::Whole | End::TunnelEnded));
    exchange.end_body();
    exchange.log_access();
    if let Some(reason) = reason {
        stream.shared.reset(stream.id, reason);
    }
    let lane = Rc::clone(&exchange.lane);
    lane.recycle(exchange);
    stream.shared.ended(stream);
}
