//! The steps that every request takes, and what a handler may answer in each.
//!
//! ```text
//!  PostRead ─► ServerRewrite ─► FindLocation ─► Rewrite ─► PostRewrite ─┐
//!                                    ▲                                  │ the path was changed
//!                                    ├──────────────────────────────────┤
//!                                    │ internal redirect                ▼
//!                                    └───── Content ◄─ PreContent ◄─ Access ◄─ PreAccess
//!                                               │
//!                                               ▼
//!                                    filters ─► the wire ─► Log
//! ```
//!
//! The phases and their order are nginx's, so that directives act in the order its users know.
//! The engine that walks them is in [`crate::engine`].

pub(crate) mod order;

use std::time::Duration;

use turnpike_lane::event_loop::WatchedSocket;

use crate::client::Client;
use crate::exchange::Exchange;
use crate::response::LocalFuture;
pub use order::{HandlerPlace, PHASE_COUNT, Phase};

/// A handler's decision.
pub enum Verdict {
    /// The handler does not apply: the next handler of the phase runs, then the next phase.
    Declined,
    /// The phase is done: what is left of it is skipped (in `Access`: granted).
    Finished,
    /// The response in the exchange is ready to be sent.
    Respond,
    /// Answer with this status: `error_page` is looked at, else nginx's own page is sent.
    Status(u16),
    /// The path (and query) of the exchange were replaced: look for a location again. Counted
    /// against the limit of internal redirects.
    Redirect,
    /// Go on in this named location of the server.
    Named(String),
    /// The path was rewritten by a rewrite directive; located again once the phase ends.
    Rewritten,
    /// A match that the handler needs has no verdict yet ([`Exchange::is_undecided`]). What it has
    /// done does not count: the engine asks it again once the match is finished, or answers 500.
    Undecided,
    /// Close the connection without an answer.
    Close,
    /// The answer needs time; the exchange leaves the fast path and the connection becomes driven.
    Wait(Box<dyn Waiting>),
    /// The answer comes from a watched socket of the lane; until then the exchange is parked.
    Await(Box<dyn Awaiting>),
}

/// Something that handles a request in one phase of a location or server.
///
/// `handle` must not block: no lock held long, no network; what waits returns [`Verdict::Wait`].
pub trait Handler: Send + Sync {
    /// Looks at the exchange, changes it, and says how to go on.
    fn handle(&self, exchange: &mut Exchange) -> Verdict;

    /// Whether what it does depends only on host, path and query of the request, and on files: see
    /// [`Difference`](crate::difference::Difference). It is always safe to say no.
    fn is_same_for_all(&self) -> bool {
        false
    }
}

/// Work that a handler could not do at once.
pub trait Work {
    /// Does the work. The client's stream is at hand, for reading the request body.
    fn run(self, exchange: &mut Exchange, client: Client<'_>) -> impl Future<Output = Verdict>;
}

/// Any [`Work`], as a verdict carries it.
pub trait Waiting {
    /// Does the work.
    fn run<'a>(
        self: Box<Self>,
        exchange: &'a mut Exchange,
        client: Client<'a>,
    ) -> LocalFuture<'a, Verdict>;
}

impl<W: Work + 'static> Waiting for W {
    fn run<'a>(
        self: Box<Self>,
        exchange: &'a mut Exchange,
        client: Client<'a>,
    ) -> LocalFuture<'a, Verdict> {
        Box::pin(Work::run(*self, exchange, client))
    }
}

/// A response that a watched socket of the lane (an upstream server) brings, without a task.
///
/// Work beyond reading the response needs a [`Waiting`].
pub trait Awaiting {
    /// The socket that brings the answer.
    fn watched_socket(&self) -> &WatchedSocket;
    /// When it must have brought all, in the lane's monotonic milliseconds; 0: never.
    fn deadline_ms(&self) -> u64;
    /// Whether it is given up when the client goes.
    fn needs_client(&self) -> bool;
    /// Something has come: [`Verdict::Await`] again where that was not all.
    fn ready(self: Box<Self>, exchange: &mut Exchange) -> Verdict;
    /// Not all has come in time.
    fn timed_out(self: Box<Self>, exchange: &mut Exchange) -> Verdict;
    /// The client has gone: says so in the log.
    fn abandoned(self: Box<Self>, exchange: &mut Exchange);
    /// Goes on as a future, where the exchange is driven already.
    fn into_waiting(self: Box<Self>) -> Box<dyn Waiting>;
}

/// Waits for a time, then gives a verdict.
pub struct Delay {
    /// The delay in milliseconds.
    pub delay_ms: u64,
    /// The verdict after the delay.
    pub verdict: Verdict,
}

impl Work for Delay {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let pause = tokio::time::sleep(Duration::from_millis(self.delay_ms));
        let waited = client.unless_gone(pause).await;
        match waited {
            Some(()) => self.verdict,
            None => exchange.client_went_away(),
        }
    }
}

/// Changes a response's head (and replaces its body) before it is sent.
pub trait Filter: Send + Sync {
    /// Looks at the response of the exchange and changes it. A status replaces the response by
    /// the page for that status (412, 416); the fields stay, but for those the filter takes away.
    fn filter(&self, exchange: &mut Exchange) -> Option<u16>;

    /// Whether responses are filtered too that become parts of another one: filters that change the
    /// text itself do that.
    fn filters_parts(&self) -> bool {
        false
    }

    /// As [`Handler::is_same_for_all`], where the request has neither conditions nor a range.
    fn is_same_for_all(&self) -> bool {
        false
    }
}

/// Places of filters, in the order in which they see a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilterPlace {
    /// Parts of the whole, which are put together.
    Parts,
    /// Conditional requests: 304 and 412.
    NotModified,
    /// Fields added by configuration.
    Headers,
    /// Bodies that are expanded, so that others can look at their text.
    Expand,
    /// Responses of other locations, added before and after the body.
    Add,
    /// Texts in which strings are replaced.
    Replace,
    /// Content types and character sets.
    Charset,
    /// Texts that include others.
    Include,
    /// Bodies that are compressed.
    Transform,
    /// Ranges of the final body.
    Range,
    /// Trailer fields.
    Trailers,
    /// Metrics that are counted once the head is known.
    Metrics,
}

/// Writes down an exchange after it has ended.
pub trait Logger: Send + Sync {
    /// Called once, after the last byte was sent or the exchange was given up.
    fn log(&self, exchange: &Exchange);

    /// Called for an exchange that was made from a sample of a request that no lane answered: see
    /// [`SampleSource`](crate::sampling::SampleSource). Loggers that do more than write a line must
    /// do nothing.
    fn log_sampled(&self, _exchange: &Exchange) {}
}
