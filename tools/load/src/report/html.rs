//! `--html`: the run as one page without outside requests, with the lab's style and pictures.

use askama::Template;

use crate::plan::Plan;
use crate::report::limits::Limit;
use crate::report::text;
use crate::run::Outcome;
use crate::series::Interval;
use crate::svg::{Anchor, Svg, ticks};
use crate::tally::ErrorKind;
use crate::units::{counted, format_metric, show_bytes, show_time_us};

/// The style sheet of the lab's reports and of this one.
const REPORT_STYLE: &str = include_str!("report.css");

/// Widths that pictures are drawn for, with the class that the style sheet shows them by.
const WIDTHS: [(f64, &str); 2] = [(760.0, "wide"), (350.0, "narrow")];
/// Room for the scale at the left, and for the times below.
const LEFT: f64 = 62.0;
const BOTTOM: f64 = 40.0;
/// The percentiles of the table and of the axis of the distribution.
const PERCENTILES: [f64; 7] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// A line of a picture.
struct Curve {
    name: &'static str,
    /// The number of its colour.
    colour: usize,
    points: Vec<(f64, f64)>,
}

/// A picture: where each value lies on its axes, and how the axes are named.
struct Chart<'a> {
    title: &'a str,
    curves: &'a [Curve],
    /// Ends of both axes.
    x: (f64, f64),
    y: (f64, f64),
    /// Values that the axes name.
    x_ticks: Vec<(f64, String)>,
    y_ticks: Vec<(f64, String)>,
    x_name: &'a str,
}

/// The skeleton of every page.
#[derive(Template)]
#[template(path = "document.html")]
struct Document<'a> {
    title: &'a str,
    style: &'a str,
    /// Markup.
    body: &'a str,
}

/// The content of the page.
#[derive(Template)]
#[template(path = "run.html")]
struct RunPage<'a> {
    title: &'a str,
    chips: Vec<String>,
    rate: String,
    median: String,
    p99: String,
    errors: u64,
    command: String,
    warnings: Vec<String>,
    figures: Vec<(String, String)>,
    pictures: Vec<Picture>,
    details: &'a str,
}

/// A picture with its texts.
struct Picture {
    title: String,
    /// SVG, once for each width.
    drawings: String,
    caption: &'static str,
}

/// A whole page with this markup as its content, in the style of all reports.
///
/// # Errors
/// The template could not be filled in, which none of the values here can cause.
pub fn document(title: &str, body: &str) -> Result<String, askama::Error> {
    let style = REPORT_STYLE;
    Document { title, style, body }.render()
}

/// The page.
///
/// # Errors
/// As [`document`].
pub(crate) fn page(
    plan: &Plan,
    arguments: &[String],
    outcome: &Outcome,
    limits: &[Limit],
) -> Result<String, askama::Error> {
    let place = plan.targets.endpoints.first();
    let place = place.map_or("", |endpoint| endpoint.label.as_str());
    let title = format!("Load on {place}");
    let mut details = String::new();
    text::detail(&mut details, plan, outcome);
    let tally = &outcome.tally;
    let body = RunPage {
        title: &title,
        chips: chips(plan, outcome),
        rate: format_metric(tally.completed as f64 / outcome.measured.as_secs_f64()),
        median: time(tally.latency.percentile(50.0)),
        p99: time(tally.latency.percentile(99.0)),
        errors: tally.errors.total(),
        command: arguments.join(" "),
        warnings: warnings(outcome, limits),
        figures: figures(outcome),
        pictures: pictures(outcome),
        details: details.trim_end(),
    };
    document(&title, &body.render()?)
}

fn chips(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    vec![
        format!("{:.1} s", outcome.measured.as_secs_f64()),
        counted(plan.connections, "connection"),
        counted(plan.threads, "thread"),
        counted(outcome.machine.cpus, "CPU"),
        format!("Linux {}", outcome.machine.kernel),
    ]
}

/// A round number of a scale: `0`, `2500`, `50k`.
fn round(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", value / 1e6),
        value if value >= 1e4 => format!("{}k", value / 1e3),
        value => format!("{value}"),
    }
}

fn time(ns: u64) -> String {
    show_time_us(ns as f64 / 1e3).replace(" us", " µs")
}

fn warnings(outcome: &Outcome, limits: &[Limit]) -> Vec<String> {
    let mut texts: Vec<String> = limits
        .iter()
        .map(|limit| format!("{}: {limit}.", limit.label()))
        .collect();
    if outcome.interrupted {
        texts.push("The run was interrupted: these are the figures so far.".to_owned());
    }
    texts
}

fn figures(outcome: &Outcome) -> Vec<(String, String)> {
    let tally = &outcome.tally;
    let seconds = outcome.measured.as_secs_f64();
    let mut rows = vec![
        ("answered".to_owned(), tally.completed.to_string()),
        (
            "requests per second".to_owned(),
            format_metric(tally.completed as f64 / seconds),
        ),
        (
            "transfer per second".to_owned(),
            format!("{}/s", show_bytes(tally.bytes as f64 / seconds)),
        ),
        ("mean latency".to_owned(), time(tally.latency.mean() as u64)),
    ];
    rows.extend(PERCENTILES.iter().map(|percent| {
        let value = time(tally.latency.percentile(*percent));
        (format!("{percent} % within"), value)
    }));
    rows.push(("longest".to_owned(), time(tally.latency.max())));
    let errors = ErrorKind::ALL
        .iter()
        .map(|kind| (kind, tally.errors.of(*kind)));
    let errors = errors.filter(|(_, count)| *count > 0);
    rows.extend(errors.map(|(kind, count)| (format!("error: {}", kind.name()), count.to_string())));
    let statuses = tally
        .statuses
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0);
    rows.extend(statuses.map(|(status, count)| (format!("status {status}"), count.to_string())));
    rows
}

fn pictures(outcome: &Outcome) -> Vec<Picture> {
    let intervals: Vec<Interval> = outcome.tally.series.intervals().collect();
    // The last interval is seldom whole, and its rate would be drawn too low.
    let whole = match intervals.len() {
        0..=2 => &intervals[..],
        count => &intervals[..count - 1],
    };
    let interval_s = outcome.tally.series.interval_s();
    let drawn = [
        Some(rate(whole, interval_s)),
        latency(whole, interval_s),
        distribution(outcome),
    ];
    drawn.into_iter().flatten().collect()
}

fn figure(chart: &Chart<'_>, caption: &'static str) -> Picture {
    let drawings = WIDTHS
        .iter()
        .map(|(width, class)| draw(chart, *width, class))
        .collect();
    Picture {
        title: chart.title.to_owned(),
        drawings,
        caption,
    }
}

/// The times of an axis over the run.
fn seconds(end_s: f64) -> Vec<(f64, String)> {
    let named = ticks(0.0, end_s, 6).into_iter();
    named
        .map(|second| (second, format!("{second} s")))
        .collect()
}

fn rate(intervals: &[Interval], interval_s: f64) -> Picture {
    let points = |value: fn(&Interval) -> u64| {
        let at = |one: &Interval| one.start_s + interval_s / 2.0;
        let points = intervals
            .iter()
            .map(|one| (at(one), value(one) as f64 / interval_s));
        points.collect::<Vec<(f64, f64)>>()
    };
    let mut curves = vec![Curve {
        name: "answered per second",
        colour: 1,
        points: points(|one| one.answered),
    }];
    if intervals.iter().any(|one| one.errors > 0) {
        curves.push(Curve {
            name: "errors per second",
            colour: 7,
            points: points(|one| one.errors),
        });
    }
    let end_s = intervals.len().max(1) as f64 * interval_s;
    let top = curves.iter().flat_map(|curve| &curve.points);
    let top = top.fold(1.0, |top: f64, (_, value)| top.max(*value));
    let named = ticks(0.0, top * 1.05, 5).into_iter();
    let chart = Chart {
        title: "Answers over time",
        curves: &curves,
        x: (0.0, end_s),
        y: (0.0, top * 1.05),
        x_ticks: seconds(end_s),
        y_ticks: named.map(|value| (value, round(value))).collect(),
        x_name: "seconds since the start",
    };
    figure(&chart, "Each point is the mean of an interval.")
}

/// Latency on a logarithmic axis.
fn latency(intervals: &[Interval], interval_s: f64) -> Option<Picture> {
    let points = |value: fn(&Interval) -> Option<f64>| {
        let known = intervals
            .iter()
            .filter_map(|one| Some((one.start_s + interval_s / 2.0, value(one)?.max(1.0).log10())));
        known.collect::<Vec<(f64, f64)>>()
    };
    let curves = [
        Curve {
            name: "longest",
            colour: 8,
            points: points(|one| one.max_us),
        },
        Curve {
            name: "99 %",
            colour: 2,
            points: points(|one| one.p99_us),
        },
        Curve {
            name: "median",
            colour: 3,
            points: points(|one| one.p50_us),
        },
    ];
    let y = extent(&curves)?;
    let end_s = intervals.len().max(1) as f64 * interval_s;
    let chart = Chart {
        title: "Latency over time",
        curves: &curves,
        x: (0.0, end_s),
        y,
        x_ticks: seconds(end_s),
        y_ticks: decades(y),
        x_name: "seconds since the start",
    };
    Some(figure(&chart, "The axis of the latency is logarithmic."))
}

/// Both ends of the values of curves, a little apart.
fn extent(curves: &[Curve]) -> Option<(f64, f64)> {
    let values = || {
        curves
            .iter()
            .flat_map(|curve| curve.points.iter().map(|(_, y)| *y))
    };
    let low = values().reduce(f64::min)?;
    let high = values().reduce(f64::max)?;
    Some((low - 0.1, high + 0.1))
}

/// 1, 2 and 5 of each decade of microseconds; 1 alone where there are many.
fn decades((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let factors: &[f64] = if high - low > 2.5 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let mut named = Vec::new();
    for decade in low.floor() as i32..=high.ceil() as i32 {
        for factor in factors {
            let us = factor * 10_f64.powi(decade);
            if (low..=high).contains(&us.log10()) {
                named.push((us.log10(), whole_time(us)));
            }
        }
    }
    named
}

/// A round time without digits after the point: `500 µs`, `2 ms`.
fn whole_time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", us / 1e6),
        us if us >= 1e3 => format!("{} ms", us / 1e3),
        us => format!("{us} µs"),
    }
}

/// Each nine takes the same room.
fn nines(percent: f64) -> f64 {
    -(1.0 - (percent / 100.0).min(0.99999)).log10()
}

fn distribution(outcome: &Outcome) -> Option<Picture> {
    let latency = &outcome.tally.latency;
    if latency.count() == 0 {
        return None;
    }
    let percents = (0..=200).map(|step| 100.0 - 100.0 * 10_f64.powf(-f64::from(step) / 50.0));
    let point = |percent: f64| {
        let us = latency.percentile(percent) as f64 / 1e3;
        (nines(percent), us.max(1.0).log10())
    };
    let curves = [Curve {
        name: "latency",
        colour: 1,
        points: percents.map(point).collect(),
    }];
    let y = extent(&curves)?;
    let named = PERCENTILES
        .iter()
        .filter(|percent| ![75.0, 95.0].contains(*percent));
    let chart = Chart {
        title: "Latency by share of requests",
        curves: &curves,
        x: (0.0, nines(99.99)),
        y,
        x_ticks: named
            .map(|percent| (nines(*percent), format!("{percent} %")))
            .collect(),
        y_ticks: decades(y),
        x_name: "share of requests",
    };
    Some(figure(
        &chart,
        "Percentage of the requests answered within a time. Both axes are \
         logarithmic, towards 100 % and in time.",
    ))
}

fn draw(chart: &Chart<'_>, width: f64, class: &str) -> String {
    let mut svg = Svg::new(width);
    let mut x_legend = 0.0;
    for curve in chart.curves {
        svg.line(
            &format!("l c{}", curve.colour),
            (x_legend, 8.0),
            (x_legend + 18.0, 8.0),
        );
        svg.text("t", (x_legend + 23.0, 12.0), Anchor::Start, curve.name);
        x_legend += 45.0 + crate::svg::text_width(curve.name, 13.0);
    }
    let (top, right) = (26.0, width - 12.0);
    let bottom = top + (width * 0.4).clamp(180.0, 280.0);
    svg.height = bottom + BOTTOM;
    let x = |value: f64| LEFT + (value - chart.x.0) / (chart.x.1 - chart.x.0) * (right - LEFT);
    let y = |value: f64| bottom - (value - chart.y.0) / (chart.y.1 - chart.y.0) * (bottom - top);
    for (value, text) in &chart.y_ticks {
        svg.line("g", (LEFT, y(*value)), (right, y(*value)));
        svg.text("a", (LEFT - 6.0, y(*value) + 4.0), Anchor::End, text);
    }
    let mut free_from = f64::MIN;
    for (value, text) in &chart.x_ticks {
        let at = x(*value);
        svg.line("g", (at, top), (at, bottom));
        let half = crate::svg::text_width(text, 12.0) / 2.0;
        // Names that would touch each other are left out.
        if at - half >= free_from {
            let (anchor, at) = if at + half > width {
                (Anchor::End, width)
            } else {
                (Anchor::Middle, at)
            };
            svg.text("a", (at, bottom + 16.0), anchor, text);
            free_from = at + half + 6.0;
        }
    }
    let middle = (LEFT + right) / 2.0;
    svg.text("a", (middle, bottom + 34.0), Anchor::Middle, chart.x_name);
    for curve in chart.curves {
        let points: Vec<(f64, f64)> = curve.points.iter().map(|(a, b)| (x(*a), y(*b))).collect();
        svg.path(&format!("l c{}", curve.colour), &points, curve.name);
    }
    svg.finish(class, chart.title)
}
