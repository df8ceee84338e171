//! Counts of each server (`by=server`), kept only where a page shows them.
//!
//! A server is counted where its requests end. Servers of the same name are one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Logger;
use turnpike_lane::counters::{Answer, AnswerCounts, Kind, Row};
use turnpike_plan::keys::PlanMap;
use turnpike_plan::metrics::{Reader, Samples};

use super::METRICS as METRICS_OF_ALL;
use crate::common::server_names::NAMELESS;

/// The metrics.
pub(super) const METRICS: [Row; 4] = [
    Row {
        name: "server_requests",
        kind: Kind::Counter,
        unit: "requests",
        labels: &["server", "class"],
        help: "Finished requests of a server, by class of the response status (by=server).",
    },
    Row {
        name: "server_received_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        labels: &["server"],
        help: "Bytes of requests that a server received from clients (by=server).",
    },
    Row {
        name: "server_sent_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        labels: &["server"],
        help: "Bytes of responses that a server sent to clients (by=server).",
    },
    Row {
        name: "server_request_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        labels: &["server"],
        help: "Time from the first byte of a request of a server to the end of its answer, in \
            whole milliseconds (by=server).",
    },
];

/// The counts of all servers by name. A reload keeps them.
#[derive(Default)]
pub(super) struct AllServers(Mutex<BTreeMap<Vec<u8>, Arc<AnswerCounts>>>);

impl AllServers {
    /// The counts of these servers, those that a former configuration had too going on.
    pub(super) fn of(&self, names: impl Iterator<Item = Vec<u8>>) -> Servers {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts: PlanMap<_, _> = names
            .chain([NAMELESS.to_vec()])
            .map(|name| {
                let counts = Arc::clone(kept.entry(name.clone()).or_default());
                (name, counts)
            })
            .collect();
        kept.retain(|name, _| counts.contains_key(name));
        Servers(counts)
    }
}

/// The counts of the servers of one plan.
pub(super) struct Servers(PlanMap<Vec<u8>, Arc<AnswerCounts>>);

impl Logger for Servers {
    fn log(&self, exchange: &Exchange) {
        let named = self.0.get(&*exchange.server().name);
        let Some(counts) = named.or_else(|| self.0.get(NAMELESS)) else {
            return;
        };
        let now_ms = exchange.lane.clock.now_ms();
        counts.add(Answer {
            status: exchange.logged_status(),
            request_bytes: exchange.account.request_bytes(),
            response_bytes: exchange.account.sent_bytes(),
            took_ms: now_ms.saturating_sub(exchange.account.started_ms()),
        });
    }
}

impl Reader for Servers {
    fn read(&self, samples: &mut Samples) {
        let [requests, received, sent, times, ..] = METRICS_OF_ALL else {
            return;
        };
        let mut servers: Vec<_> = self.0.iter().collect();
        servers.sort_by_key(|(name, _)| *name);
        for (name, counts) in servers {
            let is_unused = counts.by_class().iter().all(|count| *count == 0);
            if is_unused && name == NAMELESS {
                continue;
            }
            let name = String::from_utf8_lossy(name);
            for (class, count) in AnswerCounts::CLASSES.iter().zip(counts.by_class()) {
                samples.number(requests, &[&name, class], count);
            }
            samples.number(received, &[&name], counts.request_bytes());
            samples.number(sent, &[&name], counts.response_bytes());
            samples.distribution(times, &[&name], counts.times());
        }
    }
}
