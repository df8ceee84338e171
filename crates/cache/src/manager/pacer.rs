//! Pauses in long work on a folder, so that the disk is not held up.

use std::time::{Duration, Instant};

use crate::disk::Pace;

/// Says when it is time for a pause.
pub(super) struct Pacer {
    pace: Pace,
    files: u64,
    since: Instant,
}

impl Pacer {
    /// Begins a stretch of work.
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            files: 0,
            since: Instant::now(),
        }
    }

    /// Counts a file; whether a pause is due.
    pub(super) fn count_file(&mut self) -> bool {
        self.files += 1;
        let long = self.since.elapsed() >= Duration::from_millis(self.pace.threshold_ms);
        self.files >= self.pace.files.max(1) || long
    }
}

/// How far a piece of work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// A pause is due.
    Paused,
    /// All is done.
    Done,
}
