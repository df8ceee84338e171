//! Parts of a response: what other locations answer, included in its body (`ssi`, `addition`,
//! `echo`).

use std::cell::Cell;
use std::rc::Rc;

use turnpike_http::Quoted;
use turnpike_http::client::Client;
use turnpike_http::engine::{Answer, Outcome};
use turnpike_http::exchange::Exchange;
use turnpike_http::response::{Body, BodyFailed, BodyStream};
use turnpike_http::rooms::{Room, Rooms};
use turnpike_lane::log::Level;

/// How deep parts may include others; nginx's number. More is a part that includes itself. Each is
/// polled within the one around it, so this bounds the stack, too.
const DEPTH_MAX: u32 = 50;

/// Parts of a client's request in all, with those of its parts. One that includes itself twice
/// would have 2^50 of them.
const PARTS_MAX: u32 = 1024;

/// How deep the parts of a request are, and how many.
#[derive(Debug, Default)]
struct PartRoom {
    /// How many requests this one is within.
    depth: u32,
    /// The parts of the client's request so far, if this is one.
    parts: Rc<Cell<u32>>,
    /// The count of the client's request that this one is a part of.
    outer_parts: Option<Rc<Cell<u32>>>,
}

impl PartRoom {
    /// Counts one more part. `false`: there are too many, or they are too deep.
    fn add(&self) -> bool {
        let counter = self.counter();
        let parts = counter.get();
        let may = self.depth < DEPTH_MAX && parts < PARTS_MAX;
        counter.set(parts + u32::from(may));
        may
    }

    fn counter(&self) -> &Rc<Cell<u32>> {
        self.outer_parts.as_ref().unwrap_or(&self.parts)
    }
}

impl Room for PartRoom {
    fn clear(&mut self) {
        self.depth = 0;
        self.outer_parts = None;
        match Rc::get_mut(&mut self.parts) {
            Some(parts) => parts.set(0),
            None => self.parts = Rc::default(),
        }
    }

    fn begin_subrequest(&self, rooms: &mut Rooms) {
        let room = rooms.get_mut::<Self>();
        room.depth = self.depth + 1;
        room.outer_parts = Some(Rc::clone(self.counter()));
    }
}

/// A part that is answered and whose body is read.
pub(crate) struct Part {
    exchange: Box<Exchange>,
    body: Box<dyn BodyStream>,
}

/// A part that was asked for.
pub(crate) enum Begun {
    /// The part is answered; `None`: nobody answers.
    Answered(Option<Part>),
    /// The answer has to be waited for.
    Waits(PendingPart),
}

/// A part whose answer has to be waited for.
pub(crate) struct PendingPart {
    exchange: Box<Exchange>,
    outcome: Outcome,
}

impl PendingPart {
    /// Waits for the answer. `None`: nobody answers.
    ///
    /// # Errors
    /// When the client goes.
    pub(crate) async fn answer(
        self,
        exchange: &Exchange,
        client: Client<'_>,
    ) -> Result<Option<Part>, BodyFailed> {
        let PendingPart {
            exchange: mut asked,
            outcome,
        } = self;
        let answered = asked.drive(Client::Nobody, outcome);
        match client.unless_gone(answered).await {
            Some(Answer::Response) => Ok(Some(Part::of(asked))),
            Some(Answer::Nothing) => {
                end(exchange, asked);
                Ok(None)
            }
            None => {
                asked.client_closed_request();
                asked.end_subrequest();
                Err(BodyFailed)
            }
        }
    }

    /// Gives it up: the client has gone.
    pub(crate) fn abandon(self) {
        let PendingPart {
            exchange: mut asked,
            outcome,
        } = self;
        if let Outcome::Await(awaiting) = outcome {
            awaiting.abandoned(&mut asked);
        }
        asked.client_closed_request();
        asked.end_subrequest();
    }
}

impl Part {
    /// Asks for what stands at a path, as far as that needs no wait.
    ///
    /// # Errors
    /// When the request has too many parts, or they are too deep: what the log is to say.
    pub(crate) fn begin(
        exchange: &mut Exchange,
        path: &[u8],
        query: &[u8],
    ) -> Result<Begun, String> {
        if !exchange.rooms.get_mut::<PartRoom>().add() {
            let path = Quoted(path);
            return Err(format!("subrequests cycle while processing \"{path}\""));
        }
        let mut asked = exchange.subrequest_part(path, query);
        Ok(match asked.run_subrequest() {
            Outcome::Respond => Begun::Answered(Some(Part::of(asked))),
            Outcome::Close => {
                end(exchange, asked);
                Begun::Answered(None)
            }
            outcome @ (Outcome::Wait(_) | Outcome::Await(_)) => Begun::Waits(PendingPart {
                exchange: asked,
                outcome,
            }),
        })
    }

    /// Asks for what stands at a path. `None`: nobody answers.
    ///
    /// # Errors
    /// When the client goes, or the request has too many parts.
    pub(crate) async fn ask(
        exchange: &mut Exchange,
        client: Client<'_>,
        path: &[u8],
        query: &[u8],
    ) -> Result<Option<Part>, BodyFailed> {
        match Self::begin(exchange, path, query) {
            Ok(Begun::Answered(part)) => Ok(part),
            Ok(Begun::Waits(asked)) => asked.answer(exchange, client).await,
            Err(reason) => {
                exchange.log(Level::Error, format_args!("{reason}"));
                Err(BodyFailed)
            }
        }
    }

    /// The part that an exchange has answered.
    fn of(mut asked: Box<Exchange>) -> Part {
        if asked.response.is_head_only() {
            asked.response.set_body(Body::Empty);
            asked.response.text_mut().clear();
        }
        let body = asked.take_stream();
        Part {
            exchange: asked,
            body,
        }
    }

    /// The exchange that answers it.
    pub(crate) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Whether the answer is an error of this server: one of an upstream server comes with a text
    /// of its own.
    pub(crate) fn is_own_error(&self) -> bool {
        let status = self.exchange.response.status();
        status >= 300 && self.exchange.upstream.head().status != status
    }

    /// Appends the next piece of its body. `false`: there are no more.
    ///
    /// # Errors
    /// When its rest cannot be had, or the client goes.
    pub(crate) async fn next(
        &mut self,
        client: Client<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, BodyFailed> {
        let next = self.body.next(&mut self.exchange, Client::Nobody, out);
        client.unless_gone(next).await.unwrap_or(Err(BodyFailed))
    }

    /// As [`Part::next`], for a piece that is at hand. `None`: there is none yet.
    pub(crate) fn ready(&mut self, out: &mut Vec<u8>) -> Option<Result<bool, BodyFailed>> {
        self.body.ready(&mut self.exchange, out)
    }

    /// Ends it, read to its end or not.
    pub(crate) fn end(self, exchange: &Exchange) {
        let Part {
            exchange: mut asked,
            body,
        } = self;
        asked.response.set_body(Body::Stream(body));
        end(exchange, asked);
    }
}

/// Ends the exchange of a part; the values of variables are those of both requests.
fn end(exchange: &Exchange, asked: Box<Exchange>) {
    asked.share_values(exchange);
    asked.end_subrequest();
}
