//! What a line is written of: a request of HTTP, or a session of stream.

use std::io;
use std::sync::Arc;

use turnpike_http::Quoted;
use turnpike_http::counters::HttpCounters;
use turnpike_http::exchange::Exchange;
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::file::{self, Links};
use turnpike_plan::lane::LaneSlot;
use turnpike_plan::variables::Subject;
use turnpike_stream::session::Session;

use super::lane::AccessLogLane;

/// What a line is written of.
pub(super) trait Logged: Subject {
    /// What its lane keeps for the logs of its plan.
    fn lane(&self, slot: &LaneSlot<AccessLogLane>) -> &AccessLogLane;

    /// The lane's monotonic milliseconds.
    fn now_ms(&self) -> u64;

    /// Where errors about it are written.
    fn error_log(&self) -> &ErrorLog;

    /// The counters of lines that were lost. Sessions have none.
    fn counters(&self) -> Option<&Arc<HttpCounters>>;

    /// Whether a log whose path holds variables may be written: of a request the root must exist,
    /// so that no client makes up names of files.
    ///
    /// # Errors
    /// What is wrong with the root, which was logged.
    fn test_root(&self) -> io::Result<()>;
}

impl Logged for Exchange {
    fn lane(&self, slot: &LaneSlot<AccessLogLane>) -> &AccessLogLane {
        self.plan.state(slot)
    }

    fn now_ms(&self) -> u64 {
        self.lane.clock.now_ms()
    }

    fn error_log(&self) -> &ErrorLog {
        &self.location().error_log
    }

    fn counters(&self) -> Option<&Arc<HttpCounters>> {
        Some(&self.lane.counters)
    }

    fn test_root(&self) -> io::Result<()> {
        let mut root = Vec::new();
        self.location().settings.root.folder(self, &mut root);
        let error = match file::metadata_of(&root, Links::Follow) {
            Ok(metadata) if metadata.is_directory() => return Ok(()),
            Ok(_) => io::Error::from(io::ErrorKind::NotADirectory),
            Err(error) => error,
        };
        let (root, errno) = (Quoted(&root), Errno(&error));
        self.log(
            Level::Error,
            format_args!("testing \"{root}\" existence failed {errno}"),
        );
        Err(error)
    }
}

impl Logged for Session {
    fn lane(&self, slot: &LaneSlot<AccessLogLane>) -> &AccessLogLane {
        self.plan.state(slot)
    }

    fn now_ms(&self) -> u64 {
        self.lane.clock.now_ms()
    }

    fn error_log(&self) -> &ErrorLog {
        &self.server().error_log
    }

    fn counters(&self) -> Option<&Arc<HttpCounters>> {
        None
    }

    fn test_root(&self) -> io::Result<()> {
        Ok(())
    }
}
