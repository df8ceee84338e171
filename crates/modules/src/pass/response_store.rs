//! Where a cache joins in: it may answer before a server is asked, and keep what one answers.
//!
//! ```text
//!  look_up ──► Answer                        a response from the store; nobody is asked
//!      │ Pass ──► servers are asked, nothing is kept
//!      │ Record(Recorder) ──► method, fields ──► head ──► piece ... ──► whole
//!                                               │                 └► broken
//!                                               └─ failed: a stale response may do instead
//! ```
//!
//! The proxy knows nothing of what is kept or why; a response store sees no connection.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_http::difference::Difference;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Verdict, Waiting};
use turnpike_http::plan::LocationIndex;
use turnpike_http::rooms::Rooms;
use turnpike_wire::message::{Fields, Known, Method};

use super::conditions::Failure;
use super::response::ResponseRules;

/// A store that may answer in place of the upstream servers of a location.
pub(crate) trait ResponseStore: Send + Sync {
    /// Asked for each request, before its body is read and before a server is chosen, and once
    /// more after every wait. `exchange.upstream.host()` and `.port` are set, and `.target` is what
    /// will be asked of any server: the scheme, that host, and the path with its query.
    fn look_up(&self, exchange: &mut Exchange) -> Lookup;

    /// The fields of early hints that it knows of the response, although it cannot give it. Asked
    /// before a server is, and before each wait; they are told once.
    fn hints(&self, _rooms: &mut Rooms) -> Option<Fields> {
        None
    }

    /// Whether some of its answers are the same for all requests for one host, path and query, and
    /// are noted as such.
    fn notes_originals(&self) -> bool {
        false
    }

    /// Why the answer to this request may differ from that to another one, after the look-up;
    /// `None`: it does not.
    fn difference(&self, _exchange: &Exchange) -> Option<Difference> {
        Some(Difference::Content)
    }
}

/// What a response store makes of a request.
pub(crate) enum Lookup {
    /// The answer is in the exchange, or the verdict says what to do.
    Answer(Verdict),
    /// Servers are asked; what they answer is not kept.
    Pass,
    /// Servers are asked, and this looks at what they answer.
    Record(Box<dyn Recorder>),
    /// The request has to wait (for another one that fetches the same). The future gives
    /// [`Verdict::Declined`] where servers are to be asked after all; then
    /// [`ResponseStore::look_up`] is asked once more.
    Wait(Box<dyn Waiting>),
}

/// One response that may be kept.
pub(crate) trait Recorder {
    /// The method that servers are asked with, where it is not the client's (`GET` for `HEAD`).
    fn method(&self) -> Option<Method> {
        None
    }

    /// Whether the request's own conditions and ranges are kept from the servers
    /// (`If-Modified-Since`, `If-None-Match`, `Range` and their like), since the whole response is
    /// wanted.
    fn replaces_conditions(&self) -> bool {
        true
    }

    /// Adds fields to the request by name and value: conditions of its own, to ask whether what is
    /// kept still holds.
    fn fields(&self, _exchange: &Exchange, _add: &mut dyn FnMut(Known, &[u8])) {}

    /// Whether servers are asked to the end though the client has gone, since others want to have
    /// what is kept.
    fn outlives_client(&self) -> bool {
        true
    }

    /// A response's head is here: `exchange.upstream.head()`, and what will be sent of it in
    /// `exchange.response`. Called only for final responses, after which no other
    /// server is asked.
    fn head(&mut self, exchange: &mut Exchange) -> RecorderDecision;

    /// A response has come in whose place a page of ours is sent (`proxy_intercept_errors`).
    fn intercepted(&mut self, _exchange: &mut Exchange) {}

    /// A response has come that leads to another one of ours (`X-Accel-Redirect`).
    fn redirected(&mut self, _exchange: &Exchange) {}

    /// Bytes of the body have come, in order; before they are sent.
    fn piece(&mut self, bytes: &[u8]);

    /// The whole body has come. Called before its last bytes are sent.
    fn whole(&mut self, exchange: &mut Exchange);

    /// The body ended too early. Dropping the recorder without a word means the same.
    fn broken(&mut self, _exchange: &mut Exchange) {}

    /// No server gave a response. Some verdict: a kept response is in the exchange, and will do.
    fn failed(&mut self, _exchange: &mut Exchange, _failure: Failure) -> Option<Verdict> {
        None
    }
}

/// What becomes of a response.
pub(crate) enum RecorderDecision {
    /// The response is sent, and its body shown to the recorder.
    Record,
    /// The response is sent and not kept.
    Pass,
    /// The response is thrown away: the exchange holds another (`304` renewed what is kept).
    Replace(Verdict),
    /// The response is thrown away, and servers are asked anew: the first question led nowhere. A
    /// keeping wishes this once.
    AskAgain,
}

/// Makes the store of a location where responses become ours by these rules.
pub(crate) type MakeStore = Box<dyn FnOnce(Arc<ResponseRules>) -> Arc<dyn ResponseStore>>;

/// The makers of locations' response stores, left here by the families that have them.
#[derive(Default)]
pub(crate) struct ResponseStores(HashMap<(&'static str, u32), MakeStore>);

impl ResponseStores {
    /// Gives a location a response store, for the family with this prefix.
    pub(crate) fn put(&mut self, prefix: &'static str, location: LocationIndex, make: MakeStore) {
        self.0.insert((prefix, location.0), make);
    }

    /// Takes what makes the response store of a location.
    pub(crate) fn take(
        &mut self,
        prefix: &'static str,
        location: LocationIndex,
    ) -> Option<MakeStore> {
        self.0.remove(&(prefix, location.0))
    }
}
