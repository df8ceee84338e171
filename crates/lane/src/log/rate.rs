//! The greatest rate of the lines of a target, as in freenginx and Angie.

use std::sync::{Mutex, PoisonError};

use super::level::Level;

/// One line in the units of [`State::excess`].
const LINE: u64 = 1000;

/// A leaky bucket of lines. The less severe levels fill it only in part, so that a flood of them
/// leaves room for errors.
#[derive(Debug)]
pub(super) struct Limit {
    lines_per_second: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The time of the last line that was written, in monotonic milliseconds.
    last_ms: u64,
    /// The lines in the bucket, in thousandths.
    excess: u64,
}

/// The verdict on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The line is written.
    Written,
    /// The line is the first one to be left out: a line says so.
    FirstLost,
    /// The line is left out.
    Lost,
}

impl Limit {
    /// A limit with an empty bucket.
    pub(super) fn new(lines_per_second: u32) -> Limit {
        Limit {
            lines_per_second,
            state: Mutex::default(),
        }
    }

    /// Counts a line of a target whose least severe level is `least`.
    pub(super) fn count(&self, level: Level, least: Level, now_ms: u64) -> Verdict {
        let rate = u64::from(self.lines_per_second);
        let more_severe = (least as u64).saturating_sub(level as u64);
        let room = rate * LINE * (more_severe + 1);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let left = rate.saturating_mul(now_ms.saturating_sub(state.last_ms));
        let excess = state.excess.saturating_sub(left) + LINE;
        if excess <= room {
            *state = State {
                last_ms: now_ms.max(state.last_ms),
                excess,
            };
            return Verdict::Written;
        }
        if state.excess > room {
            return Verdict::Lost;
        }
        // Above the room, so that the next one is not the first again.
        state.excess = room + 1;
        Verdict::FirstLost
    }
}
