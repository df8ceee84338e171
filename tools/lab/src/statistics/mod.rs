//! The statistics of several runs, as pure functions: every random choice comes from a seed.

mod bootstrap;
mod ratio;
mod scalability;

pub use bootstrap::{Interval, interval};
pub(crate) use ratio::{Answer, Verdict, answer, unpaired};
pub(crate) use scalability::{Law, fit};

/// The middle value; the mean of the middle two. `None` of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => sorted.get(middle).copied(),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The mean. `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    match values.len() {
        0 => None,
        length => Some(values.iter().sum::<f64>() / length as f64),
    }
}

/// Jain's index: 1 when all have the same, 1/n when one has everything.
pub(crate) fn fairness(shares: &[u64]) -> Option<f64> {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests;
