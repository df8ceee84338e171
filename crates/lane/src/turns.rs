//! The turns of driven futures. A lane polls one future at a time, so one that never has to wait
//! would keep the lane for itself.
//!
//! Each wait that is over at once takes a **turn**. After some of them the future leaves the lane
//! to others, and goes on in its next poll. A future that takes turn after turn while no byte moves
//! is at fault: it is ended before it takes a CPU for ever.

use std::cell::Cell;
use std::fmt;

/// Turns without a moved byte from which on a poll counts as spent: half of those that tokio lets a
/// poll have, since a byte may have moved in the first of them.
const SPENT_TURNS_MIN: u32 = 64;

/// Turns without a moved byte after which a future is ended: about a second of a CPU. A future that
/// waits takes a turn for each event, and has a byte to move for nearly all of them; those of its
/// timers come at most a thousand times a second.
const IDLE_TURNS_MAX: u32 = 1_000_000;

thread_local! {
    /// The future that this thread polls.
    static PRESENT: Present = const {
        Present {
            turns: Cell::new(0),
            has_moved: Cell::new(false),
            is_ending: Cell::new(false),
            spent_polls: Cell::new(0),
        }
    };
}

struct Present {
    /// Turns in this poll since a byte moved.
    turns: Cell<u32>,
    /// Whether a byte has moved in this poll.
    has_moved: Cell<bool>,
    /// Whether the future is dropped since it has had its turns.
    is_ending: Cell<bool>,
    /// See [`spent_polls`].
    spent_polls: Cell<u64>,
}

/// Notes that bytes have moved: from or to a socket or a file, or between a connection and the
/// streams on it.
#[inline]
pub fn moved() {
    PRESENT.with(|present| {
        present.turns.set(0);
        present.has_moved.set(true);
    });
}

/// Takes a turn; leaves the lane to others if the future has had as many as a poll may have.
pub async fn take() {
    PRESENT.with(|present| present.turns.set(present.turns.get().saturating_add(1)));
    tokio::task::coop::consume_budget().await;
}

/// How many polls on this thread took turn after turn though no byte moved. Each is a fault.
pub fn spent_polls() -> u64 {
    PRESENT.with(|present| present.spent_polls.get())
}

/// Whether a future is dropped on this thread since it has had its turns.
pub fn is_ending() -> bool {
    PRESENT.with(|present| present.is_ending.get())
}

/// What the log says of a future that is ended.
pub struct Ended;

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "no byte has moved in {IDLE_TURNS_MAX} turns, which is an error of the server: closed"
        )
    }
}

/// The turns that a future has taken since a byte moved.
#[derive(Default)]
pub(crate) struct IdleTurns(u32);

impl IdleTurns {
    /// Polls the future, and counts the turns of the poll.
    pub(crate) fn during<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        PRESENT.with(|present| {
            present.turns.set(1);
            present.has_moved.set(false);
        });
        let polled = poll();
        PRESENT.with(|present| {
            let turns = present.turns.get();
            self.0 = if present.has_moved.get() {
                turns
            } else {
                self.0.saturating_add(turns)
            };
            if turns >= SPENT_TURNS_MIN {
                present.spent_polls.set(present.spent_polls.get() + 1);
            }
        });
        polled
    }

    /// Whether the future has had its turns.
    pub(crate) fn are_spent(&self) -> bool {
        self.0 >= IDLE_TURNS_MAX
    }
}

/// Drops a future that has had its turns; [`is_ending`] tells what it holds.
pub(crate) fn end<T>(future: T) {
    struct Restored;
    impl Drop for Restored {
        fn drop(&mut self) {
            PRESENT.with(|present| present.is_ending.set(false));
        }
    }
    PRESENT.with(|present| present.is_ending.set(true));
    let _restored = Restored;
    drop(future);
}
