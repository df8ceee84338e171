//! The use of the caches, by zone and by host, as the metrics of their family tell of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use turnpike_plan::metrics::{self, Samples};

/// The most zones and the most hosts in a status, those with the most requests first. All are in
/// the metrics, and a person looks at no more.
const SHOWN_MAX: usize = 10;

/// The counts of one zone or host.
#[derive(Default)]
struct Counts {
    requests: u64,
    hits: u64,
    hit_ratio: f64,
    saved_bytes: u64,
}

/// The zones and hosts whose caches have answered since the start; null if none has.
pub(super) fn used(samples: &Samples) -> Value {
    let mut zones: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut hosts: BTreeMap<&str, Counts> = BTreeMap::new();
    for sample in samples.list() {
        let (zone, host) = (sample.label("zone"), sample.label("host"));
        match (sample.row.name, &sample.value) {
            ("cache_answers", metrics::Value::Number(count)) => {
                zones.entry(zone).or_default().requests += count;
            }
            ("cache_hit_ratio", metrics::Value::Real(ratio)) => {
                zones.entry(zone).or_default().hit_ratio = *ratio;
            }
            ("cache_saved_bytes", metrics::Value::Number(count)) => {
                zones.entry(zone).or_default().saved_bytes = *count;
            }
            ("cache_host_requests", metrics::Value::Number(count)) => {
                hosts.entry(host).or_default().requests = *count;
            }
            ("cache_host_hits", metrics::Value::Number(count)) => {
                hosts.entry(host).or_default().hits = *count;
            }
            ("cache_host_saved_bytes", metrics::Value::Number(count)) => {
                hosts.entry(host).or_default().saved_bytes = *count;
            }
            _ => {}
        }
    }
    for zone in zones.values_mut() {
        zone.hits = (zone.hit_ratio * zone.requests as f64).round() as u64;
    }
    let (zones, hosts) = (busiest("zone", zones), busiest("host", hosts));
    if zones.is_empty() {
        return Value::Null;
    }
    json!({ "zones": zones, "hosts": hosts })
}

/// The zones or hosts with the most requests, each with its name as `kind`.
fn busiest(kind: &str, all: BTreeMap<&str, Counts>) -> Vec<Value> {
    let mut all: Vec<_> = all
        .into_iter()
        .filter(|(_, counts)| counts.requests > 0)
        .collect();
    all.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.requests));
    all.truncate(SHOWN_MAX);
    let row = |(name, counts): (&str, Counts)| {
        json!({
            kind: name,
            "requests": counts.requests,
            "hits": counts.hits,
            "saved_bytes": counts.saved_bytes,
        })
    };
    all.into_iter().map(row).collect()
}
