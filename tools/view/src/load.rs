//! The view of a load run: progress, requests per second over time, and the figures so far.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph, Sparkline};
use turnpike_load::LiveFrame;

/// The most rates for the sparkline: more than a wide terminal shows.
const RATES_MAX: usize = 512;

/// The rows of the figures with their border.
const FIGURE_ROWS: u16 = 9;

/// The view with its earlier rates.
#[derive(Default)]
pub(crate) struct View {
    rates: VecDeque<u64>,
}

impl View {
    /// Draws `frame` and remembers its rate.
    pub(crate) fn draw(&mut self, area: &mut Frame<'_>, frame: &LiveFrame) {
        if self.rates.len() == RATES_MAX {
            self.rates.pop_front();
        }
        self.rates.push_back(frame.rate as u64);
        let rows = [
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(3),
            Constraint::Length(FIGURE_ROWS),
        ];
        let [head, bar, chart, table] = Layout::vertical(rows).areas(area.area());
        let bold = Style::default().add_modifier(Modifier::BOLD);
        area.render_widget(Paragraph::new(frame.title.as_str()).style(bold), head);
        let gauge = Gauge::default()
            .ratio(frame.share.clamp(0.0, 1.0))
            .label(frame.left.as_str());
        area.render_widget(gauge, bar);
        let width = usize::from(chart.width.saturating_sub(2));
        let rates = self.rates.make_contiguous();
        let shown = rates
            .get(rates.len().saturating_sub(width)..)
            .unwrap_or_default();
        let block = Block::bordered().title("requests per second");
        area.render_widget(Sparkline::default().data(shown).block(block), chart);
        let lines: Vec<Line<'_>> = frame
            .figures
            .iter()
            .map(|line| Line::from(&**line))
            .collect();
        area.render_widget(Paragraph::new(lines).block(Block::bordered()), table);
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    #[test]
    fn the_picture_shows_title_share_and_figures() {
        let frame = LiveFrame {
            title: "turnpike load @ example".to_owned(),
            share: 0.5,
            left: "4s, 4s left".to_owned(),
            rate: 1500.0,
            figures: vec!["Rate         1.50k/s".to_owned()],
        };
        let mut terminal = Terminal::new(TestBackend::new(40, 16)).expect("a terminal in memory");
        let mut view = View::default();
        terminal
            .draw(|area| view.draw(area, &frame))
            .expect("a terminal in memory");
        let shown = terminal.backend().to_string();
        for text in [
            "turnpike load @ example",
            "4s, 4s left",
            "requests per second",
            "Rate         1.50k/s",
        ] {
            assert!(shown.contains(text), "{text} is not in\n{shown}");
        }
    }
}
