//! The bytes that a waiting request moves, either way: whether its client keeps it going.
//!
//! What such a request waits for is not known here.

use std::cell::Cell;

/// Part of `send_timeout` after which a client that has moved no byte is stalled: long enough for
/// every pause of a network that works, and well before the time-out ends the request.
const STALLED_PART: u64 = 4;

/// Milliseconds that stand for a `send_timeout` of 0, which never passes: the directive's default.
const TIMEOUT_DEFAULT_MS: u64 = 60_000;

/// Bytes a second below which a client is slow: less than any network of today gives to one that
/// wants its answer.
const SLOW_BYTES_PER_SECOND: u64 = 1024;

/// Milliseconds after which a client that has moved no byte is stalled, by the `send_timeout` of
/// the request's location.
pub(crate) fn stalled_after_ms(send_timeout_ms: u64) -> u64 {
    let timeout_ms = match send_timeout_ms {
        0 => TIMEOUT_DEFAULT_MS,
        timeout_ms => timeout_ms,
    };
    timeout_ms / STALLED_PART
}

/// How fast the client of a waiting request moves it on, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// No byte has moved for a quarter of `send_timeout`.
    Stalled,
    /// So few bytes move that they only keep the request alive.
    Slow,
    Steady,
}

/// The bytes of one request, in the lane's monotonic milliseconds.
pub(crate) struct Traffic {
    began_ms: u64,
    moved_ms: Cell<u64>,
    moved_bytes: Cell<u64>,
    stalled_after_ms: Cell<u64>,
}

impl Traffic {
    /// The request begins now, which counts as a move.
    pub(crate) fn new(now_ms: u64) -> Self {
        Self {
            began_ms: now_ms,
            moved_ms: Cell::new(now_ms),
            moved_bytes: Cell::new(0),
            stalled_after_ms: Cell::new(stalled_after_ms(0)),
        }
    }

    /// Takes the `send_timeout` of the request's location, in milliseconds.
    pub(crate) fn set_timeout(&self, send_timeout_ms: u64) {
        self.stalled_after_ms.set(stalled_after_ms(send_timeout_ms));
    }

    /// So many bytes have moved, to the client or from it.
    pub(crate) fn moved(&self, bytes: usize, now_ms: u64) {
        if bytes > 0 {
            self.moved_bytes.set(self.moved_bytes.get() + bytes as u64);
            self.moved_ms.set(now_ms);
        }
    }

    /// When a byte has moved last.
    pub(crate) fn moved_ms(&self) -> u64 {
        self.moved_ms.get()
    }

    /// Whether that time is too long ago for a client that works.
    pub(crate) fn is_long_ago(&self, moved_ms: u64, now_ms: u64) -> bool {
        now_ms.saturating_sub(moved_ms) >= self.stalled_after_ms.get()
    }

    /// The pace of the client, if it is the client that the request waits for.
    pub(crate) fn pace(&self, now_ms: u64) -> Pace {
        let age_ms = now_ms.saturating_sub(self.began_ms);
        if self.is_long_ago(self.moved_ms(), now_ms) {
            Pace::Stalled
        } else if age_ms >= self.stalled_after_ms.get()
            && self.moved_bytes.get().saturating_mul(1_000) / age_ms.max(1) < SLOW_BYTES_PER_SECOND
        {
            Pace::Slow
        } else {
            Pace::Steady
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pace, Traffic};

    /// `send_timeout`, the moves (when, bytes), when it is looked at, the pace.
    type Case = (u64, &'static [(u64, usize)], u64, Pace);

    const CASES: &[Case] = &[
        (60_000, &[], 14_999, Pace::Steady),
        (60_000, &[], 15_000, Pace::Stalled),
        (60_000, &[(10, 0)], 15_000, Pace::Stalled),
        (60_000, &[(14_000, 1)], 15_000, Pace::Slow),
        (60_000, &[(14_000, 1)], 28_999, Pace::Slow),
        (60_000, &[(14_000, 1)], 29_000, Pace::Stalled),
        (60_000, &[(14_000, 100_000)], 28_000, Pace::Steady),
        (60_000, &[(14_000, 100_000)], 29_000, Pace::Stalled),
        (60_000, &[(100_000, 100_000)], 100_000, Pace::Slow),
        (4_000, &[], 1_000, Pace::Stalled),
        (4_000, &[(500, 1)], 999, Pace::Steady),
        (0, &[], 14_999, Pace::Steady),
        (0, &[], 15_000, Pace::Stalled),
    ];

    #[test]
    fn a_client_is_stalled_after_a_quarter_of_its_time_and_slow_where_it_only_drips() {
        for (timeout_ms, moves, now_ms, expected) in CASES {
            let traffic = Traffic::new(0);
            traffic.set_timeout(*timeout_ms);
            for (moved_ms, bytes) in *moves {
                traffic.moved(*bytes, *moved_ms);
            }
            let pace = traffic.pace(*now_ms);
            assert_eq!(pace, *expected, "{timeout_ms} {moves:?} {now_ms}");
        }
    }
}
