//! Metrics of the groups of `stream`.

use turnpike_lane::counters::Kind;
use turnpike_plan::metrics::{Reader, Row, Samples};
use turnpike_upstream::FailReason;

use super::background::BackgroundTasks;
use super::commands::{METRICS as METRICS_OF_ALL, last_failure};

const PLAIN: Row = Row {
    name: "stream_upstream_active",
    kind: Kind::Gauge,
    unit: "sessions",
    labels: &["upstream", "peer"],
    help: "Active sessions of a stream upstream server.",
};

/// The metrics.
pub(super) const METRICS: [Row; 9] = [
    Row {
        name: "stream_upstream_sessions",
        kind: Kind::Counter,
        help: "Attempts to pass a stream session to a server.",
        ..PLAIN
    },
    Row {
        name: "stream_upstream_failures",
        kind: Kind::Counter,
        labels: &["upstream", "peer", "reason"],
        help: "Failed attempts and failed health checks of a stream server, by reason.",
        ..PLAIN
    },
    PLAIN,
    Row {
        name: "stream_upstream_available",
        unit: "servers",
        help: "Whether a stream server can take sessions at the moment: 1 or 0.",
        ..PLAIN
    },
    Row {
        name: "stream_upstream_sent_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        help: "Bytes sent to a stream server in sessions that have ended.",
        ..PLAIN
    },
    Row {
        name: "stream_upstream_received_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        help: "Bytes received from a stream server in sessions that have ended.",
        ..PLAIN
    },
    Row {
        name: "stream_upstream_session_seconds",
        kind: Kind::Histogram,
        unit: "seconds",
        help: "Duration of sessions with a stream server, in whole milliseconds.",
        ..PLAIN
    },
    Row {
        name: "stream_upstream_retries_refused",
        kind: Kind::Counter,
        labels: &["upstream"],
        help: "Retries that the budget of a stream group did not allow (retry_budget).",
        ..PLAIN
    },
    Row {
        name: "stream_upstream_last_failure_timestamp_seconds",
        unit: "seconds",
        labels: &["upstream", "peer", "reason"],
        help: "Unix time of the last failed attempt or health check of a stream server, with its \
            reason.",
        ..PLAIN
    },
];

/// Reads the metrics.
pub(super) struct SessionCounts(pub(super) BackgroundTasks);

impl Reader for SessionCounts {
    fn read(&self, samples: &mut Samples) {
        let [
            ..,
            sessions,
            failures,
            active,
            available,
            sent,
            received,
            times,
            retries_refused,
            last_failed,
        ] = METRICS_OF_ALL
        else {
            return;
        };
        for group in self.0.groups() {
            for peer in group.peers() {
                let (labels, state) = ([group.name(), peer.name()], peer.state());
                samples.number(sessions, &labels, state.requests());
                let counts = FailReason::WORDS.iter().zip(state.failures_by_reason());
                for (reason, count) in counts {
                    samples.number(failures, &[group.name(), peer.name(), reason], count);
                }
                samples.number(active, &labels, u64::from(state.active()));
                samples.number(available, &labels, u64::from(peer.is_available_now()));
                let ended = state.answers();
                samples.number(sent, &labels, ended.request_bytes());
                samples.number(received, &labels, ended.response_bytes());
                samples.distribution(times, &labels, ended.times());
                last_failure(last_failed, &group, &peer, samples);
            }
            samples.number(retries_refused, &[group.name()], group.retries_refused());
        }
    }
}
