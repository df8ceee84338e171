//! Metrics: the rows of their table, and cells that one thread writes and any thread reads.
//!
//! A lane adds with a load and a store, without a locked instruction; a reader sums the cells of
//! all lanes. Reading stops no lane, so sums over several cells are only approximate while lanes
//! run.

mod answers;
mod histogram;
mod per_thread;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use answers::{Answer, AnswerCounts};
pub use histogram::{BOUNDS_NS, Distribution, Histogram};
pub use per_thread::PerThread;

/// The kind of a metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The value only grows while the process lives.
    Counter,
    /// The value rises and falls.
    Gauge,
    /// A distribution of times.
    Histogram,
    /// The first places of a ranking: names come and go, so it is shown to people alone, and never
    /// in a format that keeps a series for each name.
    Ranking,
}

/// One row of a table of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name: lower case words and underscores, the same everywhere it is shown.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// The unit: `connections`, `bytes`, ...
    pub unit: &'static str,
    /// The names of the labels that distinguish its values, besides the lane: `upstream`, `zone`,
    /// ...
    pub labels: &'static [&'static str],
    /// The meaning, in a sentence.
    pub help: &'static str,
}

/// A number that one thread writes and many threads read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn add(&self) {
        self.add_many(1);
    }

    /// Adds `amount`.
    pub fn add_many(&self, amount: u64) {
        self.0
            .store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    /// Subtracts one.
    pub fn sub(&self) {
        self.0
            .store(self.0.load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// Sets the value.
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// The value.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
