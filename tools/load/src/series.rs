//! What happened in each second of a run: answers, errors and latency over time.
//!
//! A cell is small, since there is one for each second and thread: its latencies are counted in
//! coarse steps. Long runs have longer intervals instead of more of them.

/// Intervals of a series: when there are so many, every two become one.
const INTERVALS_MAX: usize = 1024;
/// The first length of an interval: a second, in nanoseconds.
const INTERVAL_NS: u64 = 1_000_000_000;
/// Linear steps per power of two: latencies over time are exact to 6 %.
const STEP_BITS: u32 = 3;
const STEPS: usize = 1 << STEP_BITS;
/// Powers of two: latencies from 1 to 2^37 ns, which is two minutes; others are clamped.
const OCTAVES: usize = 37;

/// One interval.
#[derive(Clone, Debug)]
struct Cell {
    answered: u64,
    errors: u64,
    latencies: Vec<u32>,
    max_ns: u64,
}

impl Default for Cell {
    fn default() -> Self {
        Cell {
            answered: 0,
            errors: 0,
            latencies: vec![0; STEPS * OCTAVES],
            max_ns: 0,
        }
    }
}

impl Cell {
    fn add(&mut self, other: &Cell) {
        self.answered += other.answered;
        self.errors += other.errors;
        self.max_ns = self.max_ns.max(other.max_ns);
        for (mine, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// The latency that `percent` of the answers do not exceed, in nanoseconds.
    fn percentile(&self, percent: f64) -> Option<f64> {
        let rank = (percent / 100.0 * self.answered as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.latencies.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return Some(middle_ns(index).min(self.max_ns as f64));
            }
        }
        None
    }
}

/// Intervals of one length since the end of the warm-up.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    interval_ns: u64,
    cells: Vec<Cell>,
}

impl Default for Series {
    fn default() -> Self {
        Series {
            interval_ns: INTERVAL_NS,
            cells: Vec::new(),
        }
    }
}

/// One interval in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// When it began, in seconds since the end of the warm-up.
    pub(crate) start_s: f64,
    pub(crate) answered: u64,
    pub(crate) errors: u64,
    /// Microseconds; `None` where nothing was answered.
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    pub(crate) max_us: Option<f64>,
}

impl Series {
    /// Counts an answer that came at this time after the warm-up.
    #[inline]
    pub(crate) fn answered(&mut self, at_ns: u64, latency_ns: u64) {
        let cell = self.cell(at_ns);
        cell.answered += 1;
        cell.max_ns = cell.max_ns.max(latency_ns);
        if let Some(count) = cell.latencies.get_mut(index_of(latency_ns)) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts an error that was seen at this time.
    pub(crate) fn failed(&mut self, at_ns: u64) {
        self.cell(at_ns).errors += 1;
    }

    /// Adds another thread's.
    pub(crate) fn merge(&mut self, other: &Series) {
        let mut other = other.clone();
        while self.interval_ns < other.interval_ns {
            self.widen();
        }
        while other.interval_ns < self.interval_ns {
            other.widen();
        }
        if self.cells.len() < other.cells.len() {
            self.cells.resize_with(other.cells.len(), Cell::default);
        }
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            mine.add(theirs);
        }
    }

    /// The length of an interval in seconds.
    pub(crate) fn interval_s(&self) -> f64 {
        self.interval_ns as f64 / 1e9
    }

    /// The intervals in their order.
    pub(crate) fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        let interval_s = self.interval_s();
        self.cells.iter().enumerate().map(move |(index, cell)| {
            let us = |percent| cell.percentile(percent).map(|ns| ns / 1e3);
            Interval {
                start_s: index as f64 * interval_s,
                answered: cell.answered,
                errors: cell.errors,
                p50_us: us(50.0),
                p99_us: us(99.0),
                max_us: (cell.answered > 0).then_some(cell.max_ns as f64 / 1e3),
            }
        })
    }

    fn cell(&mut self, at_ns: u64) -> &mut Cell {
        while at_ns / self.interval_ns >= INTERVALS_MAX as u64 {
            self.widen();
        }
        let index = usize::try_from(at_ns / self.interval_ns).unwrap_or(0);
        if index >= self.cells.len() {
            self.cells.resize_with(index + 1, Cell::default);
        }
        &mut self.cells[index]
    }

    /// Two intervals become one.
    fn widen(&mut self) {
        self.interval_ns = self.interval_ns.saturating_mul(2);
        let pairs = self.cells.chunks(2).map(|pair| {
            let mut sum = pair[0].clone();
            if let Some(second) = pair.get(1) {
                sum.add(second);
            }
            sum
        });
        self.cells = pairs.collect();
    }
}

#[inline]
fn index_of(value: u64) -> usize {
    let value = value.max(1);
    let octave = value.ilog2();
    let step = match octave.checked_sub(STEP_BITS) {
        Some(shift) => (value >> shift) as usize & (STEPS - 1),
        None => (value << (STEP_BITS - octave)) as usize & (STEPS - 1),
    };
    (octave as usize * STEPS + step).min(STEPS * OCTAVES - 1)
}

fn middle_ns(index: usize) -> f64 {
    let octave = (index / STEPS) as f64;
    let step = (index % STEPS) as f64;
    (1.0 + (step + 0.5) / STEPS as f64) * octave.exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_within_a_sixteenth_of_their_step() {
        for value in [16_u64, 100, 1_000, 123_456, 7_000_000_000] {
            let middle = middle_ns(index_of(value));
            let error = (middle - value as f64).abs() / value as f64;
            assert!(error <= 1.0 / 16.0, "{value}: {middle}");
        }
        assert!(index_of(u64::MAX) < STEPS * OCTAVES);
    }

    #[test]
    fn seconds_have_their_own_figures() {
        let mut series = Series::default();
        for answer in 0..100 {
            series.answered(200_000_000, 1_000_000 * (answer / 99 * 9 + 1));
        }
        series.failed(2_500_000_000);
        let intervals: Vec<Interval> = series.intervals().collect();
        assert_eq!(intervals.len(), 3);
        assert_eq!((intervals[0].answered, intervals[2].errors), (100, 1));
        assert_eq!((intervals[1].p50_us, intervals[2].start_s), (None, 2.0));
        let p50_us = intervals[0].p50_us.unwrap_or_default();
        assert!((p50_us - 1000.0).abs() < 63.0, "{p50_us}");
        assert_eq!(intervals[0].max_us, Some(10_000.0));
    }

    #[test]
    fn long_runs_have_longer_intervals_and_lose_nothing() {
        let (mut long, mut short) = (Series::default(), Series::default());
        for second in 0..3000 {
            long.answered(second * 1_000_000_000, 1000);
        }
        short.answered(0, 1000);
        short.merge(&long);
        assert_eq!(short.interval_s(), 4.0);
        let all: u64 = short.intervals().map(|one| one.answered).sum();
        assert_eq!(all, 3001);
        assert!(short.cells.len() <= INTERVALS_MAX);
    }
}
