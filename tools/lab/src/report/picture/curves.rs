//! Curves: latency by share of requests, and throughput by a number with the law that fits it.

use super::svg::{Anchor, Svg, ticks};
use super::{Picture, both, colour, is_marked, legend, level, metric_of, names};
use crate::matrix::CONTENDER;
use crate::metric::{self, Metric};
use crate::report::words;
use crate::study::model::Plot;
use crate::summary::{CaseSummary, LawSummary, MetricSummary, Summary};

const LEFT: f64 = 62.0;
const BOTTOM: f64 = 40.0;

/// Shares of requests that the axis names.
const PERCENTS: &[f64] = &[50.0, 90.0, 99.0, 99.9, 99.99];

/// Where a picture's field lies.
struct Field {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

pub(super) fn distribution(title: &str, along: &str, cases: &[&CaseSummary]) -> Picture {
    let drawn: Vec<&CaseSummary> = cases
        .iter()
        .copied()
        .filter(|case| case.distribution.len() > 1)
        .collect();
    let mut caption = "Percentage of the requests answered within a time: medians \
        over the runs. Both axes are logarithmic, towards 100 % and in time."
        .to_owned();
    if drawn.len() < cases.len() {
        caption.push_str(" Not available for some: the driver does not report it.");
    }
    Picture {
        title: title.to_owned(),
        html: both(title, |svg| draw_distribution(svg, along, &drawn)),
        caption,
    }
}

/// Each nine takes the same room.
fn nines(percent: f64) -> f64 {
    -(1.0 - (percent / 100.0).min(0.99999)).log10()
}

fn draw_distribution(svg: &mut Svg, along: &str, cases: &[&CaseSummary]) {
    let contenders = names(cases, CONTENDER);
    let levels = names(cases, along);
    let class = |case: &CaseSummary| {
        let at = |names: &[&str], name: &str| names.iter().position(|known| *known == name);
        let dash = at(&contenders, level(case, CONTENDER)).unwrap_or_default() % 4 + 1;
        let hue = at(&levels, level(case, along)).unwrap_or_default();
        format!("l d{dash} c{}", colour(hue))
    };
    let entries: Vec<(String, String)> = cases
        .iter()
        .map(|case| {
            let text = if along == CONTENDER {
                level(case, CONTENDER).to_owned()
            } else {
                format!("{}, {}", level(case, CONTENDER), level(case, along))
            };
            (class(case), text)
        })
        .collect();
    let top = legend(svg, &entries, 0.0) + 6.0;
    let field = Field {
        left: LEFT,
        top,
        right: svg.width - 12.0,
        bottom: top + (svg.width * 0.5).clamp(220.0, 340.0),
    };
    svg.height = field.bottom + BOTTOM;
    let values = cases.iter().flat_map(|case| &case.distribution);
    let (low, high) = values.fold((f64::MAX, 1.0_f64), |(low, high), (_, us)| {
        (low.min(us.max(1.0)), high.max(*us))
    });
    let (low, high) = (low.min(high).log10(), high.log10().max(low.log10() + 0.1));
    let most = nines(99.99);
    let x = |percent: f64| field.left + nines(percent) / most * (field.right - field.left);
    let y = |us: f64| {
        field.bottom - (us.max(1.0).log10() - low) / (high - low) * (field.bottom - field.top)
    };
    for percent in PERCENTS {
        svg.line("g", (x(*percent), field.top), (x(*percent), field.bottom));
        let text = format!("{percent} %");
        svg.text(
            "a",
            (x(*percent), field.bottom + 16.0),
            anchor(x(*percent), &field),
            &text,
        );
    }
    let latency = metric::find("latency_p50_us");
    for us in decades(low, high) {
        svg.line("g", (field.left, y(us)), (field.right, y(us)));
        let text = latency.map_or_else(String::new, |metric| whole(metric, us));
        svg.text("a", (field.left - 6.0, y(us) + 4.0), Anchor::End, &text);
    }
    svg.text(
        "a",
        ((field.left + field.right) / 2.0, field.bottom + 34.0),
        Anchor::Middle,
        "share of requests",
    );
    for case in cases {
        let points: Vec<(f64, f64)> = case
            .distribution
            .iter()
            .filter(|(percent, _)| *percent <= 99.99)
            .map(|(percent, us)| (x(*percent), y(*us)))
            .collect();
        svg.path(&class(case), &points, &case.case().label());
    }
}

fn anchor(x: f64, field: &Field) -> Anchor {
    if x > field.right - 24.0 {
        Anchor::End
    } else {
        Anchor::Middle
    }
}

/// 1, 2 and 5 of each decade; 1 alone where there are many.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = if high - low > 2.5 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let mut values = Vec::new();
    for decade in low.floor() as i32..=high.ceil() as i32 {
        let ones = factors.iter().map(|factor| factor * 10f64.powi(decade));
        values.extend(ones.filter(|value| (low..=high).contains(&value.log10())));
    }
    values
}

/// A round value without needless digits.
fn whole(metric: &Metric, value: f64) -> String {
    let shown = metric.show(value);
    shown.replace(".00 ", " ").replace(".0 ", " ")
}

pub(super) fn scaling(
    title: &str,
    plot: &Plot,
    along: &str,
    cases: &[&CaseSummary],
    summary: &Summary,
) -> Picture {
    let Some(metric) = metric_of(plot) else {
        return Picture {
            title: title.to_owned(),
            html: String::new(),
            caption: String::new(),
        };
    };
    let contenders = names(cases, CONTENDER);
    let laws: Vec<(&str, &LawSummary)> = contenders
        .iter()
        .filter_map(|name| Some((*name, law_of(summary, along, metric, cases, name)?)))
        .collect();
    let texts = laws
        .iter()
        .map(|(name, law)| format!("{name}: {}", words::law(law)));
    let caption = format!(
        "Points are medians with their 95 % intervals; curves are the Universal Scalability Law, \
         X(N) = λN / (1 + σ(N−1) + κN(N−1)), fitted to them. {}.",
        texts.collect::<Vec<_>>().join(". ")
    );
    Picture {
        title: title.to_owned(),
        html: both(title, |svg| draw_scaling(svg, metric, along, cases, &laws)),
        caption,
    }
}

/// The law of a contender's curve in this picture.
fn law_of<'a>(
    summary: &'a Summary,
    along: &str,
    metric: &Metric,
    cases: &[&CaseSummary],
    contender: &str,
) -> Option<&'a LawSummary> {
    let member = cases
        .iter()
        .find(|case| level(case, CONTENDER) == contender)?;
    summary.laws.iter().find(|law| {
        law.along == along
            && law.metric == metric.name
            && law
                .at
                .iter()
                .all(|(name, fixed)| level(member, name) == fixed)
    })
}

fn draw_scaling(
    svg: &mut Svg,
    metric: &Metric,
    along: &str,
    cases: &[&CaseSummary],
    laws: &[(&str, &LawSummary)],
) {
    let contenders = names(cases, CONTENDER);
    let entries: Vec<(String, String)> = contenders
        .iter()
        .enumerate()
        .map(|(index, name)| (format!("k c{}", colour(index)), (*name).to_owned()))
        .collect();
    let top = legend(svg, &entries, 0.0) + 6.0;
    let field = Field {
        left: LEFT,
        top,
        right: svg.width - 12.0,
        bottom: top + (svg.width * 0.45).clamp(200.0, 320.0),
    };
    svg.height = field.bottom + BOTTOM;
    let (most, high) = ranges(metric, along, cases);
    let x = |n: f64| field.left + n / most * (field.right - field.left);
    let y = |value: f64| field.bottom - value / high * (field.bottom - field.top);
    for tick in ticks(0.0, high, 5) {
        svg.line("g", (field.left, y(tick)), (field.right, y(tick)));
        let shown = if tick == 0.0 {
            "0".to_owned()
        } else {
            metric.show(tick)
        };
        svg.text("a", (field.left - 6.0, y(tick) + 4.0), Anchor::End, &shown);
    }
    for name in names(cases, along) {
        let at = x(name.parse().unwrap_or_default());
        svg.text("a", (at, field.bottom + 16.0), Anchor::Middle, name);
    }
    let middle = ((field.left + field.right) / 2.0, field.bottom + 34.0);
    svg.text("a", middle, Anchor::Middle, along);
    for (index, contender) in contenders.iter().enumerate() {
        let hue = colour(index);
        let law = laws.iter().find(|(name, _)| name == contender);
        if let Some(Ok(fitted)) = law.map(|(_, law)| &law.law) {
            let steps = 80;
            let curve: Vec<(f64, f64)> = (0..=steps)
                .map(|step| 1.0 + (most - 1.0) * f64::from(step) / f64::from(steps))
                .map(|n| (x(n), y(fitted.law.at(n))))
                .collect();
            svg.path(
                &format!("l d1 c{hue}"),
                &curve,
                &format!("{contender}: the fitted law"),
            );
        }
        let own = cases
            .iter()
            .filter(|case| level(case, CONTENDER) == *contender);
        for case in own {
            // Contenders stand side by side at each number, so that their intervals do.
            let aside = (index as f64 - (contenders.len() as f64 - 1.0) / 2.0) * 4.0;
            point(svg, metric, case, hue, x(number(case, along)) + aside, &y);
        }
    }
}

fn number(case: &CaseSummary, along: &str) -> f64 {
    level(case, along).parse().unwrap_or_default()
}

/// Where both axes end.
fn ranges(metric: &Metric, along: &str, cases: &[&CaseSummary]) -> (f64, f64) {
    let numbers = cases.iter().map(|case| number(case, along));
    let highs = cases
        .iter()
        .filter_map(|case| match case.metric(metric.name)? {
            MetricSummary::Known {
                median, interval, ..
            } => Some(interval.map_or(*median, |bounds| bounds.high)),
            MetricSummary::NotAvailable(_) => None,
        });
    let high = highs.fold(0.0, f64::max);
    (numbers.fold(1.0, f64::max) * 1.04, (high * 1.06).max(1e-9))
}

fn point(
    svg: &mut Svg,
    metric: &Metric,
    case: &CaseSummary,
    hue: usize,
    x: f64,
    y: &impl Fn(f64) -> f64,
) {
    let Some(MetricSummary::Known {
        median, interval, ..
    }) = case.metric(metric.name)
    else {
        return;
    };
    if let Some(bounds) = interval {
        let class = format!("l d1 c{hue}");
        svg.line(&class, (x, y(bounds.low)), (x, y(bounds.high)));
    }
    let label = format!("{}: {}", case.case().label(), metric.show(*median));
    let class = if is_marked(case) { "m" } else { "b" };
    svg.circle(&format!("{class} c{hue}"), (x, y(*median)), 4.5, &label);
}
