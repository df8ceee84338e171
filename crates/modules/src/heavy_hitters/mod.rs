//! `heavy_hitters`: the URLs, hosts and clients whose requests took the most time in the last
//! minute, for `turnpike top` and the live page.
//!
//! Nothing is counted where the directive is not in force. Each lane has sketches of its own, which
//! a reader looks at; a lane never waits for it.

mod sketch;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use turnpike_conf::{
    Arguments, ConfError, Context, Merge, ReferenceText, Repeat, Row, Value, View,
};
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Logger;
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::variables::append_address;
use turnpike_lane::counters::Kind;
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_plan::Quoted;
use turnpike_plan::metrics::{self, Reader, Samples};

use crate::common::zone;
use sketch::{Figures, KEY_BYTES_MAX, Recent};

const NAME: &str = "heavy_hitters";

const ROWS: &[Row] = &[Row {
    name: NAME,
    contexts: &[Context::Http, Context::Server, Context::Location],
    arguments: Arguments::exactly(1),
    value: Value::Flag,
    repeat: Repeat::Once,
    merge: Merge::Nearest,
    variables: None,
    syntax: "on | off",
    default: "off",
    summary: "Finds the URLs, hosts and clients whose requests took the most time in the last \
        minute, and shows them in `turnpike top` and on the live page (`status html`).",
}];

/// What keys are about, in the order of the sketches of a lane.
const SUBJECTS: [&str; 3] = ["url", "host", "client"];

/// The keys of each subject that are shown: a person reads no more.
const SHOWN_MAX: usize = 10;

const PLAIN: metrics::Row = metrics::Row {
    name: "heavy_hitter_requests",
    kind: Kind::Ranking,
    unit: "requests",
    labels: &["subject", "name"],
    help: "Finished requests of a heavy URL, host or client in the last minute (heavy_hitters).",
};

const METRICS: &[metrics::Row] = &[
    PLAIN,
    metrics::Row {
        name: "heavy_hitter_seconds",
        unit: "seconds",
        help: "Total time of these requests, in whole milliseconds.",
        ..PLAIN
    },
    metrics::Row {
        name: "heavy_hitter_slowest_seconds",
        unit: "seconds",
        help: "Time of the slowest of these requests.",
        ..PLAIN
    },
    metrics::Row {
        name: "heavy_hitter_server_errors",
        help: "Of these requests, those answered with 5xx.",
        ..PLAIN
    },
];

/// The sketches of lanes. Lanes above this number share them.
const LANES_MAX: usize = 64;

/// What all lanes have found. A reload keeps it.
struct Found([Mutex<[Recent; SUBJECTS.len()]>; LANES_MAX]);

impl Default for Found {
    fn default() -> Self {
        Found(std::array::from_fn(|_| Mutex::default()))
    }
}

/// The sketches, where the directive stands anywhere.
#[derive(Default)]
struct Counting(Option<Arc<Found>>);

pub(crate) const FAMILY: Family = Family {
    name: NAME,
    rows: ROWS,
    reference: &[ReferenceText::new(include_str!("reference.md"))],
    metrics: METRICS,
    is_silent_unless_written: true,
    location,
    ..Family::NONE
};

fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    if !view.flag(NAME) {
        return Ok(());
    }
    let found = match builder.store::<Counting>().0.clone() {
        Some(found) => found,
        None => {
            let found = zone::unnamed(builder, NAME, Found::default);
            builder.metrics(found.clone());
            builder.store::<Counting>().0 = Some(found.clone());
            found
        }
    };
    draft.add_logger(found);
    Ok(())
}

impl Logger for Found {
    fn log(&self, exchange: &Exchange) {
        // Who reads holds the lock for microseconds; a lane that meets it leaves the request out.
        let mut recent = match self.0[exchange.lane.index % LANES_MAX].try_lock() {
            Ok(recent) => recent,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let now_ms = exchange.lane.clock.now_ms();
        let took_ms = now_ms.saturating_sub(exchange.account.started_ms());
        let figures = Figures {
            requests: 1,
            time_ms: took_ms,
            slowest_ms: took_ms,
            server_errors: u64::from(exchange.logged_status() / 100 == 5),
        };
        let [urls, hosts, clients] = &mut *recent;
        let mut key = Vec::with_capacity(KEY_BYTES_MAX);
        exchange.append_host(&mut key);
        hosts.add(now_ms, &key, figures);
        // Without the query, which has the secrets.
        key.extend_from_slice(exchange.request().head().path());
        urls.add(now_ms, &key, figures);
        key.clear();
        match exchange.requester.peer() {
            PeerAddress::Inet(address) => append_address(&mut key, address.ip()),
            PeerAddress::Unix => key.extend_from_slice(b"unix:"),
        }
        clients.add(now_ms, &key, figures);
    }
}

impl Reader for Found {
    fn read(&self, samples: &mut Samples) {
        let [requests, seconds, slowest, server_errors] = METRICS else {
            return;
        };
        let now_ms = monotonic_ns() / 1_000_000;
        let mut sums: [HashMap<Vec<u8>, Figures>; SUBJECTS.len()] = Default::default();
        for lane in &self.0 {
            let mut recent = lane.lock().unwrap_or_else(PoisonError::into_inner);
            for (recent, sums) in recent.iter_mut().zip(&mut sums) {
                recent.read(now_ms, sums);
            }
        }
        for (subject, sums) in SUBJECTS.iter().zip(sums) {
            let mut heaviest: Vec<(Vec<u8>, Figures)> = sums.into_iter().collect();
            heaviest.sort_by_key(|(key, figures)| {
                (Reverse((figures.time_ms, figures.requests)), key.clone())
            });
            for (key, figures) in heaviest.iter().take(SHOWN_MAX) {
                let labels = [subject, &*Quoted(key).to_string()];
                samples.number(requests, &labels, figures.requests);
                samples.real(seconds, &labels, figures.time_ms as f64 / 1e3);
                samples.real(slowest, &labels, figures.slowest_ms as f64 / 1e3);
                samples.number(server_errors, &labels, figures.server_errors);
            }
        }
    }
}
