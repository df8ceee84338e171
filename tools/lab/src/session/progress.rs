//! The progress for the user: the case, the share, the remaining time.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The interval of redraws, so that the times advance.
const TICK: Duration = Duration::from_millis(500);

/// The bar.
pub(super) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    left: usize,
    done: usize,
}

impl Progress {
    /// A bar of so many runs, of which so many are left.
    pub(super) fn new(total: usize, left: usize, quiet: bool) -> Progress {
        let bar = ProgressBar::new(total as u64);
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_position((total - left) as u64);
        bar.enable_steady_tick(TICK);
        Progress {
            bar,
            begun: Instant::now(),
            left,
            done: 0,
        }
    }

    /// A run begins.
    pub(super) fn begin(&self, case: &str, round: u32) {
        let left = match self.done {
            0 => String::new(),
            done => {
                let each = self.begun.elapsed().as_secs_f64() / done as f64;
                format!("{} left, ", minutes(each * (self.left - done) as f64))
            }
        };
        self.bar
            .set_message(format!("{left}round {}: {case}", round + 1));
    }

    /// It is over.
    pub(super) fn end(&mut self) {
        self.done += 1;
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn minutes(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
