//! When something was read or sent last: a session in which nothing moves for too long ends.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use turnpike_lane::clock::Clock;

/// The last activity of a session.
pub(super) struct Activity {
    clock: Rc<Clock>,
    /// Milliseconds; 0 is without limit.
    timeout_ms: u64,
    last_ms: Cell<u64>,
}

impl Activity {
    /// Something has just happened.
    pub(super) fn new(clock: Rc<Clock>, timeout_ms: u64) -> Self {
        Self {
            last_ms: Cell::new(clock.now_ms()),
            clock,
            timeout_ms,
        }
    }

    /// Something was read or sent.
    pub(super) fn note(&self) {
        self.last_ms.set(self.clock.now_ms());
    }

    /// Waits until nothing was read or sent for too long.
    pub(super) async fn idle(&self) {
        if self.timeout_ms == 0 {
            return std::future::pending().await;
        }
        loop {
            let due_ms = self.last_ms.get() + self.timeout_ms;
            let now_ms = self.clock.now_ms();
            if now_ms >= due_ms {
                return;
            }
            pause(due_ms - now_ms).await;
        }
    }
}

/// Waits so many milliseconds.
pub(super) async fn pause(pause_ms: u64) {
    if pause_ms > 0 {
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }
}
