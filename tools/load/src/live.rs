//! `--live`: rate, percentiles, errors and connections on the whole terminal while a run goes on.
//!
//! Draws on standard error, so that the text on standard output stays clean, and leaves the
//! terminal's modes alone, so that Ctrl-C is the signal it always is.

use std::collections::VecDeque;
use std::io::{self, Stderr};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph, Sparkline};

use crate::histogram::Histogram;
use crate::tally::{ErrorKind, Errors};
use crate::units::{format_binary, format_metric, format_time_us};
use crate::worker::Progress;

/// Time between two pictures; rates are those of this time.
const PICTURE_INTERVAL: Duration = Duration::from_millis(250);
/// Rates kept for the sparkline: more than a wide terminal shows.
const RATES_MAX: usize = 512;
/// The percentiles shown.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];

/// The picture and what it needs to remember.
pub(crate) struct Live {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    title: String,
    last: Duration,
    last_completed: u64,
    rates: VecDeque<u64>,
}

/// What one picture shows.
struct Scene {
    share: f64,
    left: String,
    rate: f64,
    completed: u64,
    bytes_per_s: f64,
    open: u64,
    errors: Errors,
    latency: Histogram,
}

impl Live {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When it cannot be drawn on.
    pub(crate) fn new(title: String) -> io::Result<Live> {
        // Everything that asks the terminal for an answer is left out: the answer would come on
        // standard input, which is not ours.
        let terminal = Terminal::new(CrosstermBackend::new(io::stderr()))?;
        let live = Live {
            terminal,
            title,
            last: Duration::ZERO,
            last_completed: 0,
            rates: VecDeque::with_capacity(RATES_MAX),
        };
        execute!(io::stderr(), EnterAlternateScreen, Clear(ClearType::All))?;
        Ok(live)
    }

    /// Draws a picture if it is time for one. `share` is how much of the run is done, 0.0 to 1.0.
    pub(crate) fn draw(&mut self, elapsed: Duration, share: f64, progress: &[Progress]) {
        let passed = elapsed.saturating_sub(self.last);
        if passed < PICTURE_INTERVAL {
            return;
        }
        let completed: u64 = progress.iter().map(|thread| thread.completed).sum();
        let bytes: u64 = progress.iter().map(|thread| thread.bytes).sum();
        let rate = completed.saturating_sub(self.last_completed) as f64 / passed.as_secs_f64();
        self.last = elapsed;
        self.last_completed = completed;
        if self.rates.len() == RATES_MAX {
            self.rates.pop_front();
        }
        self.rates.push_back(rate as u64);
        let mut errors = Errors::default();
        let mut latency = Histogram::default();
        for thread in progress {
            errors.merge(&thread.errors);
            if let Some(histogram) = &thread.latency {
                latency.merge(histogram);
            }
        }
        let seconds = elapsed.as_secs_f64();
        let left_s = if share > 0.0 {
            seconds / share - seconds
        } else {
            0.0
        };
        let scene = Scene {
            share: share.clamp(0.0, 1.0),
            left: format!("{seconds:.0}s, {left_s:.0}s left"),
            rate,
            completed,
            bytes_per_s: bytes as f64 / seconds.max(1e-3),
            open: progress.iter().map(|thread| thread.open).sum(),
            errors,
            latency,
        };
        // A terminal that went away must not end the run.
        let _ = self.picture(&scene);
    }

    fn picture(&mut self, scene: &Scene) -> io::Result<()> {
        let rates = self.rates.make_contiguous();
        let title = &self.title;
        self.terminal.draw(|frame| {
            let rows = [
                Constraint::Length(1),
                Constraint::Length(1),
                Constraint::Min(3),
                Constraint::Length(9),
            ];
            let [head, bar, chart, table] = Layout::vertical(rows).areas(frame.area());
            let bold = Style::default().add_modifier(Modifier::BOLD);
            frame.render_widget(Paragraph::new(title.as_str()).style(bold), head);
            let gauge = Gauge::default()
                .ratio(scene.share)
                .label(scene.left.as_str());
            frame.render_widget(gauge, bar);
            let width = usize::from(chart.width.saturating_sub(2));
            let shown = rates
                .get(rates.len().saturating_sub(width)..)
                .unwrap_or_default();
            let block = Block::bordered().title("requests per second");
            frame.render_widget(Sparkline::default().data(shown).block(block), chart);
            let lines: Vec<Line<'_>> = figures(scene).into_iter().map(Line::from).collect();
            frame.render_widget(Paragraph::new(lines).block(Block::bordered()), table);
        })?;
        Ok(())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Nothing can be done for a terminal that refuses.
        let _ = self.terminal.show_cursor();
        let _ = execute!(io::stderr(), LeaveAlternateScreen);
    }
}

/// The figures as lines of text.
fn figures(scene: &Scene) -> Vec<String> {
    let percentiles: Vec<String> = PERCENTILES
        .iter()
        .map(|percent| {
            let value = scene.latency.percentile(*percent) as f64 / 1e3;
            format!("{percent}% {}", format_time_us(value))
        })
        .collect();
    let kinds: Vec<String> = ErrorKind::ALL
        .iter()
        .filter(|kind| scene.errors.of(**kind) > 0)
        .map(|kind| format!("{} {}", kind.name(), scene.errors.of(*kind)))
        .collect();
    vec![
        format!("Rate         {}/s", format_metric(scene.rate)),
        format!("Answered     {}", scene.completed),
        format!("Transfer     {}B/s", format_binary(scene.bytes_per_s)),
        format!("Connections  {}", scene.open),
        format!("Latency      {}", percentiles.join("   ")),
        format!(
            "Errors       {}  {}",
            scene.errors.total(),
            kinds.join(", ")
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_name_rate_percentiles_errors_and_connections() {
        let mut scene = Scene {
            share: 0.5,
            left: String::new(),
            rate: 1500.0,
            completed: 3000,
            bytes_per_s: 2048.0,
            open: 7,
            errors: Errors::default(),
            latency: Histogram::default(),
        };
        scene.errors.count(ErrorKind::Refused);
        scene.latency.record(2_000_000);
        let expected = [
            "Rate         1.50k/s",
            "Answered     3000",
            "Transfer     2.00KB/s",
            "Connections  7",
            "Latency      50% 2.00ms   90% 2.00ms   99% 2.00ms   99.9% 2.00ms   100% 2.00ms",
            "Errors       1  refused 1",
        ];
        assert_eq!(figures(&scene), expected);
    }
}
