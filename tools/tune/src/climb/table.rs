//! The ladder: each step with its figure and its interval, as study S3 printed it.

use std::fmt::Write as _;

use super::search::{Climbed, Tried, Verdict};

/// Columns of the bars.
const BAR: usize = 20;

/// The table for people.
pub(crate) fn text(climbed: &Climbed, width: usize) -> String {
    let rates = climbed.tried.iter().map(|tried| tried.rate);
    let highest = rates.fold(climbed.start_rate, f64::max).max(1.0);
    let bar = |rate: f64| "#".repeat((rate / highest * BAR as f64).round() as usize);
    let mut text = format!("What binds at the start: {}.\n\n", climbed.cause);
    let _ = writeln!(
        text,
        "{:>8}/s  {:<BAR$}  the start",
        climbed.start_rate.round(),
        bar(climbed.start_rate)
    );
    for tried in &climbed.tried {
        let _ = writeln!(
            text,
            "{:>8}/s  {:<BAR$}  {}",
            tried.rate.round(),
            bar(tried.rate),
            tried.text
        );
        text.push_str(&crate::report::wrapped(&remark(tried), 14 + BAR, width));
    }
    let kept = climbed
        .tried
        .iter()
        .filter(|tried| tried.verdict == Verdict::Kept);
    let product: f64 = kept.clone().map(|tried| tried.ratio).product();
    let _ = writeln!(
        text,
        "\n{} of {} steps kept; together {product:.2} times the start.",
        kept.count(),
        climbed.tried.len()
    );
    text
}

fn remark(tried: &Tried) -> String {
    let bounds = tried
        .bounds
        .map(|bounds| format!(" [{:.2}, {:.2}]", bounds.low, bounds.high));
    let limited = match tried.client_limited {
        true => "; the client was the limit: at least this",
        false => "",
    };
    let (ratio, bounds) = (tried.ratio, bounds.unwrap_or_default());
    format!("x {ratio:.2}{bounds}, {}{limited}", tried.verdict.text())
}
