//! The budget of a group's retries: where many requests fail, retries of all of them would multiply
//! the load of the peers that still work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The period over which retries are compared with requests, in milliseconds: long enough that a
/// few failures in a row are retried, short enough that an hour without failures saves nothing up.
const WINDOW_MS: u64 = 10_000;

/// The limits of a group's retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// The retries of a period, in percent of its requests.
    pub percent: u64,
    /// The retries of a period that are allowed whatever the number of requests.
    pub retries_min: u64,
}

/// The requests and retries of a group, of all lanes.
#[derive(Default)]
pub(crate) struct RetryBudget {
    counts: Mutex<Counts>,
    /// The retries that were refused.
    refused: AtomicU64,
}

impl RetryBudget {
    /// Counts a request that is tried for the first time.
    pub(crate) fn count_request(&self, now_ms: u64) {
        let mut counts = self.counts();
        counts.turn(now_ms);
        counts.requests.now += 1;
    }

    /// Whether a retry is allowed now.
    pub(crate) fn allows(&self, limits: RetryLimits, now_ms: u64) -> bool {
        let mut counts = self.counts();
        counts.turn(now_ms);
        let is_allowed = counts.has_room(limits, now_ms);
        if !is_allowed {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_allowed
    }

    /// Counts a retry, if it is allowed now.
    pub(crate) fn spend(&self, limits: RetryLimits, now_ms: u64) -> bool {
        let mut counts = self.counts();
        counts.turn(now_ms);
        let is_allowed = counts.has_room(limits, now_ms);
        if is_allowed {
            counts.retries.now += 1;
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_allowed
    }

    /// The number of retries that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Counts {
    /// The number of the current window.
    window: u64,
    requests: Count,
    retries: Count,
}

impl Counts {
    /// Begins another window, if it is time.
    fn turn(&mut self, now_ms: u64) {
        let window = now_ms / WINDOW_MS;
        let passed = window.saturating_sub(self.window);
        for count in [&mut self.requests, &mut self.retries] {
            match passed {
                0 => {}
                1 => {
                    *count = Count {
                        now: 0,
                        before: count.now,
                    }
                }
                _ => *count = Count::default(),
            }
        }
        self.window = self.window.max(window);
    }

    fn has_room(&self, limits: RetryLimits, now_ms: u64) -> bool {
        let share = self
            .requests
            .last_period(now_ms)
            .saturating_mul(limits.percent)
            / 100;
        let least = limits.retries_min.saturating_mul(WINDOW_MS);
        self.retries.last_period(now_ms) + WINDOW_MS <= share.max(least)
    }
}

/// What was counted in the current window and in the one before.
#[derive(Default)]
struct Count {
    now: u64,
    before: u64,
}

impl Count {
    /// The count of the last period, times its milliseconds: of the window before, the part that
    /// still belongs to it.
    fn last_period(&self, now_ms: u64) -> u64 {
        let left_ms = WINDOW_MS - now_ms % WINDOW_MS;
        self.now
            .saturating_mul(WINDOW_MS)
            .saturating_add(self.before.saturating_mul(left_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RetryLimits = RetryLimits {
        percent: 20,
        retries_min: 2,
    };

    /// The number of retries that are allowed at a time.
    fn spent(budget: &RetryBudget, now_ms: u64) -> usize {
        (0..100)
            .take_while(|_| budget.spend(LIMITS, now_ms))
            .count()
    }

    #[test]
    fn retries_are_a_share_of_the_requests_of_the_last_period() {
        let budget = RetryBudget::default();
        let start_ms = 7 * WINDOW_MS;
        assert_eq!(spent(&budget, start_ms), 2, "some are always allowed");
        for _ in 0..50 {
            budget.count_request(start_ms);
        }
        assert_eq!(spent(&budget, start_ms), 8, "a fifth of the requests");
        assert!(!budget.allows(LIMITS, start_ms + WINDOW_MS));
        // Half of the requests and of the retries are too old.
        assert_eq!(spent(&budget, start_ms + WINDOW_MS * 3 / 2), 0);
        assert_eq!(spent(&budget, start_ms + 2 * WINDOW_MS), 2);
        assert_eq!(
            spent(&budget, start_ms + 9 * WINDOW_MS),
            2,
            "nothing was saved up"
        );
        assert_eq!(budget.refused(), 6);
    }

    #[test]
    fn a_clock_of_another_lane_may_be_behind() {
        let budget = RetryBudget::default();
        for _ in 0..100 {
            budget.count_request(WINDOW_MS * 3);
        }
        assert!(budget.spend(LIMITS, WINDOW_MS * 3 - 1));
    }
}
