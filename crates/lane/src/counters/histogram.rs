//! Histograms: counts of times between fixed bounds.

use super::Counter;

/// Upper bounds of the buckets in nanoseconds, from a short transaction to a very slow one: 1, 2.5
/// and 5 of every power of ten. One more bucket counts longer times.
pub const BOUNDS_NS: [u64; 19] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Counts of times, written by one thread.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Counter; BOUNDS_NS.len() + 1],
    sum_ns: Counter,
}

/// The values of a histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// The number of times in each bucket; the last one counts times above all bounds.
    pub buckets: Vec<u64>,
    /// Their sum in nanoseconds.
    pub sum_ns: u64,
}

impl Histogram {
    /// Counts one time. Short times are most frequent, and need only a few comparisons.
    pub fn record(&self, time_ns: u64) {
        self.record_many(time_ns, 1);
    }

    /// Counts the same time several times.
    pub fn record_many(&self, time_ns: u64, times: u64) {
        let index = BOUNDS_NS.iter().position(|bound| time_ns <= *bound);
        self.buckets[index.unwrap_or(BOUNDS_NS.len())].add_many(times);
        self.sum_ns.add_many(time_ns.saturating_mul(times));
    }

    /// Reads the counts.
    pub fn read(&self) -> Distribution {
        Distribution {
            buckets: self.buckets.iter().map(Counter::value).collect(),
            sum_ns: self.sum_ns.value(),
        }
    }
}

impl Distribution {
    /// Adds the times of another one.
    pub fn add(&mut self, other: &Distribution) {
        self.buckets.resize(BOUNDS_NS.len() + 1, 0);
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
    }
}
