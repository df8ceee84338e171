//! Medians with their intervals: a group for each level along the plot, a bar for each contender.

use super::svg::{Anchor, Svg, ticks};
use super::{Picture, both, colour, is_marked, legend, level, metric_of, names};
use crate::matrix::{CONTENDER, Dimension};
use crate::metric::Metric;
use crate::study::model::Plot;
use crate::summary::{CaseSummary, MetricSummary};

const BAR: f64 = 18.0;
const GAP: f64 = 4.0;
const GROUP: f64 = 30.0;
const TICKS: f64 = 24.0;
/// Room right of the longest bar for its value.
const VALUE: f64 = 92.0;

pub(super) fn draw(
    title: &str,
    plot: &Plot,
    along: &str,
    dimensions: &[Dimension],
    cases: &[&CaseSummary],
) -> Picture {
    let Some(metric) = metric_of(plot) else {
        return Picture {
            title: title.to_owned(),
            html: String::new(),
            caption: String::new(),
        };
    };
    let top = cases
        .iter()
        .filter_map(|case| case.metric(metric.name))
        .fold(0.0, |top, figure| {
            let high = match figure {
                MetricSummary::Known {
                    median, interval, ..
                } => interval.map_or(*median, |bounds| bounds.high.max(*median)),
                MetricSummary::NotAvailable(_) => 0.0,
            };
            f64::max(top, high)
        });
    let title_of = dimensions.iter().find(|dimension| dimension.name == along);
    let title_of = title_of.map_or(along, |dimension| dimension.title.as_str());
    let marked = cases.iter().any(|case| is_marked(case));
    let missing = cases
        .iter()
        .filter_map(|case| match case.metric(metric.name) {
            Some(MetricSummary::NotAvailable(why)) => Some(format!("Not available: {why}.")),
            _ => None,
        });
    let mut caption = format!("Median by {title_of}; the line is its 95 % interval.");
    if marked {
        caption.push_str(" Outlined bars: every run is marked, so they are used for no claim.");
    }
    if let Some(missing) = missing.max() {
        caption = format!("{caption} {missing}");
    }
    Picture {
        title: title.to_owned(),
        html: both(title, |svg| {
            drawing(svg, metric, along, cases, top.max(1e-9));
        }),
        caption,
    }
}

fn drawing(svg: &mut Svg, metric: &Metric, along: &str, cases: &[&CaseSummary], top: f64) {
    let contenders = names(cases, CONTENDER);
    let entries: Vec<(String, String)> = contenders
        .iter()
        .enumerate()
        .map(|(index, name)| (format!("k c{}", colour(index)), (*name).to_owned()))
        .collect();
    let mut y = if entries.len() > 1 {
        legend(svg, &entries, 0.0)
    } else {
        0.0
    };
    let right = svg.width - VALUE;
    let x = |value: f64| value / top * right;
    let grid_top = y;
    let groups = names(cases, along);
    let rows: f64 = groups
        .iter()
        .map(|group| {
            let members = cases
                .iter()
                .filter(|case| level(case, along) == *group)
                .count();
            GROUP + members as f64 * (BAR + GAP)
        })
        .sum();
    let count = (right / 110.0) as usize;
    for tick in ticks(0.0, top, count.max(2)) {
        svg.line("g", (x(tick), grid_top + 8.0), (x(tick), grid_top + rows));
        let shown = if tick == 0.0 {
            "0".to_owned()
        } else {
            metric.show(tick)
        };
        let anchor = if tick == 0.0 {
            Anchor::Start
        } else {
            Anchor::Middle
        };
        svg.text("a", (x(tick), grid_top + rows + 16.0), anchor, &shown);
    }
    for group in groups {
        y += GROUP;
        svg.text("h", (0.0, y - 8.0), Anchor::Start, group);
        for case in cases.iter().filter(|case| level(case, along) == group) {
            let index = contenders
                .iter()
                .position(|name| *name == level(case, CONTENDER));
            bar(svg, metric, case, colour(index.unwrap_or_default()), y, &x);
            y += BAR + GAP;
        }
    }
    svg.height = y + TICKS;
}

fn bar(
    svg: &mut Svg,
    metric: &Metric,
    case: &CaseSummary,
    colour: usize,
    y: f64,
    x: &impl Fn(f64) -> f64,
) {
    let middle = y + BAR / 2.0;
    let Some(MetricSummary::Known {
        median, interval, ..
    }) = case.metric(metric.name)
    else {
        svg.text("a", (4.0, middle + 4.0), Anchor::Start, "not available");
        return;
    };
    let label = format!("{}: {}", case.case().label(), metric.show(*median));
    let class = if is_marked(case) { "m" } else { "b" };
    svg.rectangle(
        &format!("{class} c{colour}"),
        (0.0, y),
        (x(*median), BAR),
        &label,
    );
    let mut end = x(*median);
    if let Some(bounds) = interval {
        svg.line("w", (x(bounds.low), middle), (x(bounds.high), middle));
        for edge in [bounds.low, bounds.high] {
            svg.line("w", (x(edge), middle - 4.0), (x(edge), middle + 4.0));
        }
        end = end.max(x(bounds.high));
    }
    svg.text(
        "v",
        (end + 6.0, middle + 4.5),
        Anchor::Start,
        &metric.show(*median),
    );
}
