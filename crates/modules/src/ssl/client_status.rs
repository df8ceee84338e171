//! `ssl_ocsp`: whether certificates of clients are revoked, as the responders of their CAs say.
//!
//! A lane asks, in the future that a handshake waits for. Whoever's state is not known is refused:
//! somebody who can keep answers away must not make a revoked certificate a good one.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use turnpike_conf::{ConfError, View, value};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::process::unix_s;
use turnpike_plan::builder::Builder;
use turnpike_plan::tls::{Asking, StatusFailure, StatusSource, VerifyClient};
use turnpike_wire::certificate::Certificate;
use turnpike_wire::ocsp::{CertificateId, State};

use super::clients;
use super::ocsp::{self, Question, Signers, URL_START, Verdict};
use crate::common::own_request::Outlet;

/// Bytes of a cache that one state is counted with: the two digests, the number and the time of a
/// certificate twice, for the finding and for the order.
const STATE_BYTES: u64 = 256;

/// Chains of a server that are asked for at a time. Each has a connection to a responder; where
/// more wait, the responder does not answer, and further clients are refused.
const ASKED_MAX: usize = 1024;

/// What a server does about the states of its clients' certificates.
pub(super) struct ClientStatuses(Arc<StatusClient>);

/// What asks.
struct StatusClient {
    /// Whether only the state of the client's own certificate counts.
    is_leaf_only: bool,
    /// The responder of all certificates; `None`: each names its own.
    responder: Option<String>,
    cache: Option<Arc<StatusCache>>,
    outlet: Outlet,
    log: ErrorLog,
    /// How many chains are being asked for.
    asked: AtomicUsize,
}

/// A certificate of a chain whose state is wanted.
struct Wanted {
    question: Question,
    /// Where its state is known; the error is for the log.
    responder: Result<String, String>,
}

/// A chain that is counted as one that is asked for.
struct Counted(Arc<StatusClient>);

/// States of certificates, for all lanes.
struct StatusCache {
    states_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Each with its end, in Unix seconds.
    states: HashMap<CertificateId, (State, u64)>,
    /// The order in which they end.
    ends: BTreeSet<(u64, CertificateId)>,
}

/// What knows the states of clients' certificates, as the directives in force say. `None`: nobody
/// is asked.
///
/// # Errors
/// What the directives say that cannot be, in nginx's words.
pub(super) fn statuses<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<Option<Arc<dyn StatusSource>>, ConfError> {
    let mode = view.choice("ssl_ocsp");
    let Some(entry) = view.nearest("ssl_ocsp").filter(|_| mode != "off") else {
        return Ok(None);
    };
    if clients::mode(view) == VerifyClient::OptionalNoCa {
        let message = "\"ssl_ocsp\" is incompatible with \"ssl_verify_client optional_no_ca\"";
        return Err(view.error(entry.span, message));
    }
    let responder = view.try_text("ssl_ocsp_responder").map(str::to_owned);
    if let (Some(url), Some(entry)) = (&responder, view.nearest("ssl_ocsp_responder")) {
        check_url(url).map_err(|why| {
            let message = format!("{why} in OCSP responder \"{url}\" in \"ssl_ocsp_responder\"");
            view.error(entry.span, message)
        })?;
    }
    let entries = view.nearest_all("error_log");
    let log = builder.environment.error_log(&entries);
    Ok(Some(Arc::new(ClientStatuses(Arc::new(StatusClient {
        is_leaf_only: mode == "leaf",
        responder,
        cache: cache(view, builder),
        outlet: ocsp::outlet(view, builder)?,
        log: log.map_err(|error| view.error(view.span(), String::from(error)))?,
        asked: AtomicUsize::new(0),
    })))))
}

/// nginx's words.
fn check_url(url: &str) -> Result<(), &'static str> {
    if !url.starts_with(URL_START) {
        return Err("invalid URL prefix");
    }
    let parsed: Result<http::Uri, _> = url.parse();
    if parsed.is_ok_and(|uri| uri.host().is_some_and(|host| !host.is_empty())) {
        Ok(())
    } else {
        Err("invalid host")
    }
}

fn cache<S>(view: View<'_>, builder: &mut Builder<'_, S>) -> Option<Arc<StatusCache>> {
    let text = view.try_text("ssl_ocsp_cache")?;
    let ["shared", name, size] = text.split(':').collect::<Vec<_>>()[..] else {
        return None;
    };
    let states = value::size(size).unwrap_or_default() / STATE_BYTES;
    let states_max = usize::try_from(states).unwrap_or(usize::MAX).max(1);
    let make = || {
        Arc::new(StatusCache {
            states_max,
            kept: Mutex::default(),
        }) as Arc<_>
    };
    // A cache of another size is another one.
    let key = format!("ssl ocsp {name} {states_max}");
    builder.environment.zone(&key, &make).downcast().ok()
}

impl StatusSource for ClientStatuses {
    fn ask(&self, chain: &[&[u8]]) -> Asking {
        let asker = &self.0;
        let mut wanted = match asker.wanted(chain) {
            Some(wanted) => wanted.into_iter().peekable(),
            // A chain whose certificates could be read before.
            None => return Asking::Done(Err(StatusFailure::Unanswered)),
        };
        while let Some(next) = wanted.peek()
            && let Some(state) = asker.known(&next.question.id)
        {
            if let Err(failure) = passes(state) {
                return Asking::Done(Err(failure));
            }
            wanted.next();
        }
        if wanted.peek().is_none() {
            return Asking::Done(Ok(()));
        }
        let Some(counted) = Counted::new(asker) else {
            let what = format_args!("{ASKED_MAX} certificate status requests are waiting already");
            asker.log.event(Level::Error, what);
            return Asking::Done(Err(StatusFailure::Unanswered));
        };
        Asking::Later(Box::pin(async move {
            for one in wanted {
                passes(counted.0.state(&one).await?)?;
            }
            Ok(())
        }))
    }
}

fn passes(state: State) -> Result<(), StatusFailure> {
    match state {
        State::Good => Ok(()),
        State::Revoked => Err(StatusFailure::Revoked),
        State::Unknown => Err(StatusFailure::Unknown),
    }
}

impl StatusClient {
    /// The certificates of a chain whose states are wanted, the client's own first.
    fn wanted(&self, chain: &[&[u8]]) -> Option<Vec<Wanted>> {
        let pairs = chain.windows(2).map(|pair| {
            let certificate = Certificate::read(pair[0])?;
            Some(Wanted {
                question: Question::new(&certificate, pair[1])?,
                responder: self.responder_of(&certificate),
            })
        });
        let count = if self.is_leaf_only { 1 } else { usize::MAX };
        pairs.take(count).collect()
    }

    fn responder_of(&self, certificate: &Certificate<'_>) -> Result<String, String> {
        if let Some(responder) = &self.responder {
            return Ok(responder.clone());
        }
        let url = certificate.extensions.ocsp_responder();
        let url = url.and_then(|url| std::str::from_utf8(url).ok());
        let Some(url) = url else {
            return Err("no OCSP responder URL in the certificate".to_owned());
        };
        match check_url(url) {
            Ok(()) => Ok(url.to_owned()),
            Err(why) => Err(format!(
                "{why} in OCSP responder \"{url}\" in the certificate"
            )),
        }
    }

    /// The state that the cache has.
    fn known(&self, id: &CertificateId) -> Option<State> {
        self.cache.as_ref()?.find(id, unix_s())
    }

    /// The state of a certificate, from the cache or from its responder.
    async fn state(&self, wanted: &Wanted) -> Result<State, StatusFailure> {
        if let Some(state) = self.known(&wanted.question.id) {
            return Ok(state);
        }
        let asked = self.verdict(wanted).await;
        let verdict = asked.map_err(|why| {
            let responder = wanted.responder.as_deref().unwrap_or("none");
            let what =
                format_args!("{why} while requesting certificate status, responder: {responder}");
            self.log.event(Level::Error, what);
            StatusFailure::Unanswered
        })?;
        if let (Some(cache), Some(until_s)) = (&self.cache, verdict.until_s) {
            cache.keep(&wanted.question.id, (verdict.state, until_s), unix_s());
        }
        Ok(verdict.state)
    }

    async fn verdict(&self, wanted: &Wanted) -> Result<Verdict, String> {
        let responder = wanted.responder.as_ref().map_err(String::clone)?;
        let der = wanted.question.ask(&self.outlet, responder).await?;
        wanted.question.judge(&der, Signers::Issuer, unix_s())
    }
}

impl Counted {
    /// `None`: too many are asked for already.
    fn new(asker: &Arc<StatusClient>) -> Option<Counted> {
        let before = asker.asked.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(Arc::clone(asker));
        (before < ASKED_MAX).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.asked.fetch_sub(1, Ordering::Relaxed);
    }
}

impl StatusCache {
    fn find(&self, id: &CertificateId, now_s: u64) -> Option<State> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, until_s) = kept.states.get(id)?;
        (*until_s > now_s).then_some(*state)
    }

    /// Keeps a state with its end. Where the cache is full, the one that ends first goes.
    fn keep(&self, id: &CertificateId, (state, until_s): (State, u64), now_s: u64) {
        if until_s <= now_s {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        if let Some((_, end_s)) = kept.states.insert(id.clone(), (state, until_s)) {
            kept.ends.remove(&(end_s, id.clone()));
        }
        kept.ends.insert((until_s, id.clone()));
        while kept.states.len() > self.states_max
            && let Some((_, first)) = kept.ends.pop_first()
        {
            kept.states.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    //! What a cache keeps.

    use super::{CertificateId, State, StatusCache};

    fn id(serial: u8) -> CertificateId {
        CertificateId {
            issuer_name: [0; 20],
            issuer_key: [0; 20],
            serial: vec![serial],
        }
    }

    #[test]
    fn a_state_is_kept_until_its_end_or_until_there_are_too_many() {
        let cache = StatusCache {
            states_max: 2,
            kept: Default::default(),
        };
        cache.keep(&id(1), (State::Good, 50), 50);
        assert_eq!(cache.find(&id(1), 50), None, "it had ended");
        cache.keep(&id(1), (State::Good, 60), 50);
        assert_eq!(cache.find(&id(1), 59), Some(State::Good));
        assert_eq!(cache.find(&id(1), 60), None);
        // The same one takes no other's place.
        cache.keep(&id(1), (State::Revoked, 100), 50);
        cache.keep(&id(2), (State::Good, 80), 50);
        assert_eq!(cache.find(&id(1), 99), Some(State::Revoked));
        cache.keep(&id(3), (State::Unknown, 90), 50);
        let left = [1, 2, 3].map(|serial| cache.find(&id(serial), 50));
        assert_eq!(left, [Some(State::Revoked), None, Some(State::Unknown)]);
    }
}
