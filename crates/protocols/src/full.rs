//! What the error log says of a lane that can accept no more.

use std::io;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::log::{Errno, ErrorLog, Level};

/// The time between two lines of the log that say that a lane is full, in milliseconds: it tries to
/// accept some fifty times a second.
const FULL_LINES_MS: u64 = 60_000;

/// The system has too many files open, errno(3) on Linux.
const ENFILE: i32 = 23;

/// The process has too many files open.
const EMFILE: i32 = 24;

/// What was said lately.
#[derive(Default)]
pub(crate) struct FullReports {
    /// Until when it need not be said again that the lane is full, in its monotonic milliseconds.
    said_until_ms: u64,
}

impl FullReports {
    /// The lane is full, and none of its connections can be closed.
    pub(crate) fn stays_full(&mut self, event_loop: &EventLoop, log: Option<&ErrorLog>) {
        let now_ms = event_loop.clock.now_ms();
        if now_ms < self.said_until_ms {
            return;
        }
        self.said_until_ms = now_ms + FULL_LINES_MS;
        if let Some(log) = log {
            let most = event_loop.connections_max();
            let message = format_args!(
                "{most} worker_connections are not enough; new connections wait, since none can \
                 be closed"
            );
            log.event(Level::Alert, message);
        }
    }

    /// Accepting a connection has failed.
    pub(crate) fn accept_failed(log: Option<&ErrorLog>, error: &io::Error) {
        let level = match error.raw_os_error() {
            Some(ENFILE | EMFILE) => Level::Crit,
            _ => Level::Alert,
        };
        if let Some(log) = log {
            log.event(level, format_args!("accept4() failed {}", Errno(error)));
        }
    }
}
