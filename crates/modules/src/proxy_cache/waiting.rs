//! Waiting for the request that fetches the same, or for a file that is looked through.

use std::sync::Arc;
use std::time::Duration;

use turnpike_cache::fetch::{Fetch, FetchOutcome, Turn, TurnAnswer};
use turnpike_cache::stored::{StoredBody, Variant};
use turnpike_cache::why::WhyNotStored;
use turnpike_http::body::Progress;
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Verdict, Work};
use turnpike_http::rooms::Rooms;
use turnpike_lane::files::OpenFile;
use turnpike_lane::log::Level;
use turnpike_plan::background::run_blocking;
use turnpike_wire::message::Method;

use super::handler::{Question, request_field};
use super::note::note;

/// What a wait has brought, left with the exchange for the next look.
pub(super) struct Waited {
    /// This request fetches.
    pub(super) turn: Option<Turn>,
    /// We fetch out of turn, and do not store.
    pub(super) why: Option<WhyNotStored>,
}

impl Waited {
    pub(super) fn take(rooms: &mut Rooms) -> Option<Self> {
        rooms.take_held()
    }
}

/// Reads the request's content, which its key may hold, or enough of it to see that there is
/// some.
pub(super) struct ReadingBody {
    pub(super) is_all_wanted: bool,
}

impl Work for ReadingBody {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        if self.is_all_wanted {
            return match client.read_body(exchange).await {
                Ok(()) => Verdict::Declined,
                Err(verdict) => verdict,
            };
        }
        while exchange.body.length() == 0 {
            match client.read_body_piece(exchange).await {
                Ok(Progress::Incomplete) => {}
                Ok(Progress::Complete) => break,
                Err(verdict) => return verdict,
            }
        }
        Verdict::Declined
    }
}

/// Waits until the key is stored, or may be fetched.
pub(super) struct Waiter {
    pub(super) question: Question,
    pub(super) fetch: Arc<Fetch>,
}

impl Work for Waiter {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let limit = Duration::from_millis(self.question.settings.lock_timeout_ms);
        let wait = tokio::time::timeout(limit, self.wait(exchange));
        let waited = client.unless_gone(wait).await;
        match waited {
            Some(Ok(None)) => note(&mut exchange.rooms).collapsed = true,
            Some(Ok(Some(waited))) => exchange.rooms.hold(waited),
            Some(Err(_)) => exchange.rooms.hold(Waited {
                turn: None,
                why: Some(WhyNotStored::LockTimeout),
            }),
            None => return exchange.client_went_away(),
        }
        Verdict::Declined
    }
}

impl Waiter {
    /// `None`: it is stored now.
    async fn wait(&self, exchange: &Exchange) -> Option<Waited> {
        let question = &self.question;
        let mut fetch = self.fetch.clone();
        loop {
            // Polls of the lock's age: whoever fetches for too long is joined.
            let age = Duration::from_millis(question.settings.lock_age_ms.max(1));
            let outcome = tokio::time::timeout(age, fetch.ended()).await;
            match outcome {
                Ok(FetchOutcome::Stored) if self.is_stored(exchange) => return None,
                Ok(FetchOutcome::NotStored) => {
                    return Some(Waited {
                        turn: None,
                        why: Some(WhyNotStored::LockTimeout),
                    });
                }
                // Another variant was stored, the fetch failed, or it takes too long.
                Ok(FetchOutcome::Stored | FetchOutcome::Failed) | Err(_) => {}
            }
            let mono_ms = exchange.lane.clock.now_ms();
            let fetches = question.zone.fetches();
            match fetches.ask(&question.key, mono_ms, question.settings.lock_age_ms) {
                TurnAnswer::Ours(_) if self.is_stored(exchange) => return None,
                TurnAnswer::Ours(turn) => {
                    return Some(Waited {
                        turn: Some(turn),
                        why: None,
                    });
                }
                TurnAnswer::Theirs(next) => fetch = next,
            }
        }
    }

    fn is_stored(&self, exchange: &Exchange) -> bool {
        let now_ms = exchange.lane.clock.unix_ms();
        let head = exchange.method() == Method::Head;
        let field = |name: &[u8], out: &mut Vec<u8>| request_field(exchange, name, out);
        let question = &self.question;
        let found = question.zone.find(&question.key, head, &field, now_ms);
        found.is_some_and(|variant| variant.timing().is_fresh(now_ms))
    }
}

/// Looks a file through on another thread. A broken one is taken away.
pub(super) struct Checking {
    pub(super) question: Question,
    pub(super) variant: Arc<Variant>,
    pub(super) opened: OpenFile,
}

impl Work for Checking {
    async fn run(self, exchange: &mut Exchange, _: Client<'_>) -> Verdict {
        let variant = self.variant.clone();
        let descriptor = self.opened.descriptor();
        let file = descriptor.and_then(|one| one.try_clone_to_owned().ok());
        let checked = run_blocking(move || match (&variant.body, file) {
            (StoredBody::File(stored), Some(file)) => stored.check(&file.into()),
            _ => false,
        });
        // Too many files are looked through. This one may be sound, but nobody knows.
        let Ok(checked) = checked else {
            return Verdict::Status(503);
        };
        if !checked.await.unwrap_or(false) {
            if let StoredBody::File(stored) = &self.variant.body {
                let path = stored.path().display();
                exchange.log(
                    Level::Crit,
                    format_args!("cache file \"{path}\" is damaged and is removed"),
                );
            }
            let question = &self.question;
            question.zone.discard(&question.key, &self.variant);
        }
        Verdict::Declined
    }
}
