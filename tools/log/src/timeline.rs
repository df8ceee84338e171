//! Requests over time, in bounded memory: intervals of a minute, which grow when they are many.

use std::collections::BTreeMap;

use crate::busiest::Counts;

/// The most intervals: a day of minutes. More cannot be looked at.
const INTERVALS_MAX: usize = 1440;

/// The lengths of intervals in seconds: a minute, ten minutes, an hour, a day, a month of 30 days.
const LENGTHS_S: [i64; 5] = [60, 600, 3600, 86_400, 2_592_000];

/// Counts by interval.
#[derive(Debug)]
pub(crate) struct Timeline {
    length_index: usize,
    intervals: BTreeMap<i64, Counts>,
    /// Requests that had no interval any more: their times are nonsense.
    pub(crate) left_out: u64,
}

impl Timeline {
    pub(crate) fn new() -> Timeline {
        Timeline {
            length_index: 0,
            intervals: BTreeMap::new(),
            left_out: 0,
        }
    }

    /// The length of an interval, in seconds.
    pub(crate) fn length_s(&self) -> i64 {
        LENGTHS_S[self.length_index]
    }

    /// The counts of the interval with this time; `None` if there are too many intervals.
    pub(crate) fn of(&mut self, time_s: i64) -> Option<&mut Counts> {
        while self.intervals.len() >= INTERVALS_MAX && !self.has(time_s) {
            if !self.grow() {
                self.left_out += 1;
                return None;
            }
        }
        let start_s = time_s.div_euclid(self.length_s()) * self.length_s();
        Some(self.intervals.entry(start_s).or_default())
    }

    /// The intervals with requests, at most so many by longer ones: start and length in seconds.
    pub(crate) fn at_most(&self, count: usize) -> (i64, Vec<(i64, Counts)>) {
        let mut shown = Timeline {
            length_index: self.length_index,
            intervals: self.intervals.clone(),
            left_out: 0,
        };
        while shown.intervals.len() > count && shown.grow() {}
        let length_s = shown.length_s();
        let intervals = shown.intervals.into_iter();
        (length_s, intervals.rev().take(count).rev().collect())
    }

    fn has(&self, time_s: i64) -> bool {
        let start_s = time_s.div_euclid(self.length_s()) * self.length_s();
        self.intervals.contains_key(&start_s)
    }

    /// Makes the intervals longer; `false` if they are the longest.
    fn grow(&mut self) -> bool {
        if self.length_index + 1 == LENGTHS_S.len() {
            return false;
        }
        self.length_index += 1;
        let length_s = self.length_s();
        for (start_s, counts) in std::mem::take(&mut self.intervals) {
            let start_s = start_s.div_euclid(length_s) * length_s;
            let whole = self.intervals.entry(start_s).or_default();
            whole.requests += counts.requests;
            whole.body_bytes += counts.body_bytes;
            whole.refused += counts.refused;
            whole.failed += counts.failed;
            whole.timed += counts.timed;
            whole.seconds_sum += counts.seconds_sum;
            whole.seconds_max = whole.seconds_max.max(counts.seconds_max);
        }
        true
    }
}
