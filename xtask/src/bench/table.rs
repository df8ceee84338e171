//! The table of a run.

use std::fmt::Write as _;

/// The medians of all cases, and of the ratios of the rounds; `samples` are the rounds of both
/// servers.
pub(super) fn table<'a>(
    [ours, theirs]: [&str; 2],
    cases: impl Iterator<Item = (&'a str, &'a [Vec<f64>; 2])>,
) -> String {
    let mut text = format!(
        "Microseconds of the serving process for an operation; medians of the rounds\n\n\
         | operation | {ours} | {theirs} | ratio | from | to |\n|---|---|---|---|---|---|\n"
    );
    for (name, [own, other]) in cases {
        let ratios = own.iter().zip(other).map(|(own, other)| own / other);
        let ratios = sorted(ratios.collect());
        let (low, high) = (ratios.first(), ratios.last());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            median(own),
            median(other),
            median(&ratios),
            low.unwrap_or(&f64::NAN),
            high.unwrap_or(&f64::NAN)
        );
    }
    text
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

pub(super) fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values.to_vec());
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
