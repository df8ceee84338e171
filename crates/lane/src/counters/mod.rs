//! What is counted and how it is told: rows of the table of metrics, and cells that one thread
//! writes and any thread reads.
//!
//! A lane adds with a load and a store, without any locked instruction; whoever wants totals reads
//! the cells of all lanes and sums. Reading stops nobody, so that sums over several cells are only
//! about right while lanes run.

mod answers;
mod histogram;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use answers::{Answer, AnswerCounts};
pub use histogram::{BOUNDS_NS, Distribution, Histogram};

/// What a metric's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The value only grows while the process lives.
    Counter,
    /// The value rises and falls.
    Gauge,
    /// A distribution of times.
    Histogram,
}

/// One row of a table of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name: lower case words and underscores, the same everywhere it is shown.
    pub name: &'static str,
    /// Whether it only grows.
    pub kind: Kind,
    /// What is counted: `connections`, `bytes`, ...
    pub unit: &'static str,
    /// Names of what tells several values of it apart, beside the lane: `upstream`, `zone`, ...
    pub labels: &'static [&'static str],
    /// What it means, in a sentence.
    pub help: &'static str,
}

/// A number that one thread writes and many read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn add(&self) {
        self.add_many(1);
    }

    /// Adds so many.
    pub fn add_many(&self, amount: u64) {
        self.0
            .store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    /// Takes one off.
    pub fn sub(&self) {
        self.0
            .store(self.0.load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Reads it.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
