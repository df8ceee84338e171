//! A claim's ratio with its interval on a logarithmic line, 1 in the middle.

use super::svg::{Anchor, Svg};
use crate::report::words::plain_ratio;
use crate::summary::ClaimSummary;

const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 26.0;
/// Ratios beyond this are shown by a triangle at the edge.
const RATIO_MAX: f64 = 4.0;

/// Where a ratio lies on the line; what is beyond its ends is at its end.
fn place(ratio: f64) -> f64 {
    let share = ratio.clamp(1.0 / RATIO_MAX, RATIO_MAX).ln() / RATIO_MAX.ln();
    WIDTH / 2.0 + share * (WIDTH / 2.0 - 8.0)
}

/// The names of the lines, above all drawings.
pub(in crate::report) fn forest_scale() -> String {
    let mut svg = Svg::new(WIDTH);
    svg.height = HEIGHT;
    for (ratio, text) in [(0.25, "¼"), (0.5, "½"), (1.0, "1"), (2.0, "2"), (4.0, "4")] {
        svg.text("a", (place(ratio), HEIGHT - 8.0), Anchor::Middle, text);
    }
    svg.finish("forest", "The scale: ratios from a quarter to four")
}

/// A triangle at the end of the line beyond which a ratio lies; whether it does.
fn off_scale(svg: &mut Svg, class: &str, ratio: f64, label: &str) -> bool {
    let middle = HEIGHT / 2.0;
    let (tip, side) = match ratio {
        ratio if ratio > RATIO_MAX => (WIDTH, -1.0),
        ratio if ratio < 1.0 / RATIO_MAX => (0.0, 1.0),
        _ => return false,
    };
    let back = tip + side * 8.0;
    let points = [
        (tip, middle),
        (back, middle - 6.0),
        (back, middle + 6.0),
        (tip, middle),
    ];
    svg.path(class, &points, label);
    true
}

/// The drawing.
pub(in crate::report) fn forest(claim: &ClaimSummary) -> String {
    let mut svg = Svg::new(WIDTH);
    svg.height = HEIGHT;
    let middle = HEIGHT / 2.0;
    for ratio in [0.25, 0.5, 1.0, 2.0, 4.0] {
        let class = if ratio == 1.0 { "one" } else { "g" };
        svg.line(class, (place(ratio), 3.0), (place(ratio), HEIGHT - 3.0));
    }
    if let Some(published) = claim.published {
        let text = format!("published: {}", plain_ratio(published));
        if !off_scale(&mut svg, "pub", published, &text) {
            let at = place(published);
            let points = [
                (at, middle - 6.0),
                (at + 6.0, middle),
                (at, middle + 6.0),
                (at - 6.0, middle),
                (at, middle - 6.0),
            ];
            svg.path("pub", &points, &text);
        }
    }
    if let Some(bounds) = claim.answer.interval {
        let (low, high) = (place(bounds.low), place(bounds.high));
        svg.line("w", (low, middle), (high, middle));
        for edge in [bounds.low, bounds.high] {
            if (1.0 / RATIO_MAX..=RATIO_MAX).contains(&edge) {
                let edge = place(edge);
                svg.line("w", (edge, middle - 4.0), (edge, middle + 4.0));
            }
        }
    }
    if let Some(ratio) = claim.answer.ratio {
        let text = format!("here: {}", plain_ratio(ratio));
        if !off_scale(&mut svg, "dot", ratio, &text) {
            svg.circle("dot", (place(ratio), middle), 4.5, &text);
        }
    }
    svg.finish(
        "forest",
        &format!("{}: ratio on a line around 1", claim.text),
    )
}
