//! The counts of resolvers by the zones that they name (`status_zone=`), as in Angie and Plus.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use turnpike_lane::counters::Kind;
use turnpike_plan::builder::Builder;
use turnpike_plan::metrics::{Reader, Row, Samples};
use turnpike_upstream::{LookupCounts, Resolver};

const PLAIN: Row = Row {
    name: "resolver_queries",
    kind: Kind::Counter,
    unit: "lookups",
    labels: &["zone", "type"],
    help: "Lookups of names and services, also those that the resolver's cache answered.",
};

/// The metrics.
pub(super) const METRICS: [Row; 3] = [
    PLAIN,
    Row {
        name: "resolver_sent",
        unit: "questions",
        help: "Questions that a resolver sent to name servers, by the type of the records.",
        ..PLAIN
    },
    Row {
        name: "resolver_responses",
        unit: "answers",
        labels: &["zone", "outcome"],
        help: "Answers of name servers by their code, and lookups that got none in time.",
        ..PLAIN
    },
];

static ROWS: &[Row; 3] = &METRICS;

/// The resolvers of a configuration by zone. The blocks of `http` and of `stream` share them.
#[derive(Default)]
pub(super) struct StatusZones {
    zones: Mutex<BTreeMap<String, Vec<Arc<Resolver>>>>,
    is_shown: AtomicBool,
}

impl StatusZones {
    /// The zones of the configuration whose plan is built, which are among its metrics once.
    pub(super) fn of<S>(builder: &mut Builder<'_, S>) -> Arc<StatusZones> {
        let make = || Arc::new(StatusZones::default()) as Arc<dyn Any + Send + Sync>;
        let shared = builder.environment.shared("zones of resolvers", &make);
        let zones: Arc<StatusZones> = shared.downcast().unwrap_or_default();
        if !zones.is_shown.swap(true, Ordering::Relaxed) {
            builder.metrics(zones.clone());
        }
        zones
    }

    /// Adds a resolver to a zone. Blocks with the same words have the same one.
    pub(super) fn add(&self, zone: &str, resolver: &Arc<Resolver>) {
        let mut zones = self.zones.lock().unwrap_or_else(PoisonError::into_inner);
        let resolvers = zones.entry(zone.to_owned()).or_default();
        if !resolvers.iter().any(|other| Arc::ptr_eq(other, resolver)) {
            resolvers.push(Arc::clone(resolver));
        }
    }
}

impl Reader for StatusZones {
    fn read(&self, samples: &mut Samples) {
        let [queries, sent, responses] = ROWS;
        let zones = self.zones.lock().unwrap_or_else(PoisonError::into_inner);
        for (zone, resolvers) in &*zones {
            let mut add = |row: &'static Row, counts: BTreeMap<&str, u64>| {
                for (word, count) in counts {
                    samples.number(row, &[zone, word], count);
                }
            };
            add(
                queries,
                summed(resolvers, |counts| counts.queries().collect()),
            );
            add(sent, summed(resolvers, |counts| counts.sent().collect()));
            add(
                responses,
                summed(resolvers, |counts| counts.responses().collect()),
            );
        }
    }
}

/// The counts of several resolvers together, by word.
fn summed(
    resolvers: &[Arc<Resolver>],
    counts: impl Fn(&LookupCounts) -> Vec<(&'static str, u64)>,
) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    for (word, count) in resolvers
        .iter()
        .flat_map(|resolver| counts(resolver.counts()))
    {
        *sums.entry(word).or_default() += count;
    }
    sums
}
