//! A claim's ratio with its interval on a logarithmic line, 1 in the middle.

use super::svg::Svg;
use crate::report::words::plain_ratio;
use crate::summary::ClaimSummary;

const WIDTH: f64 = 220.0;
const HEIGHT: f64 = 26.0;
/// Ratios beyond this are drawn at the edge.
const RATIO_MAX: f64 = 4.0;

/// The drawing.
pub(in crate::report) fn forest(claim: &ClaimSummary) -> String {
    let mut svg = Svg::new(WIDTH);
    svg.height = HEIGHT;
    let x = |ratio: f64| {
        let share = ratio.clamp(1.0 / RATIO_MAX, RATIO_MAX).ln() / RATIO_MAX.ln();
        WIDTH / 2.0 + share * (WIDTH / 2.0 - 8.0)
    };
    let middle = HEIGHT / 2.0;
    for ratio in [0.25, 0.5, 1.0, 2.0, 4.0] {
        let class = if ratio == 1.0 { "one" } else { "g" };
        svg.line(class, (x(ratio), 3.0), (x(ratio), HEIGHT - 3.0));
    }
    if let Some(published) = claim.published {
        let at = x(published);
        let points = [
            (at, middle - 6.0),
            (at + 6.0, middle),
            (at, middle + 6.0),
            (at - 6.0, middle),
            (at, middle - 6.0),
        ];
        svg.path(
            "pub",
            &points,
            &format!("published: {}", plain_ratio(published)),
        );
    }
    if let Some(bounds) = claim.answer.interval {
        svg.line("w", (x(bounds.low), middle), (x(bounds.high), middle));
        for edge in [bounds.low, bounds.high] {
            svg.line("w", (x(edge), middle - 4.0), (x(edge), middle + 4.0));
        }
    }
    if let Some(ratio) = claim.answer.ratio {
        svg.circle(
            "dot",
            (x(ratio), middle),
            4.5,
            &format!("here: {}", plain_ratio(ratio)),
        );
    }
    svg.finish(
        "forest",
        &format!("{}: ratio on a line around 1", claim.text),
    )
}
