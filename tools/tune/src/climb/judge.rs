//! Whether a step stays: pairs of runs in, a verdict with its interval out. Pure.

use turnpike_lab::bench::{Interval, interval, mean};

use super::cause::Cause;
use super::search::{Candidate, Effort, Ratio, Run, Tried};

/// Why a step stayed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Kept,
    /// No other rate of the server was shown, but less CPU time for each connection.
    Cheaper,
    Worse,
    NoDifference,
    Latency,
    Errors,
    /// What the knob changes did not happen.
    WithoutEffect,
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
            Verdict::WithoutEffect => "left out",
            Verdict::Impossible => "not possible here",
        }
    }
}

/// A step that cannot gain more than this is not measured further.
const GAIN_MIN: f64 = 1.01;
/// The share of its rate that a step may cost where the load generator was the limit before and
/// after: a faster server wakes it more often for fewer answers each, so that its own part grows.
const CLIENT_LOSS_MAX: f64 = 0.1;
/// The share of errors above which figures say nothing.
pub(super) const ERROR_SHARE_MAX: f64 = 0.01;
/// Seed of the resampling: the same runs give the same interval.
const SEED: u64 = 16;

/// Whether more pairs could not change what is decided.
pub(super) fn is_settled(tried: &Tried, effort: Effort) -> bool {
    let Some(bounds) = tried.bounds else {
        return false;
    };
    if tried.pairs < effort.pairs_min {
        return tried.verdict == Verdict::Errors;
    }
    // Logarithms, as the intervals were made of them.
    let wide = |middle: f64, bound: f64| middle.ln() + (bound / middle).ln() * effort.early_factor;
    let may_be_cheaper = tried.cpu.is_some_and(|ratio| ratio.bounds.high >= GAIN_MIN);
    match tried.verdict {
        Verdict::Kept | Verdict::Latency => wide(tried.ratio, bounds.low) > 0.0,
        Verdict::Worse => {
            let may_be_of_client = tried.client_limited && tried.ratio > 1.0 - CLIENT_LOSS_MAX;
            wide(tried.ratio, bounds.high) < 0.0 && !(may_be_of_client && may_be_cheaper)
        }
        // Otherwise more pairs may still show that its rate is worse.
        Verdict::Cheaper => {
            let is_cheaper = |ratio: Ratio| wide(ratio.mean, ratio.bounds.low) > 0.0;
            tried.client_limited
                && wide(tried.ratio, bounds.low) > (1.0 - CLIENT_LOSS_MAX).ln()
                && tried.cpu.is_some_and(is_cheaper)
        }
        Verdict::NoDifference => {
            let has_gain = |mean: f64| mean >= GAIN_MIN;
            let looks_without_gain =
                !has_gain(tried.ratio) && !tried.cpu.is_some_and(|ratio| has_gain(ratio.mean));
            (looks_without_gain && tried.pairs >= effort.pairs_without_gain_max)
                || (bounds.high < GAIN_MIN && !may_be_cheaper)
        }
        Verdict::Errors | Verdict::WithoutEffect | Verdict::Impossible => true,
    }
}

/// Judges a step by its pairs of runs: the old levels, and the new ones.
pub(super) fn judged(pairs: &[(Run, Run)], candidate: &Candidate, effort: Effort) -> Tried {
    let rate = ratio(pairs, |run| run.connections_per_s.max(1.0));
    let whole = cpu_ratio(pairs, |run| run.cpu_us);
    // The load generator's part hides what a step saves the server; older records have the sum.
    let cpu = cpu_ratio(pairs, |run| run.server_us).or(whole);
    let ratios = Ratios { rate, cpu, whole };
    let rates: Vec<f64> = pairs.iter().map(|(_, new)| new.connections_per_s).collect();
    Tried {
        text: candidate.text.clone(),
        knobs: candidate.knobs.clone(),
        pairs: pairs.len(),
        obstacle: String::new(),
        cause: Cause::Cpu,
        last: pairs.last().cloned(),
        rate: mean(&rates).unwrap_or(0.0),
        ratio: rate.map_or(1.0, |ratio| ratio.mean),
        bounds: rate.map(|ratio| ratio.bounds),
        cpu,
        verdict: verdict(pairs, ratios, effort),
        client_limited: is_client_limited(pairs.iter().map(|(_, new)| new)),
    }
}

/// Whether the load generator was the limit in most of the runs.
fn is_client_limited<'a>(runs: impl ExactSizeIterator<Item = &'a Run>) -> bool {
    let count = runs.len();
    runs.filter(|run| run.client_limited).count() * 2 > count
}

/// The ratios that a step is judged by: above 1 is better.
#[derive(Clone, Copy)]
struct Ratios {
    /// Of connections per second.
    rate: Option<Ratio>,
    /// Of connections for each second of the server's CPU time.
    cpu: Option<Ratio>,
    /// The same with the load generator's CPU time.
    whole: Option<Ratio>,
}

/// The ratio of connections for each second of CPU time; `None` where a run has no such figure.
fn cpu_ratio(pairs: &[(Run, Run)], cpu_us: impl Fn(&Run) -> f64) -> Option<Ratio> {
    let mut runs = pairs.iter().flat_map(|(old, new)| [old, new]);
    if runs.all(|run| cpu_us(run) > 0.0) {
        ratio(pairs, |run| 1.0 / cpu_us(run))
    } else {
        None
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

fn verdict(pairs: &[(Run, Run)], ratios: Ratios, effort: Effort) -> Verdict {
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
    let is_below = |ratio: Option<Ratio>| ratio.is_some_and(|ratio| ratio.bounds.high < 1.0);
    let is_cheaper = is_above(ratios.cpu) && !is_below(ratios.whole);
    if is_below(ratios.rate) && !(is_cheaper && is_loss_of_client(pairs, ratios.rate)) {
        return Verdict::Worse;
    }
    let is_faster = is_above(ratios.rate);
    if !is_faster && !is_cheaper {
        return Verdict::NoDifference;
    }
    match is_slower(pairs, effort) {
        true => Verdict::Latency,
        false if is_faster => Verdict::Kept,
        false => Verdict::Cheaper,
    }
}

/// Whether a lower rate may be the load generator's: it was the limit before and after.
fn is_loss_of_client(pairs: &[(Run, Run)], rate: Option<Ratio>) -> bool {
    is_client_limited(pairs.iter().map(|(old, _)| old))
        && is_client_limited(pairs.iter().map(|(_, new)| new))
        && rate.is_none_or(|ratio| ratio.mean > 1.0 - CLIENT_LOSS_MAX)
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
