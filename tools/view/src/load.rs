//! The view of a load run: progress, requests per second and latency over time, and the figures
//! so far.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, Gauge, GraphType, Paragraph};
use turnpike_load::LiveFrame;

/// Points of a curve: about two for each column of a wide terminal. When there are so many, every
/// two become one, so that the picture always shows the whole run.
const POINTS_MAX: usize = 512;

/// Columns between the figures of a line, which is broken there where it is too long.
const GAP: &str = "   ";

/// Columns of the names of the figures: a line that goes on begins below its first figure.
const NAME_COLUMNS: usize = 13;

/// Shortest time that the axis shows, in seconds.
const TIME_S_MIN: f64 = 2.0;

/// One moment of the run.
#[derive(Clone, Copy)]
struct Moment {
    elapsed_s: f64,
    rate: f64,
    latency_ms: Option<(f64, f64)>,
}

impl Moment {
    /// Two moments as one.
    fn joined(pair: &[Moment]) -> Moment {
        let mean = |value: fn(&Moment) -> f64| {
            let sum: f64 = pair.iter().map(value).sum();
            sum / pair.len().max(1) as f64
        };
        let latency = pair.iter().filter_map(|one| one.latency_ms);
        Moment {
            elapsed_s: mean(|one| one.elapsed_s),
            rate: mean(|one| one.rate),
            latency_ms: latency.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1))),
        }
    }
}

/// The picture with the moments that it remembers.
#[derive(Default)]
pub(crate) struct View {
    moments: Vec<Moment>,
    /// Frames since the last moment, and how many become one.
    pending: Vec<Moment>,
    doublings: u32,
}

/// A curve: its name, colour and points.
struct Curve {
    name: &'static str,
    colour: Color,
    points: Vec<(f64, f64)>,
}

impl View {
    /// Draws `frame` and remembers its figures.
    pub(crate) fn draw(&mut self, area: &mut Frame<'_>, frame: &LiveFrame) {
        self.remember(Moment {
            elapsed_s: frame.elapsed_s,
            rate: frame.rate,
            latency_ms: frame.latency_ms,
        });
        let columns = usize::from(area.area().width.saturating_sub(2));
        let broken = frame.figures.iter().flat_map(|line| broken(line, columns));
        let lines: Vec<Line<'_>> = broken.map(Line::from).collect();
        let rows = [
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Fill(1),
            Constraint::Length(u16::try_from(lines.len() + 2).unwrap_or(u16::MAX)),
        ];
        let [head, bar, rate, latency, table] = Layout::vertical(rows).areas(area.area());
        let bold = Style::default().add_modifier(Modifier::BOLD);
        area.render_widget(Paragraph::new(frame.title.as_str()).style(bold), head);
        // Beside the bar: text on it would leave a gap in what is done.
        let text = Line::from(frame.left.as_str());
        let widths = [
            Constraint::Length(text.width() as u16 + 2),
            Constraint::Fill(1),
        ];
        let [left, bar] = Layout::horizontal(widths).areas(bar);
        area.render_widget(text, left);
        let gauge = Gauge::default()
            .ratio(frame.share.clamp(0.0, 1.0))
            .label("");
        area.render_widget(gauge, bar);
        let end_s = frame.elapsed_s.max(TIME_S_MIN);
        let all = || self.moments.iter().chain(&self.pending);
        let rates = Curve {
            name: "",
            colour: Color::Cyan,
            points: all().map(|one| (one.elapsed_s, one.rate)).collect(),
        };
        draw_chart(area, rate, "requests per second", end_s, &[rates]);
        let of = |value: fn((f64, f64)) -> f64| {
            let known = all().filter_map(|one| Some((one.elapsed_s, value(one.latency_ms?))));
            known.collect()
        };
        let times = [
            Curve {
                name: "p99",
                colour: Color::Yellow,
                points: of(|(_, p99)| p99),
            },
            Curve {
                name: "p50",
                colour: Color::Green,
                points: of(|(p50, _)| p50),
            },
        ];
        draw_chart(area, latency, "latency in milliseconds", end_s, &times);
        area.render_widget(Paragraph::new(lines).block(Block::bordered()), table);
    }

    fn remember(&mut self, moment: Moment) {
        self.pending.push(moment);
        if self.pending.len() < 1 << self.doublings {
            return;
        }
        self.moments.push(Moment::joined(&self.pending));
        self.pending.clear();
        if self.moments.len() >= POINTS_MAX {
            self.moments = self.moments.chunks(2).map(Moment::joined).collect();
            self.doublings += 1;
        }
    }
}

/// A line of figures as lines of at most so many columns.
fn broken(line: &str, columns: usize) -> Vec<String> {
    let name = line.get(..NAME_COLUMNS).unwrap_or(line);
    let figures = line.get(NAME_COLUMNS..).unwrap_or_default();
    let mut lines = vec![name.to_owned()];
    let mut is_first = true;
    for figure in figures.split(GAP) {
        let last = lines.last().map_or(0, |last| last.chars().count());
        if !is_first && last + GAP.len() + figure.chars().count() > columns {
            lines.push(" ".repeat(NAME_COLUMNS));
            is_first = true;
        }
        if let Some(last) = lines.last_mut() {
            let gap = if is_first { "" } else { GAP };
            last.push_str(gap);
            last.push_str(figure);
        }
        is_first = false;
    }
    lines
}

/// Curves over the time since the start, with a scale at both axes.
fn draw_chart(frame: &mut Frame<'_>, area: Rect, title: &str, end_s: f64, curves: &[Curve]) {
    let values = curves.iter().flat_map(|curve| &curve.points);
    let top = ceiling(values.fold(0.0, |top: f64, (_, value)| top.max(*value)));
    let datasets = curves.iter().map(|curve| {
        Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::default().fg(curve.colour))
            .data(&curve.points)
    });
    let dim = Style::default().fg(Color::DarkGray);
    let digits = if end_s < 20.0 { 1 } else { 0 };
    let seconds = [0.0, end_s / 2.0, end_s].map(|second| format!("{second:.digits$} s"));
    let scale = [0.0, top / 2.0, top].map(number);
    let mut heading = vec![Span::raw(title.to_owned())];
    for curve in curves.iter().filter(|curve| !curve.name.is_empty()) {
        let style = Style::default().fg(curve.colour);
        heading.push(Span::styled(format!("  {}", curve.name), style));
    }
    let chart = Chart::new(datasets.collect())
        .block(Block::bordered().title(Line::from(heading)))
        .legend_position(None)
        .x_axis(
            Axis::default()
                .style(dim)
                .bounds([0.0, end_s])
                .labels(seconds),
        )
        .y_axis(Axis::default().style(dim).bounds([0.0, top]).labels(scale));
    frame.render_widget(chart, area);
}

/// The end of a scale that reaches `value`: 1, 2 or 5 times a power of ten.
fn ceiling(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter();
    let fitting = factor
        .map(|factor| factor * power)
        .find(|end| *end >= value);
    fitting.unwrap_or(power * 10.0)
}

/// A number of a scale: `0`, `0.25`, `50k`.
fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        _ if value >= 1e6 => format!("{}M", value / 1e6),
        _ if value >= 1e3 => format!("{}k", value / 1e3),
        // Three digits after the point are enough for microseconds.
        _ => format!("{}", (value * 1e3).round() / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn shown(view: &mut View, frames: &[LiveFrame]) -> String {
        let mut terminal = Terminal::new(TestBackend::new(60, 32)).expect("a terminal in memory");
        for frame in frames {
            terminal
                .draw(|area| view.draw(area, frame))
                .expect("a terminal in memory");
        }
        terminal.backend().to_string()
    }

    fn frame(elapsed_s: f64) -> LiveFrame {
        LiveFrame {
            title: "turnpike load @ example".to_owned(),
            share: 0.5,
            left: "4 s done, 4 s left".to_owned(),
            elapsed_s,
            rate: 1500.0,
            latency_ms: Some((0.3, 4.0)),
            figures: vec!["Rate         1.50k/s".to_owned()],
        }
    }

    #[test]
    fn the_picture_shows_title_share_scales_and_figures() {
        let frames: Vec<LiveFrame> = (0..40).map(|step| frame(f64::from(step))).collect();
        let shown = shown(&mut View::default(), &frames);
        for text in [
            "turnpike load @ example",
            "4 s done, 4 s left",
            "requests per second",
            "2k",
            "1k",
            "39 s",
            "latency in milliseconds  p99  p50",
            "Rate         1.50k/s",
        ] {
            assert!(shown.contains(text), "{text} is not in\n{shown}");
        }
        // Half of what is left of the line beside the text, without a gap.
        let bar = format!("4 s done, 4 s left  {}{}", "█".repeat(20), " ".repeat(20));
        assert!(shown.contains(&bar), "{shown}");
    }

    #[test]
    fn figures_that_are_too_long_for_a_line_go_on_in_the_next() {
        let latency =
            "Latency      50% 2.00ms   90% 2.00ms   99% 2.00ms   99.9% 2.00ms   100% 9.00ms";
        let mut frame = frame(1.0);
        frame.figures.push(latency.to_owned());
        let shown = shown(&mut View::default(), &[frame]);
        for text in [
            "│Rate         1.50k/s  ",
            "│Latency      50% 2.00ms   90% 2.00ms   99% 2.00ms  ",
            "│             99.9% 2.00ms   100% 9.00ms  ",
        ] {
            assert!(shown.contains(text), "{text} is not in\n{shown}");
        }
        assert_eq!(broken(latency, 200), [latency]);
        // A figure is never broken itself.
        assert_eq!(
            broken("Errors       1  refused 1", 4),
            ["Errors       1  refused 1"]
        );
    }

    #[test]
    fn the_curve_takes_the_whole_width_from_the_start() {
        let shown = shown(&mut View::default(), &[frame(1.0), frame(2.0)]);
        let widest = shown.lines().map(|line| {
            let dots = line.char_indices();
            let dots = dots.filter(|(_, dot)| ('\u{2801}'..='\u{28ff}').contains(dot));
            dots.count()
        });
        assert!(widest.max() > Some(20), "{shown}");
    }

    #[test]
    fn a_long_run_keeps_its_whole_length_in_few_points() {
        let mut view = View::default();
        for step in 0..10_000 {
            let frame = frame(f64::from(step));
            view.remember(Moment {
                elapsed_s: frame.elapsed_s,
                rate: frame.rate,
                latency_ms: frame.latency_ms,
            });
        }
        assert!(view.moments.len() < POINTS_MAX);
        assert!(view.moments[0].elapsed_s < 100.0);
        assert!(view.moments.iter().all(|one| one.rate == 1500.0));
    }

    #[test]
    fn scales_end_in_round_numbers() {
        let ends = [0.0, 0.03, 1.0, 7.0, 130.0, 72_000.0].map(ceiling);
        assert_eq!(ends.map(number), ["1", "0.05", "1", "10", "200", "100k"]);
    }
}
