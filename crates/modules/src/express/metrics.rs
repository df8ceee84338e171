//! What the program in the driver counts, as metrics.

use std::sync::Arc;

use turnpike_express::Publisher;
use turnpike_plan::metrics::{self, Kind, Row, Samples};

use super::eligible::Reasons;

pub(super) const METRICS: &[Row] = &[
    Row {
        name: "express_requests",
        kind: Kind::Counter,
        unit: "requests",
        labels: &[],
        help: "Requests that the express lane answered in the network driver.",
    },
    Row {
        name: "express_segments",
        kind: Kind::Counter,
        unit: "segments",
        labels: &["outcome"],
        help: "Segments that the express lane's program inspected, by outcome.",
    },
    Row {
        name: "express_unpublished",
        kind: Kind::Counter,
        unit: "responses",
        labels: &["reason"],
        help: "Responses of lanes that were not published to the express lane, by reason.",
    },
    Row {
        name: "express_answers",
        kind: Kind::Gauge,
        unit: "responses",
        labels: &[],
        help: "Responses that the express lane may send now.",
    },
    Row {
        name: "express_dropped_clients",
        kind: Kind::Gauge,
        unit: "clients",
        labels: &[],
        help: "Clients that express_drop blocks now.",
    },
];

/// Reads the program's counters.
pub(super) struct Reader {
    pub(super) publisher: Arc<Publisher>,
    pub(super) reasons: Arc<Reasons>,
}

impl metrics::Reader for Reader {
    fn read(&self, samples: &mut Samples) {
        let memory = self.publisher.memory();
        for (row, count) in memory.counts() {
            if row.name == "hits" {
                samples.number(&METRICS[0], &[], count);
            }
            samples.number(&METRICS[1], &[row.name], count);
        }
        for (reason, count) in self.reasons.read() {
            samples.number(&METRICS[2], &[reason], count);
        }
        samples.number(&METRICS[3], &[], memory.published() as u64);
        samples.number(&METRICS[4], &[], memory.dropped_clients() as u64);
    }
}
