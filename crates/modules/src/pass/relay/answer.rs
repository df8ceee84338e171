//! What becomes of an answer whose head was taken: it is thrown away, leaves in one piece, or is
//! relayed.

use std::io;
use std::sync::Arc;

use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::h1::origin::BodyReader;
use turnpike_http::phase::Verdict;
use turnpike_http::response::Body;
use turnpike_lane::log::Level;
use turnpike_wire::message::BodyEnd;

use super::{MALFORMED_CHUNKS, Relay, SURPLUS_BEHIND_CHUNKS, State, take_trailers};
use crate::pass::http2_connection;
use crate::pass::origin::RecordLayer;
use crate::pass::response_store::Recorder;
use crate::pass::server::UpstreamConnection;
use crate::pass::settings::Passing;
use crate::pass::try_notes::end_try;
use crate::pass::upload::Upload;

/// An answer whose head was taken.
pub(crate) struct Answer {
    pub(crate) passing: Arc<Passing>,
    pub(crate) server: UpstreamConnection,
    pub(crate) records: Option<Box<dyn RecordLayer>>,
    pub(crate) upload: Upload,
    pub(crate) recorder: Option<Box<dyn Recorder>>,
}

/// Throws a response's body away. The connection is kept only where nothing is left on it: of the
/// answer, and of the request's body, for which the server would take the next request.
pub(crate) fn discard(
    exchange: &mut Exchange,
    server: UpstreamConnection,
    records: Option<Box<dyn RecordLayer>>,
    upload: &Upload,
) {
    let empty = matches!(server.delivery.end, BodyEnd::None | BodyEnd::Length(0))
        && exchange.upstream.input().is_empty();
    exchange.upstream.input_mut().clear();
    let rest = Rest::nothing_if(empty && upload.is_done(exchange));
    finish(exchange, server, records, rest);
}

/// Makes the body of the exchange's response of what the connection brings.
pub(crate) fn begin(exchange: &mut Exchange, answer: Answer) -> Verdict {
    if is_here(exchange, &answer) {
        return whole_at_once(exchange, answer);
    }
    if answer.server.delivery.end == BodyEnd::None {
        return without_body(exchange, answer);
    }
    let mut relay = Relay::new(exchange, answer);
    relay.decode(exchange);
    respond(exchange, relay)
}

/// Whether all of a body is in the exchange's input, and nobody else wants to see it.
fn is_here(exchange: &Exchange, answer: &Answer) -> bool {
    let delivery = &answer.server.delivery;
    let input_bytes = exchange.upstream.input().len() as u64;
    let is_here = match &answer.records {
        None => delivery.end == BodyEnd::Length(input_bytes),
        Some(records) => {
            let ends = [BodyEnd::Length(input_bytes), BodyEnd::UntilClose];
            records.has_ended() && ends.contains(&delivery.end)
        }
    };
    is_here
        && delivery.coding.is_none()
        && answer.recorder.is_none()
        && answer.upload.is_done(exchange)
}

/// Makes what has come of a body that of the response: the client gets its head and all of this in
/// one piece if nothing else is to come.
fn respond(exchange: &mut Exchange, mut relay: Relay) -> Verdict {
    relay.settle(exchange);
    let ready_bytes = relay.ready.len() as u64;
    let length = exchange.response.content_length();
    let is_all = relay.state == State::Whole && relay.late.is_empty() && relay.spill.is_none();
    if is_all && length.is_none_or(|length| length == ready_bytes) {
        std::mem::swap(exchange.response.text_mut(), &mut relay.ready);
        exchange.response.set_body(Body::Text);
    } else {
        exchange.response.set_body(Body::Stream(Box::new(relay)));
    }
    Verdict::Respond
}

/// Why a body that was awaited is relayed.
pub(crate) enum Cut {
    /// The rest has not come in time, or may take long.
    Held,
    /// The last read has brought an end or an error in place of the rest.
    Read(io::Result<usize>),
    /// What has come is no chunk.
    Malformed,
    /// What has come is no record, for this reason.
    Invalid(String),
}

/// As [`begin`], for a body that was awaited. `reader`: what has taken the chunks off what stands
/// in the response's text.
pub(crate) fn go_on(
    exchange: &mut Exchange,
    answer: Answer,
    reader: Option<BodyReader>,
    cut: Cut,
) -> Verdict {
    if let (Cut::Held, None) = (&cut, &reader) {
        return begin(exchange, answer);
    }
    let mut relay = Relay::new(exchange, answer);
    if let Some(reader) = reader {
        relay.reader = reader;
        std::mem::swap(exchange.response.text_mut(), &mut relay.ready);
    }
    match cut {
        Cut::Held => {}
        Cut::Read(read) => {
            relay.decode(exchange);
            relay.received(exchange, read, 0);
        }
        Cut::Malformed => relay.broken(exchange, Level::Error, MALFORMED_CHUNKS),
        Cut::Invalid(reason) => {
            relay.decode(exchange);
            relay.broken(exchange, Level::Error, &reason);
        }
    }
    respond(exchange, relay)
}

/// A chunked body of which all is in the response's text: it leaves in one piece.
pub(crate) fn whole_chunks(
    exchange: &mut Exchange,
    answer: Answer,
    reader: &BodyReader,
) -> Verdict {
    let surplus = !exchange.upstream.input().is_empty();
    if surplus {
        exchange.account.set_action(Action::ReadingUpstream);
        exchange.log(Level::Warn, format_args!("{SURPLUS_BEHIND_CHUNKS}"));
        exchange.upstream.input_mut().clear();
    }
    if let Some(trailers) = reader.trailers() {
        take_trailers(
            &mut exchange.response,
            &mut exchange.upstream,
            &answer.passing,
            trailers,
        );
    }
    let rest = Rest::nothing_if(!surplus && answer.upload.is_done(exchange));
    finish(exchange, answer.server, None, rest);
    exchange.response.set_body(Body::Text);
    Verdict::Respond
}

fn without_body(exchange: &mut Exchange, answer: Answer) -> Verdict {
    let Answer {
        server,
        records,
        upload,
        mut recorder,
        ..
    } = answer;
    let is_empty = exchange.upstream.input().is_empty();
    let rest = Rest::nothing_if(is_empty && upload.is_done(exchange));
    exchange.upstream.input_mut().clear();
    if let Some(recorder) = &mut recorder {
        recorder.whole(exchange);
    }
    finish(exchange, server, records, rest);
    exchange.response.set_body(Body::Empty);
    Verdict::Respond
}

/// The usual small response: all of it came with its head, and nobody else wants to see it.
fn whole_at_once(exchange: &mut Exchange, answer: Answer) -> Verdict {
    let Answer {
        passing,
        server,
        mut records,
        ..
    } = answer;
    let trailers = records.as_mut().and_then(|records| records.take_trailers());
    if let Some(trailers) = trailers {
        take_trailers(
            &mut exchange.response,
            &mut exchange.upstream,
            &passing,
            trailers,
        );
    }
    let input = exchange.upstream.input_mut();
    let text = exchange.response.received_mut();
    std::mem::swap(input, text);
    input.clear();
    let body_bytes = text.len() as u64;
    if let Some(one) = exchange.upstream.last_try() {
        one.response_bytes = body_bytes;
    }
    finish(exchange, server, records, Rest::Nothing);
    exchange.response.set_body(Body::Text);
    Verdict::Respond
}

/// What is left on a connection: of the answer, or of the request's body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    Something,
}

impl Rest {
    pub(super) fn nothing_if(is_over: bool) -> Rest {
        if is_over {
            Rest::Nothing
        } else {
            Rest::Something
        }
    }
}

/// The response is over as far as the server is concerned: the connection is kept where it can be.
pub(super) fn finish(
    exchange: &mut Exchange,
    server: UpstreamConnection,
    records: Option<Box<dyn RecordLayer>>,
    rest: Rest,
) {
    end_try(
        &mut exchange.upstream,
        &exchange.lane,
        Some(&server.connection),
    );
    let UpstreamConnection {
        connection,
        picked,
        upstream,
        delivery,
    } = server;
    let now_ms = exchange.lane.clock.now_ms();
    let one = exchange.upstream.last_try();
    let (header_ms, response_ms, said_close) = one.map_or((0, 0, false), |one| {
        (
            one.header_ms.unwrap_or_default(),
            one.response_ms.unwrap_or_default(),
            one.said_close,
        )
    });
    let lives_on = match &records {
        Some(records) => records.is_reusable(),
        None => !said_close && delivery.keeps_connection,
    };
    let is_kept = http2_connection::of(&connection).is_none() || upstream.keeps_http2();
    if rest == Rest::Nothing && lives_on && is_kept && !picked.is_draining() {
        upstream.pool(&exchange.plan).put(connection, now_ms);
    }
    upstream.ended(exchange, picked, header_ms, response_ms);
    if let Some(records) = records {
        records.recycle(&mut exchange.rooms);
    }
}
