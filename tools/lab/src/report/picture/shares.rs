//! Connections by worker: a full bar for each case, a piece for each worker.

use super::svg::{Anchor, Svg};
use super::{Picture, both};
use crate::metric;
use crate::study::model::Plot;
use crate::summary::CaseSummary;

const ROW: f64 = 44.0;
const BAR: f64 = 18.0;
/// Shades that the style sheet has.
const SHADES: usize = 4;
/// A piece narrower than this has no room for its number.
const NUMBER: f64 = 34.0;

pub(super) fn draw(plot: &Plot, cases: &[&CaseSummary]) -> Picture {
    let known: Vec<&CaseSummary> = cases
        .iter()
        .copied()
        .filter(|case| case.workers.is_ok())
        .collect();
    let why = cases.iter().find_map(|case| case.workers.as_ref().err());
    let mut caption = "Share of the connections that each worker accepted during the warm-ups, \
        the busiest first; the number to its right is Jain's fairness index, 1 when all are equal."
        .to_owned();
    if let Some(why) = why {
        caption.push_str(&format!(" Not available for some: {why}."));
    }
    Picture {
        title: plot.title.clone(),
        html: both(&plot.title, |svg| drawing(svg, &known)),
        caption,
    }
}

fn drawing(svg: &mut Svg, cases: &[&CaseSummary]) {
    let right = svg.width - 52.0;
    let mut y = 0.0;
    for case in cases {
        svg.text("h", (0.0, y + 14.0), Anchor::Start, &case.case().label());
        let mut x = 0.0;
        for (index, share) in case.workers.iter().flatten().enumerate() {
            let width = share * right;
            let label = format!("worker {}: {:.1} %", index + 1, share * 100.0);
            let class = format!("s{}", index % SHADES + 1);
            svg.rectangle(&class, (x, y + 20.0), ((width - 1.0).max(0.5), BAR), &label);
            if width >= NUMBER {
                let shown = format!("{:.0} %", share * 100.0);
                let at = (x + width / 2.0, y + 20.0 + BAR - 4.5);
                let ink = format!("i{}", index % SHADES + 1);
                svg.text(&ink, at, Anchor::Middle, &shown);
            }
            x += width;
        }
        let fairness = case.metric("fairness").and_then(|figure| figure.median());
        if let (Some(fairness), Some(metric)) = (fairness, metric::find("fairness")) {
            let at = (right + 6.0, y + 20.0 + BAR - 4.5);
            svg.text("v", at, Anchor::Start, &metric.show(fairness));
        }
        y += ROW;
    }
    svg.height = y.max(1.0);
}
