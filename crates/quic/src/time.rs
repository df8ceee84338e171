//! Times of a lane, as the protocol's library wants them.

use std::time::{Duration, Instant};

/// Turns a lane's monotonic nanoseconds into instants and back. Simulated clocks have their own
/// beginning, so the scale begins with a pair of both.
#[derive(Clone, Copy, Debug)]
pub struct TimeScale {
    instant: Instant,
    ns: u64,
}

impl TimeScale {
    /// The scale on which it is `now_ns` now.
    #[must_use]
    pub fn new(now_ns: u64) -> Self {
        Self {
            instant: Instant::now(),
            ns: now_ns,
        }
    }

    /// The instant of a time in monotonic nanoseconds.
    #[must_use]
    pub fn instant(&self, ns: u64) -> Instant {
        self.instant + Duration::from_nanos(ns.saturating_sub(self.ns))
    }

    /// The first millisecond of the lane at which the instant has come.
    #[must_use]
    pub fn ms(&self, instant: Instant) -> u64 {
        let after_ns = instant.saturating_duration_since(self.instant).as_nanos();
        let ns = u64::try_from(after_ns).unwrap_or(u64::MAX);
        self.ns.saturating_add(ns).div_ceil(1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::TimeScale;

    #[test]
    fn a_deadline_is_never_early() {
        let scale = TimeScale::new(5_000_001);
        for (ns, ms) in [(5_000_001, 6), (6_000_000, 6), (6_000_001, 7), (1, 6)] {
            assert_eq!(scale.ms(scale.instant(ns)), ms, "{ns}");
        }
    }
}
