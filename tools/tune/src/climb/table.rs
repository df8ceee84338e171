//! The ladder: each step with its figure and its interval, as study S3 printed it, and S3's own
//! steps beside.

use std::fmt::Write as _;

use turnpike_lab::bench::{self as lab, Interval, Rung};

use super::knobs::Knob;
use super::optimum::Optimum;
use super::search::{Climbed, Tried};
use crate::report::wrapped;

/// Columns of the bars.
const BAR: usize = 20;
/// The published ladder.
const STUDY: &str = "s3-tuning-ladder";

/// The table for people, with the best of the grid and the published steps beside.
pub(crate) fn text(climbed: &Climbed, optimum: Option<&Optimum>, width: usize) -> String {
    let mut text = ladder(climbed, width);
    if let Some(optimum) = optimum {
        text.push_str(&wrapped(&against(climbed, optimum), 0, width));
    }
    text.push_str(&beside(climbed, &lab::ladder(STUDY), width));
    text
}

/// The steps of a climb.
pub(crate) fn ladder(climbed: &Climbed, width: usize) -> String {
    let rates = climbed.tried.iter().map(|tried| tried.rate);
    let highest = rates.fold(climbed.start_rate, f64::max).max(1.0);
    let bar = |rate: f64| "#".repeat((rate / highest * BAR as f64).round() as usize);
    let mut text = format!("What binds at the start: {}.\n\n", climbed.cause.text());
    let _ = writeln!(
        text,
        "{:>8}/s  {:<BAR$}  the start",
        climbed.start_rate.round(),
        bar(climbed.start_rate)
    );
    let mut cause = climbed.cause;
    for tried in &climbed.tried {
        if !tried.cause.is_like(cause) {
            cause = tried.cause;
            let _ = writeln!(text, "\nWhat binds now: {}.\n", cause.text());
        }
        let _ = writeln!(
            text,
            "{:>8}/s  {:<BAR$}  {}",
            tried.rate.round(),
            bar(tried.rate),
            tried.text
        );
        text.push_str(&wrapped(&remark(tried), 14 + BAR, width));
    }
    text.push_str(&sum(climbed));
    if let Some(why) = &climbed.over {
        let why = format!("It ended before all steps were tried: {why}.");
        text.push_str(&wrapped(&why, 0, width));
    }
    text
}

/// A step in a line, while the climb runs.
pub(crate) fn line(tried: &Tried) -> String {
    format!("{}: {}", tried.text, remark(tried))
}

fn sum(climbed: &Climbed) -> String {
    let tried = climbed.tried.iter();
    let kept = tried.filter(|tried| tried.verdict.is_kept());
    let product: f64 = kept.clone().map(|tried| tried.ratio).product();
    let found: Vec<&str> = climbed.found().into_iter().map(Knob::name).collect();
    format!(
        "\n{} of {} steps kept; together {product:.2} times the start. {} of {} knobs found: {}.\n",
        kept.count(),
        climbed.tried.len(),
        found.len(),
        climbed.knobs().len(),
        if found.is_empty() {
            "none".to_owned()
        } else {
            found.join(", ")
        }
    )
}

/// The end of the climb against the best of the grid.
fn against(climbed: &Climbed, optimum: &Optimum) -> String {
    let texts = Knob::SEVEN.map(|knob| knob.levels()[optimum.levels.level(knob)]);
    let best = format!(
        "The best of {} combinations: {}.",
        optimum.combinations,
        texts.join(", ")
    );
    match &optimum.end {
        None => format!("{best} The climb ended there."),
        Some(end) => {
            let differing = Knob::ALL
                .into_iter()
                .filter(|knob| climbed.levels.level(*knob) != optimum.levels.level(*knob));
            let differing: Vec<&str> = differing.map(Knob::name).collect();
            let (ratio, bounds) = (end.ratio, end.bounds.map_or_else(String::new, interval));
            let by_cpu = end.cpu.map_or_else(String::new, |cpu| {
                format!(
                    ", and {:.2} times its connections for each second of CPU time{}",
                    cpu.mean,
                    interval(cpu.bounds)
                )
            });
            format!(
                "{best} The climb's end makes {ratio:.2} times its rate{bounds}{by_cpu}, in {} new \
                 pairs of runs; they differ in {}.",
                end.pairs,
                differing.join(", ")
            )
        }
    }
}

/// The published steps, each with what the same knobs did here. A step names knobs, or a level by
/// the beginning of its text.
fn beside(climbed: &Climbed, rungs: &[Rung], width: usize) -> String {
    let mut text = "\nThe steps of study S3, and the same knobs here:\n\n".to_owned();
    let mut before: Option<f64> = None;
    for rung in rungs {
        let factor = before.map_or(1.0, |before| rung.connections_per_s / before);
        let undone = if rung.kept { "" } else { " (undone)" };
        let _ = writeln!(text, "  x {factor:.2}  {}{undone}", rung.text);
        let here = if rung.knobs.is_empty() {
            match before {
                None => "here: its start is not ours".to_owned(),
                Some(_) => "here: not possible, a veth pair has no interrupts".to_owned(),
            }
        } else {
            format!("here: {}", same_knobs(climbed, &rung.knobs))
        };
        text.push_str(&wrapped(&here, 10, width));
        if rung.kept {
            before = Some(rung.connections_per_s);
        }
    }
    text
}

fn same_knobs(climbed: &Climbed, names: &[String]) -> String {
    let is_same = |tried: &&Tried| {
        let mut names = names.iter();
        names.any(|name| {
            let mut knobs = tried.knobs.iter();
            knobs.any(|knob| knob.name() == name) || tried.text.starts_with(name.as_str())
        })
    };
    let tried = climbed.tried.iter().filter(is_same);
    let texts: Vec<String> = tried.map(line).collect();
    if texts.is_empty() {
        "not tried: a climb with --quick has seven settings".to_owned()
    } else {
        texts.join("; ")
    }
}

fn interval(bounds: Interval) -> String {
    format!(" [{:.2}, {:.2}]", bounds.low, bounds.high)
}

fn remark(tried: &Tried) -> String {
    if !tried.obstacle.is_empty() {
        return format!("{}: {}", tried.verdict.text(), tried.obstacle);
    }
    let limited = if tried.client_limited {
        "; the client was the limit: at least this"
    } else {
        ""
    };
    let verdict = tried.verdict.text();
    let bounds = tried.bounds.map_or_else(String::new, interval);
    let by_cpu = tried.cpu.map_or_else(String::new, |cpu| {
        format!("; by CPU time x {:.2}{}", cpu.mean, interval(cpu.bounds))
    });
    format!("x {:.2}{bounds}{by_cpu}, {verdict}{limited}", tried.ratio)
}
