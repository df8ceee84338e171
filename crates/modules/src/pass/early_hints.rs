//! `early_hints`: `103 Early Hints` (RFC 8297) of upstream servers on their way to the client, and
//! those that a cache has learned.

use turnpike_http::client::{Client, InterimHead};
use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_lane::log::Level;
use turnpike_wire::message::{Entry, Fields, Head, Known, Method, Version};

use super::settings::Passing;
use crate::common::predicates::any_holds;

/// The status of early hints.
pub(crate) const EARLY_HINTS: u16 = 103;

/// Hints that wait to be sent, and how many there were.
#[derive(Default)]
pub(crate) struct Hints {
    /// The fields of each.
    waiting: Vec<Fields>,
    /// Bytes of all hints of this try; no more than the first part of a response may have.
    seen_bytes: usize,
}

impl Hints {
    /// The hints that the response store knows, where the client is to see them.
    pub(crate) fn of_store(exchange: &mut Exchange, passing: &Passing) -> Hints {
        let mut hints = Hints::default();
        let Some(store) = &passing.response_store else {
            return hints;
        };
        if exchange.method() == Method::Get
            && exchange.purpose() == Purpose::Request
            && are_wanted(exchange, passing)
            && let Some(fields) = store.hints(&mut exchange.rooms)
        {
            let mut head = Head::response(EARLY_HINTS, b"");
            head.fields = fields;
            hints.take(exchange, passing, &head);
        }
        hints
    }

    /// Whether there is something to be sent.
    pub(crate) fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the hints of an interim head, where the client is to see them.
    pub(crate) fn take(&mut self, exchange: &Exchange, passing: &Passing, head: &Head) {
        if head.status != EARLY_HINTS
            || exchange.purpose() != Purpose::Request
            || !are_wanted(exchange, passing)
        {
            return;
        }
        self.seen_bytes += head.fields.bytes().len();
        if self.seen_bytes > passing.buffers.first_bytes {
            exchange.log(
                Level::Info,
                format_args!("upstream sent too big early hints"),
            );
            return;
        }
        let mut fields = Fields::default();
        for Entry { known, name, value } in head.fields.entries() {
            if passing.responses.hidden.has(known, name)
                || is_of_connection(known)
                || head.is_connection_option(name)
                || !exchange.may_send_value(value)
            {
                continue;
            }
            fields.add(name, value);
        }
        // Else nothing is hinted at.
        if !fields.is_empty() {
            self.waiting.push(fields);
        }
    }

    /// Sends what waits. A client that takes none is found out by the answer.
    pub(crate) async fn send(&mut self, exchange: &mut Exchange, client: Client<'_>) {
        for fields in self.waiting.drain(..) {
            let head = InterimHead {
                status: EARLY_HINTS,
                fields: &fields,
            };
            if client.send_interim(exchange, &head).await.is_err() {
                return;
            }
        }
    }
}

/// Whether the client is to see hints: where the configuration does not say, if it knows them.
fn are_wanted(exchange: &Exchange, passing: &Passing) -> bool {
    let version = exchange.request().head().version;
    if passing.early_hints.is_empty() {
        let mode = exchange.field(b"Sec-Fetch-Mode");
        return knows_hints(is_multiplexed(version), mode);
    }
    let understands = !matches!(version, Version::Http09 | Version::Http10);
    understands && any_holds(exchange, &passing.early_hints)
}

/// Whether a client is one that is known to make use of hints: a browser that opens a page, and
/// talks HTTP/2 or later. Browsers ignore hints in HTTP/1.1, and between them and us there may be
/// proxies that pass on their fields and take a 103 for the answer.
pub(crate) fn knows_hints(multiplexed: bool, fetch_mode: Option<&[u8]>) -> bool {
    multiplexed && fetch_mode.is_some_and(|mode| mode.eq_ignore_ascii_case(b"navigate"))
}

/// Whether it is HTTP/2 or later.
fn is_multiplexed(version: Version) -> bool {
    !matches!(version, Version::Http09 | Version::Http10 | Version::Http11)
}

/// Fields that say nothing of the response itself.
fn is_of_connection(known: Known) -> bool {
    matches!(
        known,
        Known::ContentLength
            | Known::Connection
            | Known::KeepAlive
            | Known::TransferEncoding
            | Known::Upgrade
            | Known::Trailer
    )
}
