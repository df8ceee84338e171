//! The use of caches by the requests of each host: a host is the first name of a server block.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use turnpike_cache::tally::Use;
use turnpike_http::exchange::Exchange;
use turnpike_lane::counters::{Counter, Kind, PerThread, Row};
use turnpike_plan::keys::PlanMap;
use turnpike_plan::metrics::{Reader, Samples};

use crate::common::server_names::NAMELESS;

/// Hosts that are counted by their names. Those beyond it are counted with the servers that have no
/// name: nobody looks at more, and each takes some kilobytes and some lines of the metrics.
const HOSTS_MAX: usize = 1_000;

const PLAIN: Row = Row {
    name: "cache_host_requests",
    kind: Kind::Counter,
    unit: "requests",
    labels: &["host"],
    help: "Answered requests of a host whose locations have a cache, by the first name of the \
        server.",
};

/// The metrics.
pub(super) const METRICS: [Row; 3] = [
    PLAIN,
    Row {
        name: "cache_host_hits",
        help: "Of these requests, those answered from a zone.",
        ..PLAIN
    },
    Row {
        name: "cache_host_saved_bytes",
        unit: "bytes",
        help: "Bytes of content answered from zones for a host, which no server had to send.",
        ..PLAIN
    },
];

/// The counts of one host by one lane.
#[derive(Default)]
struct Cells {
    requests: Counter,
    hits: Counter,
    saved_bytes: Counter,
}

/// The counts of one host.
type Host = PerThread<Cells>;

/// The counts of all hosts by name. A reload keeps them.
#[derive(Default)]
pub(super) struct AllHosts(Mutex<BTreeMap<Vec<u8>, Arc<Host>>>);

impl AllHosts {
    /// The counts of these hosts, those that a former configuration had too going on.
    pub(super) fn of(&self, names: impl Iterator<Item = Vec<u8>>) -> Hosts {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hosts = PlanMap::default();
        for name in [NAMELESS.to_vec()].into_iter().chain(names) {
            if hosts.len() <= HOSTS_MAX {
                let host = kept.entry(name.clone()).or_default();
                hosts.insert(name, Arc::clone(host));
            }
        }
        kept.retain(|name, _| hosts.contains_key(name));
        Hosts(hosts)
    }
}

/// The counts of the hosts of one plan.
#[derive(Default)]
pub(super) struct Hosts(PlanMap<Vec<u8>, Arc<Host>>);

impl Hosts {
    /// Counts an answer, and the bytes that no server had to send for it.
    pub(super) fn used(&self, exchange: &Exchange, one: Use, saved_bytes: u64) {
        let named = self.0.get(&*exchange.server().name);
        let Some(host) = named.or_else(|| self.0.get(NAMELESS)) else {
            return;
        };
        host.write(|cells| {
            cells.requests.add();
            if one.is_from_the_cache() {
                cells.hits.add();
                cells.saved_bytes.add_many(saved_bytes);
            }
        });
    }
}

impl Reader for Hosts {
    fn read(&self, samples: &mut Samples) {
        let mut hosts: Vec<_> = self.0.iter().collect();
        hosts.sort_by_key(|(name, _)| *name);
        for (name, host) in hosts {
            let requests = host.sum(|cells| cells.requests.value());
            if requests == 0 {
                continue;
            }
            let name = String::from_utf8_lossy(name);
            samples.number(&METRICS[0], &[&name], requests);
            samples.number(&METRICS[1], &[&name], host.sum(|cells| cells.hits.value()));
            samples.number(
                &METRICS[2],
                &[&name],
                host.sum(|cells| cells.saved_bytes.value()),
            );
        }
    }
}
