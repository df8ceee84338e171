//! Whether a step stays: pairs of runs in, a verdict with its interval out. Pure.

use turnpike_lab::bench::{Interval, interval, mean};

use super::search::{Candidate, Effort, Run, Tried};

/// Why a step stayed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Kept,
    Worse,
    NoDifference,
    Latency,
    Errors,
    Impossible,
}

impl Verdict {
    /// In words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Verdict::Kept => "kept",
            Verdict::Worse => "undone: worse",
            Verdict::NoDifference => "undone: no difference shown",
            Verdict::Latency => "undone: p99 beyond the bound",
            Verdict::Errors => "undone: more errors",
            Verdict::Impossible => "not possible here",
        }
    }
}

/// How much wider an interval has to exclude 1 for a step to be decided before its last look: who
/// looks often sees chance differences more often. 3.29 against 1.96 deviations leaves the last
/// look's 95 % nearly whole (J. L. Haybittle 1971; R. Peto and others 1976).
const EARLY_FACTOR: f64 = 3.29 / 1.96;
/// A step that cannot gain more than this is not measured further.
const GAIN_MIN: f64 = 1.01;
/// The share of errors above which figures say nothing.
const ERROR_SHARE_MAX: f64 = 0.01;
/// Seed of the resampling: the same runs give the same interval.
const SEED: u64 = 16;

/// Whether more pairs could not change what is decided.
pub(super) fn is_settled(tried: &Tried) -> bool {
    let Some(bounds) = tried.bounds else {
        return false;
    };
    // Logarithms, as the interval was made of them.
    let middle = tried.ratio.ln();
    let wide = |bound: f64| middle + (bound.ln() - middle) * EARLY_FACTOR;
    match tried.verdict {
        Verdict::Kept | Verdict::Latency => wide(bounds.low) > 0.0,
        Verdict::Worse => wide(bounds.high) < 0.0,
        Verdict::NoDifference => bounds.high < GAIN_MIN,
        Verdict::Errors | Verdict::Impossible => true,
    }
}

pub(super) fn judged(pairs: &[(Run, Run)], candidate: &Candidate, effort: Effort) -> Tried {
    let ratios = pairs
        .iter()
        .map(|(old, new)| (new.connections_per_s.max(1.0) / old.connections_per_s.max(1.0)).ln());
    let ratios: Vec<f64> = ratios.collect();
    let bounds = interval(&ratios, mean, SEED).map(|bounds| Interval {
        low: bounds.low.exp(),
        high: bounds.high.exp(),
    });
    let rates: Vec<f64> = pairs.iter().map(|(_, new)| new.connections_per_s).collect();
    Tried {
        text: candidate.text.clone(),
        knobs: candidate.knobs.clone(),
        pairs: pairs.len(),
        obstacle: String::new(),
        rate: mean(&rates).unwrap_or(0.0),
        ratio: mean(&ratios).unwrap_or(0.0).exp(),
        bounds,
        verdict: verdict(pairs, bounds, effort),
        client_limited: pairs.iter().filter(|(_, new)| new.client_limited).count() * 2
            > pairs.len(),
    }
}

fn verdict(pairs: &[(Run, Run)], bounds: Option<Interval>, effort: Effort) -> Verdict {
    let share = |runs: &mut dyn Iterator<Item = &Run>| {
        let (errors, all) = runs.fold((0, 0), |(errors, all), run| {
            (errors + run.errors, all + run.errors + run.answered)
        });
        errors as f64 / all.max(1) as f64
    };
    let old_errors = share(&mut pairs.iter().map(|(old, _)| old));
    let new_errors = share(&mut pairs.iter().map(|(_, new)| new));
    // Who waits for a second handshake is not among the answered of a short run, so that the
    // latency of the others looks better than it was.
    let dropped = |runs: &mut dyn Iterator<Item = &Run>| runs.map(|run| run.overflows).sum::<u64>();
    let was_dropping = dropped(&mut pairs.iter().map(|(old, _)| old)) > 0
        && dropped(&mut pairs.iter().map(|(_, new)| new)) == 0;
    let p99 = |values: Vec<f64>| mean(&values).unwrap_or(0.0);
    let old_p99 = p99(pairs.iter().map(|(old, _)| old.p99_us).collect());
    let new_p99 = p99(pairs.iter().map(|(_, new)| new.p99_us).collect());
    match bounds {
        _ if new_errors > ERROR_SHARE_MAX && new_errors > old_errors => Verdict::Errors,
        Some(bounds) if bounds.high < 1.0 => Verdict::Worse,
        Some(bounds) if bounds.low > 1.0 => {
            let is_longer = old_p99 > 0.0 && new_p99 > old_p99 * effort.p99_factor_max;
            match is_longer && !was_dropping {
                true => Verdict::Latency,
                false => Verdict::Kept,
            }
        }
        _ => Verdict::NoDifference,
    }
}
