//! Claims: the ratio of two cases, paired by the round in which both ran, with its interval.

use serde::{Deserialize, Serialize};

use super::bootstrap::{Interval, VALUES_MIN, interval};
use super::{mean, median};
use crate::study::model::Expect;

/// The result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The interval is on the claimed side of 1.
    Seen,
    /// The interval is on the other side of 1.
    Opposite,
    /// The interval covers 1.
    NoDifference,
    /// Too few rounds in which both runs could be used.
    NotUsable,
    /// Nothing was claimed; the ratio is above 1.
    Above,
    /// Nothing was claimed; the ratio is below 1.
    Below,
}

impl Verdict {
    /// In words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Verdict::Seen => "seen",
            Verdict::Opposite => "the opposite was seen",
            Verdict::NoDifference => "no difference shown",
            Verdict::NotUsable => "not usable",
            Verdict::Above => "higher",
            Verdict::Below => "lower",
        }
    }
}

/// A ratio with all that belongs to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The geometric mean of the rounds' ratios.
    pub(crate) ratio: Option<f64>,
    pub(crate) interval: Option<Interval>,
    /// Rounds in which both runs could be used.
    pub(crate) pairs: usize,
    pub(crate) verdict: Verdict,
}

/// The ratio of pairs `(of, against)`.
pub(crate) fn answer(pairs: &[(f64, f64)], expect: Expect, seed: u64) -> Answer {
    let logarithms: Vec<f64> = pairs
        .iter()
        .filter(|(of, against)| *of > 0.0 && *against > 0.0)
        .map(|(of, against)| (of / against).ln())
        .collect();
    let bounds = interval(&logarithms, mean, seed).map(|bounds| Interval {
        low: bounds.low.exp(),
        high: bounds.high.exp(),
    });
    Answer {
        ratio: mean(&logarithms).map(f64::exp),
        interval: bounds,
        pairs: logarithms.len(),
        verdict: verdict(bounds, expect),
    }
}

fn verdict(bounds: Option<Interval>, expect: Expect) -> Verdict {
    let Some(Interval { low, high }) = bounds else {
        return Verdict::NotUsable;
    };
    match (expect, low > 1.0, high < 1.0) {
        (Expect::Above, true, _) | (Expect::Below, _, true) => Verdict::Seen,
        (Expect::Above, _, true) | (Expect::Below, true, _) => Verdict::Opposite,
        (Expect::Same, true, _) | (Expect::Same, _, true) => Verdict::Opposite,
        (Expect::Open, true, _) => Verdict::Above,
        (Expect::Open, _, true) => Verdict::Below,
        (_, false, false) => Verdict::NoDifference,
    }
}

/// The ratio of two medians of unpaired runs, of another day or machine.
pub(crate) fn unpaired(of: &[f64], against: &[f64], seed: u64) -> Option<(f64, Interval)> {
    /// As many as for a single median.
    const RESAMPLES: usize = 4000;
    if of.len() < VALUES_MIN || against.len() < VALUES_MIN {
        return None;
    }
    let ratio = median(of)? / median(against)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut draw = |values: &[f64]| {
        let sample: Vec<f64> = values
            .iter()
            .map(|_| values[random.usize(..values.len())])
            .collect();
        median(&sample)
    };
    let mut ratios = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        ratios.push(draw(of)? / draw(against)?);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| ratios[((RESAMPLES - 1) as f64 * share).round() as usize];
    // Medians of few values vary strongly; the outer percent on each side keeps the interval valid.
    let bounds = Interval {
        low: at(0.01),
        high: at(0.99),
    };
    Some((ratio, bounds))
}
