//! Intended start times of an open loop.
//!
//! The times are generated in order and only when a connection can take one, so a backlog costs
//! no memory: what is late waits inside this generator, and its latency counts from the time it
//! was meant to start.

use crate::mix::Random;

/// How arrivals are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Evenly.
    Constant,
    /// Independently of each other, with exponential gaps.
    Poisson,
}

/// The stream of intended start times of one thread, in nanoseconds since the run began.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    arrival: Arrival,
    /// Nanoseconds between two arrivals, on average.
    gap_ns: f64,
    /// The next arrival.
    next_ns: f64,
    /// No arrival at or after this time.
    end_ns: u64,
}

impl Schedule {
    /// A schedule of `per_s` arrivals per second in all, of which this thread takes its share.
    pub(crate) fn new(
        arrival: Arrival,
        per_s: f64,
        thread: usize,
        threads: usize,
        end_ns: u64,
    ) -> Self {
        let gap_all_ns = 1e9 / per_s;
        let next_ns = gap_all_ns * thread as f64;
        Schedule {
            arrival,
            gap_ns: gap_all_ns * threads as f64,
            next_ns,
            end_ns,
        }
    }

    /// The next intended start, unless the schedule is over.
    pub(crate) fn peek_ns(&self) -> Option<u64> {
        let next = self.next_ns as u64;
        (next < self.end_ns).then_some(next)
    }

    /// Takes the next intended start if it is due at `now_ns`.
    pub(crate) fn take_due(&mut self, now_ns: u64, random: &mut Random) -> Option<u64> {
        let next = self.peek_ns().filter(|next| *next <= now_ns)?;
        self.next_ns += match self.arrival {
            Arrival::Constant => self.gap_ns,
            Arrival::Poisson => self.gap_ns * random.exponential(),
        };
        Some(next)
    }

    /// How many arrivals are left before the end; for the report of what was never sent.
    pub(crate) fn left(&self) -> u64 {
        match self.peek_ns() {
            Some(next) => ((self.end_ns - next) as f64 / self.gap_ns).ceil() as u64,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_constant_rate_without_overlap() {
        let mut random = Random::new(0);
        let mut times = Vec::new();
        for thread in 0..2 {
            let mut schedule = Schedule::new(Arrival::Constant, 1000.0, thread, 2, 10_000_000);
            assert_eq!(schedule.left(), 5);
            while let Some(time) = schedule.take_due(u64::MAX, &mut random) {
                times.push(time);
            }
            assert_eq!(schedule.left(), 0);
        }
        times.sort_unstable();
        let expected: Vec<u64> = (0..10).map(|index| index * 1_000_000).collect();
        assert_eq!(times, expected);
    }

    #[test]
    fn nothing_is_due_early_and_poisson_keeps_the_rate() {
        let mut random = Random::new(3);
        let mut schedule = Schedule::new(Arrival::Poisson, 10_000.0, 1, 2, 10_000_000_000);
        assert_eq!(schedule.take_due(10, &mut random), None);
        let mut count = 0;
        while schedule.take_due(u64::MAX, &mut random).is_some() {
            count += 1;
        }
        assert!((48_500..51_500).contains(&count), "{count}");
    }
}
