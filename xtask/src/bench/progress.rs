//! The progress of a run, for its user.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// One line on standard error: the current measurement, and the remaining time.
pub(super) struct Progress {
    started: Instant,
    steps: usize,
    done: usize,
}

impl Progress {
    /// The progress of a run with this many steps.
    pub(super) fn of(steps: usize) -> Progress {
        Progress {
            started: Instant::now(),
            steps,
            done: 0,
        }
    }

    /// Shows the next step.
    pub(super) fn step(&mut self, what: &str) {
        let left = match self.done {
            0 => "time left is not known yet".to_owned(),
            done => {
                let rest = self
                    .steps
                    .saturating_sub(done)
                    .try_into()
                    .unwrap_or(u32::MAX);
                let each = self.started.elapsed() / done.try_into().unwrap_or(1);
                format!("about {} s left", (each * rest).as_secs())
            }
        };
        self.done += 1;
        let line = format!("bench: {}/{} {what}, {left}", self.done, self.steps);
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush(); // progress only
        } else {
            eprintln!("{line}");
        }
    }

    /// Shows the duration of the run.
    pub(super) fn end(&self) {
        let time = Duration::from_secs(self.started.elapsed().as_secs());
        let clear = if std::io::stderr().is_terminal() {
            "\r\x1b[K"
        } else {
            ""
        };
        eprintln!("{clear}bench: took {time:?}");
    }
}
