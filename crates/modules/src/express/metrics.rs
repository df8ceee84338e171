//! What the program in the driver counts, as metrics.

use std::sync::Arc;

use turnpike_express::{Publisher, SLOT_BYTES};
use turnpike_plan::metrics::{self, Kind, Row, Samples};

use super::eligible::Reasons;
use super::watch::FileWatch;

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
        name: "express_memory_bytes",
        kind: Kind::Gauge,
        unit: "bytes",
        labels: &["state"],
        help: "Memory of the express lane's responses: used by those that it may send now, and \
            free.",
    },
    Row {
        name: "express_evicted",
        kind: Kind::Counter,
        unit: "responses",
        labels: &[],
        help: "Responses that others replaced in the express lane's memory before they expired.",
    },
    Row {
        name: "express_withdrawals",
        kind: Kind::Counter,
        unit: "changes",
        labels: &[],
        help: "Changes of files and caches after which the express lane withdrew its responses.",
    },
    Row {
        name: "express_watched_files",
        kind: Kind::Gauge,
        unit: "files",
        labels: &[],
        help: "Files whose responses the express lane withdraws as soon as they change.",
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
    pub(super) files: Arc<FileWatch>,
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
        let published = memory.published() as u64;
        samples.number(&METRICS[3], &[], published);
        let used_bytes = published * SLOT_BYTES;
        samples.number(&METRICS[4], &["used"], used_bytes);
        let free_bytes = memory.size_bytes().saturating_sub(used_bytes);
        samples.number(&METRICS[4], &["free"], free_bytes);
        samples.number(&METRICS[5], &[], memory.evicted());
        samples.number(&METRICS[6], &[], self.publisher.withdrawals());
        samples.number(&METRICS[7], &[], self.files.count() as u64);
        samples.number(&METRICS[8], &[], memory.dropped_clients() as u64);
    }
}
