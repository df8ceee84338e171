//! The response times of a peer: moving averages, and the times of requests in progress.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Times above this count as equal, in milliseconds: then the number of requests decides.
const TIME_MS_MAX: u64 = 5000;

/// Times within this many milliseconds count as equal, so that round robin is used among them.
const STEP_MS: u64 = 20;

/// The time that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until the peer was connected to.
    Connect,
    /// Until the head of the response; in `stream`, until its first byte.
    Header,
    /// Until its end.
    LastByte,
}

/// A peer's times. Averages are not exact if two lanes add to one at the same time.
#[derive(Default)]
pub(crate) struct Times {
    connect_ms: AtomicU64,
    header_ms: AtomicU64,
    response_ms: AtomicU64,
    inflight: Mutex<Inflight>,
}

/// The requests in progress.
#[derive(Default)]
struct Inflight {
    count: u64,
    /// Their total time at the last change.
    taken_ms: u64,
    changed_ms: u64,
    /// The moving average of their times.
    average_ms: u64,
}

impl Times {
    /// Adds a time.
    pub(crate) fn add(&self, until: Until, took_ms: u64) {
        let average = match until {
            Until::Connect => &self.connect_ms,
            Until::Header => &self.header_ms,
            Until::LastByte => &self.response_ms,
        };
        slide(average, took_ms);
    }

    /// Average time until a response's head, in milliseconds; 0 before the first.
    pub(crate) fn header_ms(&self) -> u64 {
        self.header_ms.load(Ordering::Relaxed)
    }

    /// Average time until a response's end, in milliseconds; 0 before the first.
    pub(crate) fn response_ms(&self) -> u64 {
        self.response_ms.load(Ordering::Relaxed)
    }

    /// A request begins.
    pub(crate) fn began(&self, now_ms: u64) {
        let mut inflight = self.inflight();
        if inflight.count > 0 {
            inflight.taken_ms += inflight.since_ms(now_ms) * inflight.count;
        }
        inflight.changed_ms = now_ms;
        inflight.count += 1;
    }

    /// A request ends.
    pub(crate) fn done(&self, now_ms: u64, took_ms: u64) {
        let mut inflight = self.inflight();
        if inflight.count <= 1 {
            inflight.taken_ms = 0;
        } else {
            let taken_ms = inflight.taken_ms + inflight.since_ms(now_ms) * inflight.count;
            inflight.taken_ms = taken_ms.saturating_sub(took_ms);
            inflight.changed_ms = now_ms;
        }
        inflight.count = inflight.count.saturating_sub(1);
    }

    /// Updates the average of the requests in progress.
    pub(crate) fn look(&self, now_ms: u64) {
        let mut inflight = self.inflight();
        if let Some(taken_ms) = inflight.taken_ms.checked_div(inflight.count) {
            let one_ms = taken_ms + inflight.since_ms(now_ms);
            inflight.average_ms = slid(inflight.average_ms, one_ms);
        }
    }

    /// The time that counts, after this many halvings, in steps.
    pub(crate) fn estimate_ms(&self, until: Until, halvings: u64) -> u64 {
        let time_ms = match until {
            Until::Connect => self.connect_ms.load(Ordering::Relaxed),
            Until::Header => self.header_ms(),
            Until::LastByte => self.response_ms(),
        };
        let halvings = u32::try_from(halvings).unwrap_or(u32::MAX);
        let mut time_ms = time_ms.checked_shr(halvings).unwrap_or(0);
        let inflight = self.inflight();
        if inflight.count > 0 {
            time_ms = time_ms.max(inflight.average_ms);
        }
        if time_ms > TIME_MS_MAX {
            TIME_MS_MAX
        } else {
            time_ms + STEP_MS - time_ms % STEP_MS
        }
    }

    fn inflight(&self) -> MutexGuard<'_, Inflight> {
        self.inflight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inflight {
    fn since_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.changed_ms)
    }
}

/// nginx's moving average: the new value counts a twentieth.
fn slid(average: u64, value: u64) -> u64 {
    match average {
        0 => value,
        average => (average * 19 + value + 10) / 20,
    }
}

fn slide(average: &AtomicU64, value: u64) {
    let slid = slid(average.load(Ordering::Relaxed), value);
    average.store(slid, Ordering::Relaxed);
}
