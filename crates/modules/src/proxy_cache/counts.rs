//! What happens is noted with the exchange, for variables, and counted in the zone, for metrics.

use std::sync::Arc;

use turnpike_cache::tally::Use;
use turnpike_cache::why::WhyNotStored;
use turnpike_cache::zone::Zone;
use turnpike_http::exchange::Exchange;
use turnpike_lane::counters::{Kind, Row};
use turnpike_plan::metrics::{Reader, Samples};
use turnpike_wire::message::Method;

use super::hosts::{self, Hosts};
use super::note::note;
use super::zones::Zones;

/// The metrics.
pub(super) const METRICS: &[Row] = &[
    Row {
        name: "cache_answers",
        kind: Kind::Counter,
        unit: "requests",
        labels: &["zone", "status"],
        help: "Answered requests, by cache status ($upstream_cache_status).",
    },
    Row {
        name: "cache_not_stored",
        kind: Kind::Counter,
        unit: "responses",
        labels: &["zone", "reason"],
        help: "Server responses that were not stored, by reason.",
    },
    Row {
        name: "cache_keys",
        kind: Kind::Gauge,
        unit: "keys",
        labels: &["zone"],
        help: "Keys in the zone.",
    },
    Row {
        name: "cache_filled_ratio",
        kind: Kind::Gauge,
        unit: "ratio",
        labels: &["zone"],
        help: "How full the zone is, from 0 to 1, by bytes or by keys, whichever is more.",
    },
    Row {
        name: "cache_bytes",
        kind: Kind::Gauge,
        unit: "bytes",
        labels: &["zone"],
        help: "Bytes that stored responses take in the zone.",
    },
    Row {
        name: "cache_max_bytes",
        kind: Kind::Gauge,
        unit: "bytes",
        labels: &["zone"],
        help: "Maximum number of bytes in the zone.",
    },
    Row {
        name: "cache_hit_ratio",
        kind: Kind::Gauge,
        unit: "ratio",
        labels: &["zone"],
        help: "Share of the answered requests, from 0 to 1, that were answered from the zone.",
    },
    Row {
        name: "cache_evicted",
        kind: Kind::Counter,
        unit: "keys",
        labels: &["zone"],
        help: "Keys that were evicted to make room for others.",
    },
    Row {
        name: "cache_saved_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        labels: &["zone"],
        help: "Bytes of content answered from the zone, which no server had to send.",
    },
    hosts::METRICS[0],
    hosts::METRICS[1],
    hosts::METRICS[2],
];

/// Reads the zones of a plan.
pub(super) struct Counts(pub(super) Zones);

impl Reader for Counts {
    fn read(&self, samples: &mut Samples) {
        for zone in self.0.0.values() {
            let name = zone.name();
            for one in Use::ALL {
                samples.number(&METRICS[0], &[name, one.text()], zone.uses(one));
            }
            for why in WhyNotStored::ALL {
                let count = zone.not_stored(*why);
                if count > 0 {
                    samples.number(&METRICS[1], &[name, why.text()], count);
                }
            }
            let contents = zone.contents();
            samples.number(&METRICS[2], &[name], contents.keys);
            samples.real(&METRICS[3], &[name], contents.filled_ppm as f64 / 1e6);
            samples.number(&METRICS[4], &[name], contents.bytes);
            samples.number(&METRICS[5], &[name], zone.bytes_max());
            let (requests, hits) = zone.requests_and_hits();
            if requests > 0 {
                samples.real(&METRICS[6], &[name], hits as f64 / requests as f64);
            }
            samples.number(&METRICS[7], &[name], contents.evicted);
            samples.number(&METRICS[8], &[name], zone.saved_bytes());
        }
    }
}

/// Notes how the request is answered. The response is there if it comes from the zone.
pub(super) fn used(exchange: &mut Exchange, hosts: &Hosts, zone: &Zone, one: Use) {
    note(&mut exchange.rooms).status = one.text();
    let saved_bytes = if one.is_from_the_cache() && exchange.method() != Method::Head {
        exchange.response.content_length().unwrap_or(0)
    } else {
        0
    };
    let tally = zone.tally(exchange.lane.index);
    tally.used(one);
    tally.saved(saved_bytes);
    hosts.used(exchange, one, saved_bytes);
}

/// Notes why the response is not stored.
pub(super) fn not_stored(exchange: &mut Exchange, zone: &Arc<Zone>, why: WhyNotStored) {
    note(&mut exchange.rooms).not_stored = why.text();
    zone.tally(exchange.lane.index).not_stored(why);
}
