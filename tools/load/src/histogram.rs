//! Log-linear counts for the hot path.
//!
//! One per thread and per part of a transaction; recording is a shift, an add and one store, never
//! an allocation or a shared atomic. Percentiles, merging and the export to HdrHistogram logs
//! happen after the run. Values are nanoseconds (or any other unsigned quantity).

/// Linear steps per power of two: 1024 keeps every value within 0.1 %.
const STEP_BITS: u32 = 10;
/// Linear steps per power of two.
const STEPS: usize = 1 << STEP_BITS;
/// Powers of two above the linear start; 2^42 ns is 73 minutes, longer values are clamped.
const OCTAVES: u32 = 32;
/// All buckets: the linear start, then half as many steps for each power of two.
const BUCKETS: usize = STEPS + STEPS / 2 * OCTAVES as usize;
/// The largest value that is distinguished.
const VALUE_MAX: u64 = (1 << (STEP_BITS + OCTAVES)) - 1;

/// Counts of values in buckets no wider than 0.1 % of the value.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: f64,
    max: u64,
    min: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            counts: vec![0; BUCKETS],
            total: 0,
            sum: 0.0,
            max: 0,
            min: u64::MAX,
        }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts one value `count` times.
    #[inline]
    pub(crate) fn record_many(&mut self, value: u64, count: u64) {
        let value = value.min(VALUE_MAX);
        if let Some(bucket) = self.counts.get_mut(index_of(value)) {
            *bucket += count;
        }
        self.total += count;
        self.sum += value as f64 * count as f64;
        self.max = self.max.max(value);
        self.min = self.min.min(value);
    }

    /// Adds another histogram's counts to this one.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.min = self.min.min(other.min);
    }

    /// What was counted since `before`, an earlier state of this histogram. Smallest and largest
    /// value are those of both.
    pub(crate) fn since(&self, before: &Histogram) -> Histogram {
        let mut since = self.clone();
        for (mine, theirs) in since.counts.iter_mut().zip(&before.counts) {
            *mine = mine.saturating_sub(*theirs);
        }
        since.total = since.total.saturating_sub(before.total);
        since.sum -= before.sum;
        since
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The largest value, exact; 0 when empty.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The smallest value, exact; 0 when empty.
    pub(crate) fn min(&self) -> u64 {
        if self.total == 0 { 0 } else { self.min }
    }

    /// The arithmetic mean, exact; 0 when empty.
    pub(crate) fn mean(&self) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            self.sum / self.total as f64
        }
    }

    /// The sample standard deviation; 0 with fewer than two values.
    pub(crate) fn deviation(&self) -> f64 {
        if self.total < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let sum: f64 = self
            .buckets()
            .map(|(value, count)| (value as f64 - mean).powi(2) * count as f64)
            .sum();
        (sum / (self.total - 1) as f64).sqrt()
    }

    /// The share of values, in percent, within one standard deviation of the mean.
    pub(crate) fn within_deviation_percent(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let (mean, deviation) = (self.mean(), self.deviation());
        let range = mean - deviation..=mean + deviation;
        let inside: u64 = self
            .buckets()
            .filter(|(value, _)| range.contains(&(*value as f64)))
            .map(|(_, count)| count)
            .sum();
        inside as f64 / self.total as f64 * 100.0
    }

    /// The value at or below which `percent` of all values lie; 0 when empty.
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = (percent / 100.0 * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (value, count) in self.buckets() {
            seen += count;
            if seen >= rank {
                return value;
            }
        }
        self.max
    }

    /// The filled buckets as (middle value, count), in rising order; no value lies outside of what
    /// was recorded.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| (middle_of(index).clamp(self.min, self.max), *count))
    }
}

#[inline]
fn index_of(value: u64) -> usize {
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(STEP_BITS);
    if octave == 0 {
        return value as usize;
    }
    // Bits below the leading one select the step; each octave holds STEPS / 2 of them, the
    // first octave (linear start) all.
    let half = STEPS / 2;
    let step = (value >> octave) as usize - half;
    STEPS + (octave as usize - 1) * half + step
}

fn middle_of(index: usize) -> u64 {
    if index < STEPS {
        return index as u64;
    }
    let half = STEPS / 2;
    let octave = (index - STEPS) / half + 1;
    let step = ((index - STEPS) % half + half) as u64;
    (step << octave) + (1 << octave) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lands_within_a_fifth_of_a_percent() {
        let mut value = 1_u64;
        while value < VALUE_MAX {
            for candidate in [value - 1, value, value + 1, value + value / 3] {
                let candidate = candidate.min(VALUE_MAX);
                let index = index_of(candidate);
                assert!(index < BUCKETS, "{candidate}");
                let error = middle_of(index).abs_diff(candidate) as f64;
                assert!(error <= candidate as f64 * 0.002, "{candidate} {error}");
            }
            value *= 2;
        }
    }

    #[test]
    fn figures_of_a_known_series() {
        let mut histogram = Histogram::default();
        for value in 1..=1000 {
            histogram.record(value);
        }
        assert_eq!(histogram.count(), 1000);
        assert_eq!(histogram.percentile(50.0), 500);
        assert_eq!(histogram.percentile(99.0), 990);
        assert_eq!((histogram.min(), histogram.max()), (1, 1000));
        assert!((histogram.mean() - 500.5).abs() < 1e-9);
        assert!((histogram.deviation() - 288.82).abs() < 0.1);
        let mut twice = histogram.clone();
        twice.merge(&histogram);
        assert_eq!((twice.count(), twice.percentile(99.0)), (2000, 990));
        let since = twice.since(&histogram);
        assert_eq!((since.count(), since.percentile(50.0)), (1000, 500));
    }

    #[test]
    fn an_empty_histogram_gives_zeros() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentile(99.0), 0);
        assert_eq!(
            (histogram.min(), histogram.max(), histogram.count()),
            (0, 0, 0)
        );
        assert_eq!(histogram.within_deviation_percent(), 0.0);
    }
}
