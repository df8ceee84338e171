//! The search: what is tried next, and whether it stays. It knows runs only by a trait, so that a
//! recorded climb is searched as a real one is.

use serde::{Deserialize, Serialize};
use turnpike_lab::bench::{Interval, interval, mean};

use super::knobs::{Knob, Levels};

/// What one run gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Run {
    pub(crate) connections_per_s: f64,
    pub(crate) p99_us: f64,
    pub(crate) errors: u64,
    pub(crate) answered: u64,
    /// The load generator was the limit.
    pub(crate) client_limited: bool,
    /// Overflows of the listen queue during the run.
    pub(crate) overflows: u64,
}

/// Where runs come from.
pub(crate) trait Bench {
    /// One run with these levels.
    ///
    /// # Errors
    /// In words: the climb ends, and everything is put back.
    fn run(&mut self, levels: Levels) -> Result<Run, String>;
}

/// How much is measured, and what is too bad to stay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Pairs of runs for each step.
    pub(crate) pairs: usize,
    /// A step whose 99th percentile of latency grows by this factor is undone.
    pub(crate) p99_factor_max: f64,
}

/// Why a step stayed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Kept,
    Worse,
    NoDifference,
    Latency,
    Errors,
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
        }
    }
}

/// A step that was tried.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub(crate) text: String,
    /// Connections per second with the step, the mean of its runs.
    pub(crate) rate: f64,
    pub(crate) ratio: f64,
    pub(crate) bounds: Option<Interval>,
    pub(crate) verdict: Verdict,
    /// The load generator was the limit in most runs: the server can do at least this.
    pub(crate) client_limited: bool,
}

/// A climb that is over.
#[derive(Clone, Debug)]
pub(crate) struct Climbed {
    pub(crate) cause: String,
    pub(crate) start_rate: f64,
    pub(crate) tried: Vec<Tried>,
    pub(crate) levels: Levels,
}

/// The share of errors above which figures say nothing.
const ERROR_SHARE_MAX: f64 = 0.01;
/// Seed of the resampling: the same runs give the same interval.
const SEED: u64 = 16;

/// Climbs from these levels.
///
/// # Errors
/// Of the bench.
pub(crate) fn climb(
    bench: &mut dyn Bench,
    start: Levels,
    effort: Effort,
) -> Result<Climbed, String> {
    let first = bench.run(start)?;
    let (cause, order) = order(&first);
    let mut climbed = Climbed {
        cause,
        start_rate: first.connections_per_s,
        tried: Vec::new(),
        levels: start,
    };
    for knobs in order {
        for candidate in candidates(climbed.levels, knobs) {
            let tried = compare(bench, climbed.levels, &candidate, effort)?;
            if tried.verdict == Verdict::Kept {
                climbed.levels = candidate.levels;
            }
            climbed.tried.push(tried);
        }
    }
    Ok(climbed)
}

/// Cause before cure: what binds at the start decides what is tried first.
fn order(first: &Run) -> (String, Vec<&'static [Knob]>) {
    const QUEUE: &[Knob] = &[Knob::Backlog, Knob::Somaxconn];
    const REST: [&[Knob]; 5] = [
        &[Knob::Workers],
        &[Knob::AccessLog],
        &[Knob::OpenFileCache],
        &[Knob::AcceptMutex],
        &[Knob::SynCookies],
    ];
    let overflows = first.overflows;
    match overflows > 0 {
        true => {
            let order = std::iter::once(QUEUE).chain(REST);
            (
                format!("the listen queue overflowed {overflows} times"),
                order.collect(),
            )
        }
        false => {
            let order = REST.into_iter().chain(std::iter::once(QUEUE));
            ("no queue overflowed: the CPUs".to_owned(), order.collect())
        }
    }
}

/// Levels to compare with the present ones.
struct Candidate {
    text: String,
    levels: Levels,
}

/// What can be tried of knobs. Several knobs move together where one alone is cut by the other.
fn candidates(now: Levels, knobs: &[Knob]) -> Vec<Candidate> {
    let [knob] = knobs else {
        let levels = knobs.iter().fold(now, |levels, knob| levels.with(*knob, 1));
        let texts: Vec<&str> = knobs.iter().map(|knob| knob.levels()[1]).collect();
        return vec![Candidate {
            text: texts.join(", "),
            levels,
        }];
    };
    let others = (0..knob.levels().len()).filter(|level| *level != now.level(*knob));
    let candidates = others.map(|level| Candidate {
        text: knob.levels()[level].to_owned(),
        levels: now.with(*knob, level),
    });
    candidates.collect()
}

/// Runs both by turns and judges by the ratios of the pairs.
fn compare(
    bench: &mut dyn Bench,
    now: Levels,
    candidate: &Candidate,
    effort: Effort,
) -> Result<Tried, String> {
    let mut pairs = Vec::new();
    for pair in 0..effort.pairs {
        // Who comes first changes, so that a drift of the machine favours nobody.
        let (old, new) = match pair % 2 {
            0 => {
                let old = bench.run(now)?;
                (old, bench.run(candidate.levels)?)
            }
            _ => {
                let new = bench.run(candidate.levels)?;
                (bench.run(now)?, new)
            }
        };
        pairs.push((old, new));
    }
    let ratios = pairs
        .iter()
        .map(|(old, new)| (new.connections_per_s.max(1.0) / old.connections_per_s.max(1.0)).ln());
    let ratios: Vec<f64> = ratios.collect();
    let bounds = interval(&ratios, mean, SEED).map(|bounds| Interval {
        low: bounds.low.exp(),
        high: bounds.high.exp(),
    });
    let rates: Vec<f64> = pairs.iter().map(|(_, new)| new.connections_per_s).collect();
    Ok(Tried {
        text: candidate.text.clone(),
        rate: mean(&rates).unwrap_or(0.0),
        ratio: mean(&ratios).unwrap_or(0.0).exp(),
        bounds,
        verdict: verdict(&pairs, bounds, effort),
        client_limited: pairs.iter().filter(|(_, new)| new.client_limited).count() * 2
            > pairs.len(),
    })
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
    let p99 = |values: Vec<f64>| mean(&values).unwrap_or(0.0);
    let old_p99 = p99(pairs.iter().map(|(old, _)| old.p99_us).collect());
    let new_p99 = p99(pairs.iter().map(|(_, new)| new.p99_us).collect());
    match bounds {
        _ if new_errors > ERROR_SHARE_MAX && new_errors > old_errors => Verdict::Errors,
        Some(bounds) if bounds.high < 1.0 => Verdict::Worse,
        Some(bounds) if bounds.low > 1.0 => {
            match old_p99 > 0.0 && new_p99 > old_p99 * effort.p99_factor_max {
                true => Verdict::Latency,
                false => Verdict::Kept,
            }
        }
        _ => Verdict::NoDifference,
    }
}

#[cfg(test)]
mod tests;
