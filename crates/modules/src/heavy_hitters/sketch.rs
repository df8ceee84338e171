//! A sketch of heavy hitters: of all keys that come, about those with the greatest weight, in
//! bounded memory (Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k
//! Elements in Data Streams", 2005: Space-Saving). It knows nothing of requests and has no clock.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Keys of a sketch. A key with more than that part of the whole weight is never missing, and the
/// scan of so many hashes takes less time than the rest of a request.
pub(super) const KEYS_MAX: usize = 128;

/// Bytes of a key that are kept: clients make paths of kilobytes.
pub(super) const KEY_BYTES_MAX: usize = 256;

/// The length of a window, in milliseconds. A reader sees the last one and the one under way: what
/// happened in the last minute or half of it.
pub(super) const WINDOW_MS: u64 = 30_000;

/// What requests have cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) requests: u64,
    pub(super) time_ms: u64,
    pub(super) slowest_ms: u64,
    /// Answers with a status of 5xx.
    pub(super) server_errors: u64,
}

impl Figures {
    pub(super) fn add(&mut self, other: Figures) {
        self.requests += other.requests;
        self.time_ms += other.time_ms;
        self.slowest_ms = self.slowest_ms.max(other.slowest_ms);
        self.server_errors += other.server_errors;
    }

    /// The weight of a request: its time, and something for a request that took none.
    fn weight(self) -> u64 {
        self.time_ms + self.requests
    }
}

struct Entry {
    hash: u64,
    key: Vec<u8>,
    /// Since the key has this place: no more than the truth.
    figures: Figures,
    /// The weight, with that of keys that had the place before: no less than the truth.
    weight: u64,
}

/// The heaviest keys of one window.
#[derive(Default)]
struct Sketch(Vec<Entry>);

impl Sketch {
    /// Adds to a key. The lightest one gives its place to a new key, which takes over its weight.
    fn add(&mut self, hash: u64, key: &[u8], figures: Figures) {
        let weight = figures.weight();
        let same = |entry: &&mut Entry| entry.hash == hash && entry.key == key;
        if let Some(entry) = self.0.iter_mut().find(same) {
            entry.figures.add(figures);
            entry.weight += weight;
            return;
        }
        if self.0.len() < KEYS_MAX {
            self.0.push(Entry {
                hash,
                key: key.to_vec(),
                figures,
                weight,
            });
        } else if let Some(entry) = self.0.iter_mut().min_by_key(|entry| entry.weight) {
            entry.hash = hash;
            entry.key.clear();
            entry.key.extend_from_slice(key);
            entry.figures = figures;
            entry.weight += weight;
        }
    }
}

/// The heaviest keys of the window under way and of the one before.
#[derive(Default)]
pub(super) struct Recent {
    hasher: RandomState,
    /// The number of the window under way.
    window: u64,
    now: Sketch,
    before: Sketch,
}

impl Recent {
    /// Adds what a request has cost to its key, at a monotonic time.
    pub(super) fn add(&mut self, now_ms: u64, key: &[u8], figures: Figures) {
        self.turn(now_ms);
        let key = &key[..key.len().min(KEY_BYTES_MAX)];
        self.now.add(self.hasher.hash_one(key), key, figures);
    }

    /// Adds the recent figures to those of others.
    pub(super) fn read(&mut self, now_ms: u64, sums: &mut HashMap<Vec<u8>, Figures>) {
        self.turn(now_ms);
        for entry in self.before.0.iter().chain(&self.now.0) {
            let sum = sums.entry(entry.key.clone()).or_default();
            sum.add(entry.figures);
        }
    }

    /// Begins the window of a time, and forgets what is older than the one before.
    fn turn(&mut self, now_ms: u64) {
        let window = now_ms / WINDOW_MS;
        if window <= self.window {
            return;
        }
        let is_next = window == self.window + 1;
        self.window = window;
        let ended = std::mem::take(&mut self.now);
        self.before = if is_next { ended } else { Sketch::default() };
    }
}
