//! The end of sessions that take longer than `worker_shutdown_timeout` after the end of the server
//! or a reload. It ends nothing by itself: the futures of sessions wait for it.

use std::cell::Cell;

use tokio::sync::Notify;

/// What the log says of a session that is ended so.
pub(crate) const MESSAGE: &str = "worker_shutdown_timeout has passed, the session is ended";

/// Which sessions of a lane have to end, whatever they are at.
#[derive(Default)]
pub(crate) struct Cut {
    /// The last time at which such a session began, in the lane's monotonic milliseconds.
    until_ms: Cell<Option<u64>>,
    changed: Notify,
}

impl Cut {
    /// Ends the sessions that began up to that time, in monotonic milliseconds.
    pub(crate) fn set(&self, until_ms: u64) {
        self.until_ms.set(self.until_ms.get().max(Some(until_ms)));
        self.changed.notify_waiters();
    }

    /// Waits until a session that began at that time has to end.
    pub(crate) async fn of(&self, started_ms: u64) {
        loop {
            let changed = self.changed.notified();
            if self.until_ms.get() >= Some(started_ms) {
                return;
            }
            changed.await;
        }
    }
}
