//! What a person at the terminal sees and does while a run goes on: a progress bar, and Ctrl-C.

use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::live::{self, Live};
use crate::plan::Plan;
use crate::progress_line::{ProgressLine, bar};
use crate::run::{Verdict, Watch};
use crate::units::{counted, format_metric, format_time_s};
use crate::worker::Progress;

/// The main thread's watch from the command line.
pub(crate) struct Console {
    signals: Option<SignalFd>,
    view: View,
    planned: Option<Duration>,
    requests: Option<u64>,
}

/// What is shown.
enum View {
    Nothing,
    Line(ProgressLine),
    Live(Box<Live>),
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
        Console {
            signals,
            view: view(plan, quiet),
            planned,
            requests: plan.requests,
        }
    }

    /// Gives the terminal back.
    pub(crate) fn clear(&mut self) {
        self.view = View::Nothing;
    }

    /// How much of the run is done, 0.0 to 1.0: by time or by requests, whichever is further.
    fn share(&self, elapsed: Duration, issued: u64) -> f64 {
        let time = self.planned.map_or(0.0, |planned| {
            elapsed.as_secs_f64() / planned.as_secs_f64().max(1e-9)
        });
        let requests = self
            .requests
            .map_or(0.0, |all| issued as f64 / all.max(1) as f64);
        time.max(requests).min(1.0)
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
        let issued: u64 = progress.iter().map(|thread| thread.issued).sum();
        let share = self.share(elapsed, issued);
        match &mut self.view {
            View::Nothing => {}
            View::Live(live) => live.draw(elapsed, share, progress),
            View::Line(line) => {
                let completed: u64 = progress.iter().map(|thread| thread.completed).sum();
                let errors: u64 = progress.iter().map(|thread| thread.errors.total()).sum();
                let elapsed_s = elapsed.as_secs_f64();
                let rate = completed as f64 / elapsed_s.max(1e-3);
                line.show(&format!(
                    "{} {:>3.0}% {}{} requests/s, {errors} errors",
                    bar(share, BAR_CHARACTERS),
                    share * 100.0,
                    left(share, elapsed_s),
                    format_metric(rate)
                ));
            }
        }
        if self.is_interrupted(interval) {
            Verdict::BreakOff
        } else {
            Verdict::GoOn
        }
    }
}

/// The length of the bar.
const BAR_CHARACTERS: usize = 40;

/// What the rest will take, at the pace so far; nothing while there is no pace.
fn left(share: f64, elapsed_s: f64) -> String {
    if share <= 0.0 {
        return String::new();
    }
    let left_s = elapsed_s * (1.0 - share) / share;
    format!("{} left, ", format_time_s(left_s))
}

/// Where the requests go: the first address, and how many there are.
fn place(plan: &Plan) -> String {
    let (endpoints, targets) = (&plan.targets.endpoints, plan.targets.targets.len());
    let first = endpoints.first().map_or("", |one| one.label.as_str());
    match (endpoints.len(), targets) {
        (..=1, ..=1) => first.to_owned(),
        (..=1, urls) => format!("{first}, {urls} URLs"),
        (servers, urls) => format!("{first} and {} more, {urls} URLs", servers - 1),
    }
}

/// A view for a terminal, and none for anything else.
fn view(plan: &Plan, quiet: bool) -> View {
    if !std::io::stderr().is_terminal() {
        return View::Nothing;
    }
    if plan.live {
        let title = format!(
            "turnpike load @ {}: {}, {}",
            place(plan),
            counted(plan.threads, "thread"),
            counted(plan.connections, "connection")
        );
        match Live::new(title) {
            Ok(live) => return View::Live(Box::new(live)),
            Err(error) => eprintln!("turnpike load: {}", live::unavailable(&error)),
        }
    }
    if quiet {
        return View::Nothing;
    }
    ProgressLine::on_terminal().map_or(View::Nothing, View::Line)
}
