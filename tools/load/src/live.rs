//! `--live`: what the whole terminal shows while a run goes on.
//!
//! The picture is drawn by `turnpike-view`, a program of its own, so that the server's binary links
//! no terminal library. Here the figures are made, and sent to it as lines of JSON.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::tally::{ErrorKind, Errors};
use crate::units::{format_metric, show_bytes, show_time_us};
use crate::worker::Progress;

/// The program that draws.
const VIEW_PROGRAM: &str = "turnpike-view";
/// Time between two pictures; rates are those of this time.
const PICTURE_INTERVAL: Duration = Duration::from_millis(250);
/// The percentiles shown.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];

/// What one picture shows: a line of JSON on the standard input of the program that draws it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveFrame {
    /// The first line: what is driven, and with what.
    pub title: String,
    /// How much of the run is done, 0.0 to 1.0.
    pub share: f64,
    /// The time passed and the time left, for people.
    pub left: String,
    /// Seconds since the run began.
    pub elapsed_s: f64,
    /// Answered requests per second since the picture before.
    pub rate: f64,
    /// Median and 99th percentile of the latency since the picture before, in milliseconds; absent
    /// where nothing was answered.
    pub latency_ms: Option<(f64, f64)>,
    /// The figures so far, as lines of text.
    pub figures: Vec<String>,
}

/// The program that draws, and what the next picture needs to know of the last one.
pub(crate) struct Live {
    view: Child,
    frames: Option<ChildStdin>,
    title: String,
    last: Duration,
    last_completed: u64,
    last_latency: Histogram,
}

/// The figures of one picture.
struct Figures {
    rate: f64,
    completed: u64,
    bytes_per_s: f64,
    open: u64,
    errors: Errors,
    latency: Histogram,
    /// Answers by status, by the first digit.
    statuses: [u64; 6],
}

impl Live {
    /// Starts the program that draws.
    ///
    /// # Errors
    /// When it is not installed or cannot be started.
    pub(crate) fn new(title: String) -> io::Result<Live> {
        let mut view = Command::new(turnpike_host::program_beside(VIEW_PROGRAM))
            .arg("load")
            .stdin(Stdio::piped())
            // A group of its own: Ctrl-C ends the run, and the run's end ends the view, which then
            // gives the terminal back.
            .process_group(0)
            .spawn()?;
        let frames = view.stdin.take();
        Ok(Live {
            view,
            frames,
            title,
            last: Duration::ZERO,
            last_completed: 0,
            last_latency: Histogram::default(),
        })
    }

    /// Sends a picture if it is time for one. `share` is how much of the run is done, 0.0 to 1.0.
    pub(crate) fn draw(&mut self, elapsed: Duration, share: f64, progress: &[Progress]) {
        let passed = elapsed.saturating_sub(self.last);
        if passed < PICTURE_INTERVAL {
            return;
        }
        let completed: u64 = progress.iter().map(|thread| thread.completed).sum();
        let rate = completed.saturating_sub(self.last_completed) as f64 / passed.as_secs_f64();
        self.last = elapsed;
        self.last_completed = completed;
        let seconds = elapsed.as_secs_f64();
        let left_s = if share > 0.0 {
            seconds / share - seconds
        } else {
            0.0
        };
        let figures = Figures::of(rate, completed, seconds, progress);
        let recent = figures.latency.since(&self.last_latency);
        let at = |percent| recent.percentile(percent) as f64 / 1e6;
        let frame = LiveFrame {
            title: self.title.clone(),
            share: share.clamp(0.0, 1.0),
            left: format!("{seconds:.0} s done, {left_s:.0} s left"),
            elapsed_s: seconds,
            rate,
            latency_ms: (recent.count() > 0).then(|| (at(50.0), at(99.0))),
            figures: lines(&figures),
        };
        self.last_latency = figures.latency;
        self.send(&frame);
    }

    /// A view that went away must not end the run: it gets no more frames.
    fn send(&mut self, frame: &LiveFrame) {
        let Ok(mut line) = serde_json::to_vec(frame) else {
            return;
        };
        line.push(b'\n');
        let sent = self
            .frames
            .as_mut()
            .is_some_and(|frames| frames.write_all(&line).is_ok());
        if !sent {
            self.frames = None;
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // The end of its input ends the view, which gives the terminal back before the report.
        self.frames = None;
        let _ = self.view.wait();
    }
}

/// What is said on standard error when the view cannot be started.
pub(crate) fn unavailable(error: &io::Error) -> String {
    format!(
        "--live needs the program {VIEW_PROGRAM} beside turnpike or in PATH ({error}); \
         a progress bar is shown instead"
    )
}

impl Figures {
    fn of(rate: f64, completed: u64, seconds: f64, progress: &[Progress]) -> Self {
        let bytes: u64 = progress.iter().map(|thread| thread.bytes).sum();
        let mut errors = Errors::default();
        let mut latency = Histogram::default();
        let mut statuses = [0; 6];
        for thread in progress {
            errors.merge(&thread.errors);
            if let Some(histogram) = &thread.latency {
                latency.merge(histogram);
            }
            for (status, count) in thread.statuses.iter().enumerate() {
                statuses[(status / 100).min(5)] += count;
            }
        }
        Self {
            rate,
            completed,
            bytes_per_s: bytes as f64 / seconds.max(1e-3),
            open: progress.iter().map(|thread| thread.open).sum(),
            errors,
            latency,
            statuses,
        }
    }
}

/// The figures as lines of text.
fn lines(figures: &Figures) -> Vec<String> {
    let percentiles: Vec<String> = PERCENTILES
        .iter()
        .map(|percent| {
            let value = figures.latency.percentile(*percent) as f64 / 1e3;
            format!("{percent}% {}", show_time_us(value))
        })
        .collect();
    let kinds: Vec<String> = ErrorKind::ALL
        .iter()
        .filter(|kind| figures.errors.of(**kind) > 0)
        .map(|kind| format!("{} {}", kind.name(), figures.errors.of(*kind)))
        .collect();
    let statuses: Vec<String> = (1..6)
        .filter(|class| figures.statuses[*class] > 0)
        .map(|class| format!("{class}xx {}", figures.statuses[class]))
        .collect();
    vec![
        format!("Rate         {}/s", format_metric(figures.rate)),
        format!("Answered     {}", figures.completed),
        format!("Transfer     {}/s", show_bytes(figures.bytes_per_s)),
        format!("Connections  {}", figures.open),
        format!("Latency      {}", percentiles.join("   ")),
        format!("Statuses     {}", statuses.join("   ")),
        format!(
            "Errors       {}  {}",
            figures.errors.total(),
            kinds.join(", ")
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_name_rate_percentiles_errors_and_connections() {
        let mut figures = Figures {
            rate: 1500.0,
            completed: 3000,
            bytes_per_s: 2048.0,
            open: 7,
            errors: Errors::default(),
            latency: Histogram::default(),
            statuses: [0, 0, 3000, 0, 2, 0],
        };
        figures.errors.count(ErrorKind::Refused);
        figures.latency.record(2_000_000);
        let expected = [
            "Rate         1.50k/s",
            "Answered     3000",
            "Transfer     2.00 KiB/s",
            "Connections  7",
            "Latency      50% 2.00 ms   90% 2.00 ms   99% 2.00 ms   99.9% 2.00 ms   100% 2.00 ms",
            "Statuses     2xx 3000   4xx 2",
            "Errors       1  refused 1",
        ];
        assert_eq!(lines(&figures), expected);
    }
}
