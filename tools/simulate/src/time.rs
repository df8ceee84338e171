//! The time of a run: it passes while the lane waits, and with the time of its runtime.

use tokio::runtime::Handle;
use tokio::time::Instant;

/// The time since the machine's start at the beginning of every run.
const START_NS: u64 = 1_000_000_000_000;

/// The time of day at the beginning of every run, in milliseconds since 1970.
const START_UNIX_MS: u64 = 1_700_000_000_000;

/// A clock that a run sets.
pub(crate) struct Time {
    now_ns: u64,
    /// The runtime's time when it was last read: it advances by itself.
    runtime_time: Option<Instant>,
}

impl Time {
    /// The beginning of a run.
    pub(crate) fn new() -> Time {
        Time {
            now_ns: START_NS,
            runtime_time: None,
        }
    }

    /// Monotonic time in nanoseconds.
    pub(crate) fn now_ns(&mut self) -> u64 {
        if Handle::try_current().is_ok() {
            let time = Instant::now();
            let before = self.runtime_time.replace(time).unwrap_or(time);
            self.now_ns += time.duration_since(before).as_nanos() as u64;
        }
        self.now_ns
    }

    /// The milliseconds since the run's beginning.
    pub(crate) fn now_ms(&mut self) -> u64 {
        (self.now_ns() - START_NS) / 1_000_000
    }

    /// Milliseconds since 1970.
    pub(crate) fn unix_ms(&mut self) -> u64 {
        START_UNIX_MS + self.now_ms()
    }

    /// Lets time pass.
    pub(crate) fn pass_ms(&mut self, passed_ms: u64) {
        self.now_ns += passed_ms * 1_000_000;
    }
}
