//! Waits that are too short for the wheel: the loop's own wait ends with the first of them, so that
//! none is late by more than a millisecond where the loop is idle.

use std::collections::VecDeque;

/// The longest wait that is brief, in milliseconds. Those of the wheel may be ten times as late.
const BRIEF_MS_MAX: u64 = 16;

/// The most brief waits at a time: a wait beyond is one of the wheel. Lanes with so many wait for
/// some hundred answers a millisecond, and their turns are no shorter.
const BRIEF_WAITS_MAX: usize = 4096;

/// The brief waits of a loop, first the one that ends first. They have about the same length, so
/// that most of them are added at the end.
#[derive(Default)]
pub(super) struct BriefWaits(VecDeque<BriefWait>);

#[derive(Clone, Copy)]
struct BriefWait {
    ends_ms: u64,
    token: u32,
}

impl BriefWaits {
    /// Adds a wait, unless it is not brief, or there are too many. `false`: it was not added.
    pub(super) fn insert(&mut self, token: u32, ends_ms: u64, now_ms: u64) -> bool {
        if ends_ms > now_ms + BRIEF_MS_MAX || self.0.len() >= BRIEF_WAITS_MAX {
            return false;
        }
        let is_earlier = |wait: &BriefWait| wait.ends_ms <= ends_ms;
        let place = self.0.iter().rposition(is_earlier);
        let place = place.map_or(0, |place| place + 1);
        self.0.insert(place, BriefWait { ends_ms, token });
        true
    }

    /// Removes the waits of a token.
    pub(super) fn remove(&mut self, token: u32) {
        if !self.0.is_empty() {
            self.0.retain(|wait| wait.token != token);
        }
    }

    /// How long the loop may wait for events, in milliseconds: no longer than `most_ms`.
    pub(super) fn sleep_ms(&self, most_ms: u64, now_ms: u64) -> u64 {
        let first = self.0.front();
        first.map_or(most_ms, |wait| {
            wait.ends_ms.saturating_sub(now_ms).min(most_ms)
        })
    }

    /// Removes and returns the token of a wait that is over.
    pub(super) fn expire(&mut self, now_ms: u64) -> Option<u32> {
        let wait = self.0.pop_front_if(|wait| wait.ends_ms <= now_ms);
        wait.map(|wait| wait.token)
    }

    /// The number of waits.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_end_in_the_order_of_their_ends() {
        let mut waits = BriefWaits::default();
        for (token, ends_ms) in [(0, 8), (1, 10), (2, 9), (3, 8), (4, 16)] {
            assert!(waits.insert(token, ends_ms, 0));
        }
        assert_eq!((waits.sleep_ms(100, 0), waits.sleep_ms(100, 20)), (8, 0));
        assert_eq!(waits.sleep_ms(5, 0), 5);
        waits.remove(3);
        assert_eq!(waits.expire(7), None);
        let expired: Vec<_> = std::iter::from_fn(|| waits.expire(12)).collect();
        assert_eq!(expired, [0, 2, 1]);
        assert_eq!(waits.len(), 1);
        waits.remove(4);
        assert_eq!(waits.sleep_ms(100, 12), 100);
    }

    #[test]
    fn long_waits_and_too_many_are_left_to_the_wheel() {
        let mut waits = BriefWaits::default();
        assert!(!waits.insert(0, BRIEF_MS_MAX + 1, 0));
        for token in 0..BRIEF_WAITS_MAX {
            assert!(waits.insert(token as u32, BRIEF_MS_MAX, 0));
        }
        assert!(!waits.insert(0, 1, 0));
    }
}
