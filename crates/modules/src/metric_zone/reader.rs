//! Shows the metrics of zones in the metrics table.
//!
//! Names are fixed, and zone, metric and key are labels: so they are sound whatever a configuration
//! calls its zones.

use std::sync::Arc;

use turnpike_lane::counters::{Kind, Row};
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_plan::metrics::{Buckets, Reader, Samples};

use super::mode::{Bound, Mode, State};
use super::zone::Zone;

const PLAIN: Row = Row {
    name: "metric_value",
    kind: Kind::Gauge,
    unit: "values",
    labels: &["zone", "metric", "key"],
    help: "Value of a metric of one's own: min, max, last, gauge or average (metric_zone).",
};

/// The metrics of requests: counts, values, histograms, and what was discarded.
const HTTP: [Row; 4] = [
    Row {
        name: "metric_count",
        kind: Kind::Counter,
        unit: "updates",
        help: "Updates of a metric of one's own with the mode count (metric_zone).",
        ..PLAIN
    },
    PLAIN,
    Row {
        name: "metric_distribution",
        kind: Kind::Histogram,
        help: "Values of a metric of one's own with the mode histogram (metric_zone).",
        ..PLAIN
    },
    Row {
        name: "metric_discarded",
        kind: Kind::Counter,
        unit: "keys",
        labels: &["zone"],
        help: "Keys that were discarded, or found no room, as a metric zone was full.",
    },
];

/// The same of sessions of `stream`.
const STREAM: [Row; 4] = [
    Row {
        name: "stream_metric_count",
        help: "Updates of a metric of one's own in stream with the mode count.",
        ..HTTP[0]
    },
    Row {
        name: "stream_metric_value",
        help: "Value of a metric of one's own in stream: min, max, last, gauge or average.",
        ..PLAIN
    },
    Row {
        name: "stream_metric_distribution",
        help: "Values of a metric of one's own in stream with the mode histogram.",
        ..HTTP[2]
    },
    Row {
        name: "stream_metric_discarded",
        help: "Keys that were discarded, or found no room, as a metric zone of stream was full.",
        ..HTTP[3]
    },
];

/// The rows of each, to be shown.
pub(super) static HTTP_ROWS: &[Row; 4] = &HTTP;
pub(super) static STREAM_ROWS: &[Row; 4] = &STREAM;

/// The metrics of both.
pub(super) const METRICS: &[Row] = &[
    HTTP[0], HTTP[1], HTTP[2], HTTP[3], STREAM[0], STREAM[1], STREAM[2], STREAM[3],
];

/// The zones of a configuration, with the rows that show them.
pub(super) struct Zones {
    pub(super) rows: &'static [Row; 4],
    pub(super) zones: Vec<Arc<Zone>>,
}

impl Reader for Zones {
    fn read(&self, samples: &mut Samples) {
        let [counts, values, histograms, discarded] = self.rows;
        let now_ms = monotonic_ns() / 1_000_000;
        for zone in &self.zones {
            for (key, states) in zone.read() {
                let metrics = zone.metrics().zip(zone.memory.modes()).zip(&states);
                for ((metric, mode), state) in metrics {
                    let labels = [zone.name.as_str(), metric, key.as_str()];
                    if let State::Count(count) = state {
                        samples.number(counts, &labels, *count);
                    } else if let Some(number) = mode.number(state, now_ms) {
                        samples.real(values, &labels, number);
                    } else if let Some(own) = buckets(mode, state) {
                        samples.buckets(histograms, &labels, own);
                    }
                }
            }
            samples.number(discarded, &[&zone.name], zone.memory.discarded());
        }
    }
}

/// A histogram with its bounds in order; the last bucket, which all values are in, has none.
fn buckets(mode: &Mode, state: &State) -> Option<Buckets> {
    let (Mode::Histogram(bounds), State::Buckets { counts, count, sum }) = (mode, state) else {
        return None;
    };
    let finite = |(bound, _): &(&Bound, &u64)| bound.value.is_finite();
    let mut pairs: Vec<_> = bounds.iter().zip(counts).filter(finite).collect();
    pairs.sort_by(|(one, _), (other, _)| one.value.total_cmp(&other.value));
    Some(Buckets {
        bounds: pairs.iter().map(|(bound, _)| bound.value).collect(),
        counts: pairs.iter().map(|(_, count)| **count).collect(),
        count: *count,
        sum: *sum,
    })
}
