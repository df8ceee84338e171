//! The keys with most requests, in bounded memory.
//!
//! All keys are counted until there are too many; then the rarer half is forgotten, and what a key
//! that comes back may have lost is known (lossy counting, Manku and Motwani 2002).

use std::collections::HashMap;

/// The most keys of a list: 20,000 keys of 256 bytes with their counts are about 7 MB.
pub(crate) const KEYS_MAX: usize = 20_000;

/// The most bytes of a key.
const KEY_BYTES_MAX: usize = 256;

/// Counts by key.
#[derive(Debug, Default)]
pub(crate) struct Busiest {
    counts: HashMap<Box<str>, Counts>,
    /// How many requests a key may have lost.
    pub(crate) lost_max: u64,
}

/// What is counted for a key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) body_bytes: u64,
    /// Requests with 4xx.
    pub(crate) refused: u64,
    /// Requests with 5xx.
    pub(crate) failed: u64,
    /// The requests whose time is known, their sum and the longest.
    pub(crate) timed: u64,
    pub(crate) seconds_sum: f64,
    pub(crate) seconds_max: f64,
}

impl Counts {
    /// Counts one request.
    pub(crate) fn add(&mut self, status: u16, body_bytes: u64, seconds: Option<f64>) {
        self.requests += 1;
        self.body_bytes += body_bytes;
        self.refused += u64::from((400..500).contains(&status));
        self.failed += u64::from(status >= 500);
        if let Some(seconds) = seconds {
            self.timed += 1;
            self.seconds_sum += seconds;
            self.seconds_max = self.seconds_max.max(seconds);
        }
    }

    /// The average time, if any is known.
    pub(crate) fn seconds_average(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.seconds_sum / self.timed as f64)
    }
}

impl Busiest {
    /// The counts of a key, in which control characters are shown as `\xHH`: a log must not be able
    /// to write to the terminal.
    pub(crate) fn of(&mut self, key: &str) -> &mut Counts {
        let key = printable(key);
        if self.counts.len() >= KEYS_MAX && !self.counts.contains_key(key.as_str()) {
            self.forget_half();
        }
        self.counts.entry(key.into_boxed_str()).or_default()
    }

    /// The first keys by a measure, the largest first, and how many have it: those for which it is
    /// 0 are left out.
    pub(crate) fn first(&self, top: usize, by: fn(&Counts) -> f64) -> (Vec<(&str, Counts)>, usize) {
        let all = self.counts.iter().map(|(key, counts)| (&**key, *counts));
        let mut all: Vec<(&str, Counts)> = all.filter(|(_, counts)| by(counts) > 0.0).collect();
        all.sort_by(|(key, counts), (other_key, other)| {
            by(other).total_cmp(&by(counts)).then(key.cmp(other_key))
        });
        let count = all.len();
        all.truncate(top);
        (all, count)
    }

    fn forget_half(&mut self) {
        let mut requests: Vec<u64> = self.counts.values().map(|counts| counts.requests).collect();
        let middle = requests.len() / 2;
        let (_, limit, _) = requests.select_nth_unstable(middle);
        let limit = *limit;
        self.counts.retain(|_, counts| counts.requests > limit);
        self.lost_max += limit;
    }
}

fn printable(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for letter in key.chars() {
        if out.len() >= KEY_BYTES_MAX {
            out.push_str("...");
            break;
        }
        match letter {
            letter if letter.is_control() => {
                out.push_str(&format!("\\x{:02X}", u32::from(letter)));
            }
            letter => out.push(letter),
        }
    }
    out
}
