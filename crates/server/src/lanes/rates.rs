//! Rates of the last seconds, for `status`: the counters of all lanes, noted from time to time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnpike_http::counters::AllCounters;

/// The time that rates are of.
const PERIOD: Duration = Duration::from_secs(10);
/// Least time between two notes.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);
/// Notes kept: those of the period, and the one before it.
const NOTES_MAX: usize = 12;

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
struct Note {
    at: Instant,
    requests: u64,
    accepted: u64,
    received_bytes: u64,
    sent_bytes: u64,
    server_errors: u64,
}

/// The counters over the last seconds.
#[derive(Debug, Default)]
pub(super) struct Rates {
    notes: VecDeque<Note>,
}

impl Rates {
    /// Notes the counters, where the last note is old enough.
    pub(super) fn note(&mut self, counters: &AllCounters) {
        let now = Instant::now();
        let last = self.notes.back().map(|note| note.at);
        if last.is_some_and(|last| now.duration_since(last) < NOTE_INTERVAL) {
            return;
        }
        self.notes.push_back(Note::of(counters, now));
        // One note stays that is older than the period, or the first of all.
        while self.notes.len() > NOTES_MAX
            || self
                .notes
                .get(1)
                .is_some_and(|second| now.duration_since(second.at) >= PERIOD)
        {
            self.notes.pop_front();
        }
    }

    /// Rates since the oldest note; null before there is one.
    pub(super) fn read(&self, counters: &AllCounters) -> Value {
        let Some(first) = self.notes.front() else {
            return Value::Null;
        };
        first.until(&Note::of(counters, Instant::now()))
    }
}

impl Note {
    fn of(counters: &AllCounters, at: Instant) -> Note {
        let lanes = counters.lanes();
        let statuses = lanes.iter().flat_map(|lane| lane.statuses.iter());
        let errors = statuses.filter(|(status, _)| (500..600).contains(status));
        Note {
            at,
            requests: counters.total(|lane| &lane.requests),
            accepted: counters.total(|lane| &lane.accepted),
            received_bytes: counters.total(|lane| &lane.bytes_received),
            sent_bytes: counters.total(|lane| &lane.bytes_sent),
            server_errors: errors.map(|(_, count)| count).sum(),
        }
    }

    fn until(&self, now: &Note) -> Value {
        let seconds = now.at.duration_since(self.at).as_secs_f64().max(1e-3);
        let rate = |value: fn(&Note) -> u64| {
            let count = value(now).saturating_sub(value(self));
            // Three digits after the point are enough for a rate.
            (count as f64 / seconds * 1e3).round() / 1e3
        };
        json!({
            "seconds": (seconds * 10.0).round() / 10.0,
            "requests_per_s": rate(|note| note.requests),
            "connections_per_s": rate(|note| note.accepted),
            "received_bytes_per_s": rate(|note| note.received_bytes),
            "sent_bytes_per_s": rate(|note| note.sent_bytes),
            "server_errors_per_s": rate(|note| note.server_errors),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_counts_by_the_time_between() {
        let at = Instant::now();
        let note = |seconds: u64, factor: u64| Note {
            at: at + Duration::from_secs(seconds),
            requests: 100 * factor,
            accepted: 10 * factor,
            received_bytes: 5000 * factor,
            sent_bytes: 7000 * factor,
            server_errors: factor,
        };
        let rates = note(0, 1).until(&note(4, 3));
        let expected = json!({
            "seconds": 4.0, "requests_per_s": 50.0, "connections_per_s": 5.0,
            "received_bytes_per_s": 2500.0, "sent_bytes_per_s": 3500.0,
            "server_errors_per_s": 0.5,
        });
        assert_eq!(rates, expected);
    }

    #[test]
    fn there_is_no_rate_before_a_note() {
        let counters = AllCounters::default();
        let mut rates = Rates::default();
        assert_eq!(rates.read(&counters), Value::Null);
        rates.note(&counters);
        rates.note(&counters);
        assert_eq!(rates.notes.len(), 1);
        assert_eq!(rates.read(&counters)["requests_per_s"], 0.0);
    }
}
