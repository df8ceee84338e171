//! Pauses in long work on a folder, so that the disk is not overloaded.

use std::time::{Duration, Instant};

use crate::disk::Pace;

/// Decides when a pause is due.
pub(super) struct Pacer {
    pace: Pace,
    files: u64,
    since: Instant,
}

impl Pacer {
    /// Begins work after a pause.
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            files: 0,
            since: Instant::now(),
        }
    }

    /// Counts a file; returns whether a pause is due.
    pub(super) fn count_file(&mut self) -> bool {
        self.files += 1;
        let long = self.since.elapsed() >= Duration::from_millis(self.pace.threshold_ms);
        self.files >= self.pace.files.max(1) || long
    }
}

/// The progress of a part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// A pause is due.
    Paused,
    /// The work is complete.
    Done,
}
