//! The progress for the user: the case, the share, the remaining time.

use std::time::Instant;

use turnpike_load::progress_line::{ProgressLine, bar};

/// The length of the bar.
const BAR_CHARACTERS: usize = 24;

/// The progress of a session's runs; the line is gone when this is dropped.
pub(super) struct Progress {
    line: Option<ProgressLine>,
    begun: Instant,
    total: usize,
    left: usize,
    done: usize,
}

impl Progress {
    /// The progress of so many runs, of which so many are left.
    pub(super) fn new(total: usize, left: usize, quiet: bool) -> Progress {
        let line = if quiet {
            None
        } else {
            ProgressLine::on_terminal()
        };
        Progress {
            line,
            begun: Instant::now(),
            total,
            left,
            done: 0,
        }
    }

    /// Shows that a run begins.
    pub(super) fn begin(&mut self, case: &str, round: u32) {
        let Some(line) = &mut self.line else { return };
        let left = match self.done {
            0 => String::new(),
            done => {
                let each = self.begun.elapsed().as_secs_f64() / done as f64;
                format!("{} left, ", minutes(each * (self.left - done) as f64))
            }
        };
        let (total, done) = (self.total, self.total - self.left + self.done);
        let bar = bar(done as f64 / total.max(1) as f64, BAR_CHARACTERS);
        let round = round + 1;
        line.show(&format!("{bar} {done}/{total} {left}round {round}: {case}"));
    }

    /// Counts a run as done.
    pub(super) fn end(&mut self) {
        self.done += 1;
    }
}

fn minutes(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
