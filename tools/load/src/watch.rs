//! What a person at the terminal sees and does while a run goes on: a progress bar, and Ctrl-C.

use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::plan::Plan;
use crate::run::{Verdict, Watch};
use crate::units::format_metric;
use crate::worker::Progress;

/// The main thread's watch from the command line.
pub(crate) struct Console {
    signals: Option<SignalFd>,
    bar: Option<ProgressBar>,
    /// What the bar counts towards: nanoseconds, or requests.
    planned: Option<Duration>,
}

impl Console {
    /// Takes SIGINT and SIGTERM over from their default action; to be called before any thread
    /// is started, so that all inherit it.
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        set.add(Signal::SIGTERM);
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let signals = set
            .thread_block()
            .and_then(|()| SignalFd::with_flags(&set, flags))
            .ok();
        let planned = plan.duration.map(|duration| duration + plan.warmup);
        let shown = !quiet && std::io::stderr().is_terminal();
        Console {
            signals,
            bar: shown.then(|| bar(plan, planned)),
            planned,
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn is_interrupted(&self, interval: Duration) -> bool {
        let Some(signals) = &self.signals else {
            std::thread::sleep(interval);
            return false;
        };
        let timeout = PollTimeout::try_from(interval).unwrap_or(PollTimeout::ZERO);
        let mut polled = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, timeout).is_err() {
            return false;
        }
        matches!(signals.read_signal(), Ok(Some(_)))
    }
}

impl Watch for Console {
    fn look(&mut self, interval: Duration, elapsed: Duration, progress: &[Progress]) -> Verdict {
        if let Some(bar) = &self.bar {
            let issued: u64 = progress.iter().map(|thread| thread.issued).sum();
            let completed: u64 = progress.iter().map(|thread| thread.completed).sum();
            let errors: u64 = progress.iter().map(|thread| thread.errors.total()).sum();
            bar.set_position(match self.planned {
                Some(_) => u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                None => issued,
            });
            let rate = completed as f64 / elapsed.as_secs_f64().max(1e-3);
            bar.set_message(format!(
                "{} requests/s, {errors} errors",
                format_metric(rate)
            ));
        }
        if self.is_interrupted(interval) {
            Verdict::BreakOff
        } else {
            Verdict::GoOn
        }
    }
}

fn bar(plan: &Plan, planned: Option<Duration>) -> ProgressBar {
    let length = match planned {
        Some(duration) => u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        None => plan.requests.unwrap_or(0),
    };
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3}% {eta} left, {msg}") {
        bar.set_style(style);
    }
    bar
}
