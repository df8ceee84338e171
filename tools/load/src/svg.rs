//! A small SVG writer. Colours are classes, so that the page's style sheet decides them for dark
//! and light; sizes are pixels at the width that the picture is drawn for, so that its text is as
//! large as the page's. Plotting crates write their colours into the picture, which no style sheet
//! can turn.

use std::fmt::Write as _;

/// A picture under construction.
#[derive(Debug)]
pub struct Svg {
    pub width: f64,
    pub height: f64,
    body: String,
}

/// Where a text is anchored.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty picture of this width in pixels.
    pub fn new(width: f64) -> Svg {
        Svg {
            width,
            height: 0.0,
            body: String::new(),
        }
    }

    /// A line from here to there.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// A rectangle, with a title that is shown when it is pointed at.
    pub fn rectangle(&mut self, class: &str, at: (f64, f64), size: (f64, f64), title: &str) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             rx=\"2\"><title>{}</title></rect>",
            at.0,
            at.1,
            size.0.max(0.5),
            size.1,
            escape(title)
        );
    }

    /// A circle, with a title.
    pub fn circle(&mut self, class: &str, at: (f64, f64), radius: f64, title: &str) {
        let _ = write!(
            self.body,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\">\
             <title>{}</title></circle>",
            at.0,
            at.1,
            escape(title)
        );
    }

    /// A line through all points, with a title.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)], title: &str) {
        let mut data = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(data, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" });
        }
        let _ = write!(
            self.body,
            "<path class=\"{class}\" d=\"{data}\"><title>{}</title></path>",
            escape(title)
        );
    }

    /// A text at its anchor.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            escape(text)
        );
    }

    /// The finished picture, with a title for those who cannot see it.
    pub fn finish(self, class: &str, title: &str) -> String {
        format!(
            "<svg class=\"{class}\" role=\"img\" viewBox=\"0 0 {:.0} {:.0}\" \
             xmlns=\"http://www.w3.org/2000/svg\" aria-label=\"{}\">{}</svg>",
            self.width,
            self.height,
            escape(title),
            self.body
        )
    }
}

/// Text for HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// How wide a text is, near enough to keep texts apart.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

/// Round numbers from 0 or `low` to `high`, about so many.
pub fn ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let range = (high - low).max(f64::MIN_POSITIVE);
    let rough = range / count.max(1) as f64;
    let magnitude = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * magnitude)
        .find(|step| *step >= rough)
        .unwrap_or(magnitude * 10.0);
    let mut ticks = Vec::new();
    let mut tick = (low / step).ceil() * step;
    while tick <= high + step * 1e-9 && ticks.len() < 50 {
        ticks.push(tick);
        tick += step;
    }
    ticks
}
