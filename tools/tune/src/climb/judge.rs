//! Whether a step stays: pairs of runs in, a verdict with its interval out. Pure.

use turnpike_lab::bench::{Interval, interval, mean};

use super::search::{Candidate, Effort, Ratio, Run, Tried};

/// Why a step stayed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Kept,
    /// No other rate was shown, but less CPU time for each connection.
    Cheaper,
    Worse,
    NoDifference,
    Latency,
    Errors,
    Impossible,
}

impl Verdict {
    /// Whether the step stays.
    pub(crate) fn is_kept(self) -> bool {
        matches!(self, Verdict::Kept | Verdict::Cheaper)
    }

    /// In words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Verdict::Kept => "kept",
            Verdict::Cheaper => "kept: less CPU time for each connection",
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
    // Logarithms, as the intervals were made of them.
    let wide = |middle: f64, bound: f64| middle.ln() + (bound / middle).ln() * EARLY_FACTOR;
    let may_be_cheaper = tried.cpu.is_some_and(|ratio| ratio.bounds.high >= GAIN_MIN);
    match tried.verdict {
        Verdict::Kept | Verdict::Latency => wide(tried.ratio, bounds.low) > 0.0,
        Verdict::Worse => wide(tried.ratio, bounds.high) < 0.0,
        // More pairs may still show that its rate is worse.
        Verdict::Cheaper => false,
        Verdict::NoDifference => bounds.high < GAIN_MIN && !may_be_cheaper,
        Verdict::Errors | Verdict::Impossible => true,
    }
}

/// Judges a step by its pairs of runs: the old levels, and the new ones.
pub(super) fn judged(pairs: &[(Run, Run)], candidate: &Candidate, effort: Effort) -> Tried {
    let rate = ratio(pairs, |run| run.connections_per_s.max(1.0));
    let is_measured = |run: &Run| run.cpu_us > 0.0;
    let cpu = match pairs
        .iter()
        .all(|(old, new)| is_measured(old) && is_measured(new))
    {
        true => ratio(pairs, |run| 1.0 / run.cpu_us),
        false => None,
    };
    let rates: Vec<f64> = pairs.iter().map(|(_, new)| new.connections_per_s).collect();
    Tried {
        text: candidate.text.clone(),
        knobs: candidate.knobs.clone(),
        pairs: pairs.len(),
        obstacle: String::new(),
        rate: mean(&rates).unwrap_or(0.0),
        ratio: rate.map_or(1.0, |ratio| ratio.mean),
        bounds: rate.map(|ratio| ratio.bounds),
        cpu,
        verdict: verdict(pairs, rate, cpu, effort),
        client_limited: pairs.iter().filter(|(_, new)| new.client_limited).count() * 2
            > pairs.len(),
    }
}

/// The geometric mean of a figure's ratios, new to old; `None` without an interval.
fn ratio(pairs: &[(Run, Run)], figure: impl Fn(&Run) -> f64) -> Option<Ratio> {
    let logarithms = pairs
        .iter()
        .map(|(old, new)| (figure(new) / figure(old)).ln());
    let logarithms: Vec<f64> = logarithms.collect();
    let bounds = interval(&logarithms, mean, SEED)?;
    Some(Ratio {
        mean: mean(&logarithms)?.exp(),
        bounds: Interval {
            low: bounds.low.exp(),
            high: bounds.high.exp(),
        },
    })
}

fn verdict(
    pairs: &[(Run, Run)],
    rate: Option<Ratio>,
    cpu: Option<Ratio>,
    effort: Effort,
) -> Verdict {
    let share = |runs: &mut dyn Iterator<Item = &Run>| {
        let (errors, all) = runs.fold((0, 0), |(errors, all), run| {
            (errors + run.errors, all + run.errors + run.answered)
        });
        errors as f64 / all.max(1) as f64
    };
    let old_errors = share(&mut pairs.iter().map(|(old, _)| old));
    let new_errors = share(&mut pairs.iter().map(|(_, new)| new));
    if new_errors > ERROR_SHARE_MAX && new_errors > old_errors {
        return Verdict::Errors;
    }
    let is_above = |ratio: Option<Ratio>| ratio.is_some_and(|ratio| ratio.bounds.low > 1.0);
    if rate.is_some_and(|ratio| ratio.bounds.high < 1.0) {
        return Verdict::Worse;
    }
    if !is_above(rate) && !is_above(cpu) {
        return Verdict::NoDifference;
    }
    match is_slower(pairs, effort) {
        true => Verdict::Latency,
        false if is_above(rate) => Verdict::Kept,
        false => Verdict::Cheaper,
    }
}

/// Whether the 99th percentile of latency grew beyond the bound.
fn is_slower(pairs: &[(Run, Run)], effort: Effort) -> bool {
    // Who waits for a second handshake is not among the answered of a short run, so that the
    // latency of the others looks better than it was.
    let dropped = |runs: &mut dyn Iterator<Item = &Run>| runs.map(|run| run.overflows).sum::<u64>();
    let was_dropping = dropped(&mut pairs.iter().map(|(old, _)| old)) > 0
        && dropped(&mut pairs.iter().map(|(_, new)| new)) == 0;
    let p99 = |values: Vec<f64>| mean(&values).unwrap_or(0.0);
    let old_p99 = p99(pairs.iter().map(|(old, _)| old.p99_us).collect());
    let new_p99 = p99(pairs.iter().map(|(_, new)| new.p99_us).collect());
    old_p99 > 0.0 && new_p99 > old_p99 * effort.p99_factor_max && !was_dropping
}
