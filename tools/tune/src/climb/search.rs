//! The search: what is tried, in pairs of runs. It knows runs only by a trait, so that a recorded
//! climb is searched as a real one is.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use turnpike_lab::bench::{FOREIGN_SHARE_MAX, Interval};

use super::cause::{self, Cause};
use super::judge::{Verdict, is_settled, judged};
use super::knobs::{Knob, Levels};

/// What one run gave. Records have these figures in this order, or by their names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
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
    /// CPU time of server and load generator for each connection, their start and end included, in
    /// microseconds; 0 in records without it.
    pub(crate) cpu_us: f64,
    /// The server's CPU time for each connection while the load generator ran; 0 in records without
    /// it.
    pub(crate) server_us: f64,
    /// The share of all CPU time that others took: other processes, and the hypervisor.
    pub(crate) others_share: f64,
    /// The largest share of a CPU's time in soft interrupts; 0 in records without it.
    pub(crate) softirq_share: f64,
    /// The share of all CPU time that was idle; 0 in records without it.
    pub(crate) idle_share: f64,
    /// SYN cookies that the kernel sent during the run; none in records without it.
    pub(crate) cookies: Option<u64>,
}

/// Where runs come from.
pub(crate) trait Bench {
    /// One run with these levels.
    ///
    /// # Errors
    /// Why there is no figure.
    fn run(&mut self, levels: Levels) -> Result<Run, Failure>;

    /// Why a step is not tried; `None` where it is.
    fn left_out(&self, _now: Levels, _levels: Levels) -> Option<String> {
        None
    }

    /// Hears the verdict on a step, and which levels stay.
    fn judged(&mut self, _verdict: Verdict, _now: Levels) {}

    /// Hears that a step is tried, from 1, and how many there are.
    fn begins(&mut self, _step: usize, _steps: usize, _text: &str) {}

    /// Hears how many pairs of runs a step has, of how many at most, and the mean ratio of its
    /// rates to those without it.
    fn paired(&mut self, _pairs: usize, _pairs_max: usize, _ratio: Option<f64>) {}
}

/// Why a run gave no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// These levels are not possible here; a climb goes on without them.
    Levels(String),
    /// These levels are so much worse that they are not measured further; a climb goes on.
    Worse(String),
    /// No more steps are tried, and what was found stays.
    Over(String),
    /// The climb has to end, and everything is put back.
    Climb(String),
}

impl Failure {
    /// In words.
    pub(crate) fn text(self) -> String {
        match self {
            Failure::Levels(text)
            | Failure::Worse(text)
            | Failure::Over(text)
            | Failure::Climb(text) => text,
        }
    }
}

/// How much is measured, and what is too bad to stay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// Pairs of runs before each look at a step.
    pub(crate) pairs: usize,
    /// Pairs of runs without which no interval decides: who takes turns with another load of the
    /// machine sees the same difference a few times. 0 in records of older rules.
    #[serde(default)]
    pub(crate) pairs_min: usize,
    /// Pairs of runs after which a step is decided, whatever is seen.
    pub(crate) pairs_max: usize,
    /// Pairs of runs after which a step is given up if its mean shows no gain: to stop without a
    /// gain keeps no step by chance, and the time goes to steps that may save a little.
    #[serde(default = "older_pairs_without_gain_max")]
    pub(crate) pairs_without_gain_max: usize,
    /// How much wider an interval has to exclude 1 for a step to be decided before its last look.
    #[serde(default = "older_early_factor")]
    pub(crate) early_factor: f64,
    /// A step whose 99th percentile of latency grows by this factor is undone.
    pub(crate) p99_factor_max: f64,
    /// Whether all knobs are tried, or the seven with a bad start.
    #[serde(default)]
    pub(crate) has_all_knobs: bool,
}

/// What records without the figure were decided by.
fn older_pairs_without_gain_max() -> usize {
    16
}

/// What records without the figure were decided by: right for many pairs, too small for few.
fn older_early_factor() -> f64 {
    3.29 / 1.96
}

/// A step that was tried.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub(crate) text: String,
    /// The knobs that it moved.
    pub(crate) knobs: Vec<Knob>,
    /// Pairs of runs that it was judged by.
    pub(crate) pairs: usize,
    /// Why it was not measured; empty where it was.
    pub(crate) obstacle: String,
    /// What bound when the step was chosen.
    pub(crate) cause: Cause,
    /// The last pair of runs: the old levels, and the new ones.
    pub(crate) last: Option<(Run, Run)>,
    /// Connections per second with the step, the mean of its runs.
    pub(crate) rate: f64,
    pub(crate) ratio: f64,
    pub(crate) bounds: Option<Interval>,
    /// Connections for each second of the server's CPU time, new to old.
    pub(crate) cpu: Option<Ratio>,
    pub(crate) verdict: Verdict,
    /// The load generator was the limit in most runs: the server can do at least this.
    pub(crate) client_limited: bool,
}

/// The mean ratio of pairs, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) mean: f64,
    pub(crate) bounds: Interval,
}

/// A climb that is over.
#[derive(Clone, Debug)]
pub(crate) struct Climbed {
    /// What bound at the start.
    pub(crate) cause: Cause,
    pub(crate) start_rate: f64,
    pub(crate) tried: Vec<Tried>,
    pub(crate) levels: Levels,
    /// Why it ended before all steps were tried; `None` where they were.
    pub(crate) over: Option<String>,
}

impl Climbed {
    /// The knobs that were tried.
    pub(crate) fn knobs(&self) -> BTreeSet<Knob> {
        let knobs = self.tried.iter().flat_map(|tried| &tried.knobs);
        knobs.copied().collect()
    }

    /// The knobs that are no longer at their start.
    pub(crate) fn found(&self) -> Vec<Knob> {
        let moved = |knob: &Knob| self.levels.level(*knob) != 0;
        Knob::ALL.into_iter().filter(moved).collect()
    }
}

/// How often a disturbed pair is run again, for each pair of the last look. A machine that is
/// always busy ends its climb with disturbed pairs, and with wider intervals.
const REPEATS: usize = 1;

/// Climbs from these levels.
///
/// # Errors
/// Of the bench.
pub(crate) fn climb(
    bench: &mut dyn Bench,
    start: Levels,
    effort: Effort,
    mut report: impl FnMut(&Tried),
) -> Result<Climbed, Failure> {
    let first = bench.run(start)?;
    let mut binds = Cause::of(&first);
    let start_rate = first.connections_per_s;
    let mut present = first;
    let mut left = cause::groups(effort.has_all_knobs);
    let steps = left
        .iter()
        .map(|knobs| candidates(start, knobs).len())
        .sum();
    let mut climbed = Climbed {
        cause: binds,
        start_rate,
        tried: Vec::new(),
        levels: start,
        over: None,
    };
    // Cause before cure: what binds decides what is tried next.
    while let Some(knobs) = cause::next(&mut left, binds) {
        let chosen_for = binds;
        for candidate in candidates(climbed.levels, knobs) {
            bench.begins(climbed.tried.len() + 1, steps, &candidate.text);
            let left_out = bench.left_out(climbed.levels, candidate.levels);
            let left_out =
                left_out.or_else(|| cause::without_effect(knobs, &present).map(ToOwned::to_owned));
            let result = match left_out {
                Some(why) => Ok(unmeasured(&candidate, Verdict::WithoutEffect, why)),
                None => compare(bench, climbed.levels, &candidate, effort),
            };
            let mut tried = match result {
                Err(Failure::Over(why)) => {
                    let undecided = "it was not decided when the climb ended".to_owned();
                    let tried = unmeasured(&candidate, Verdict::NoDifference, undecided);
                    // It is no verdict: the bench goes on counting the step's runs as they were.
                    climbed.tried.push(tried);
                    climbed.over = Some(why);
                    return Ok(climbed);
                }
                result => result?,
            };
            tried.cause = chosen_for;
            let is_kept = tried.verdict.is_kept();
            if is_kept {
                climbed.levels = candidate.levels;
            }
            if let Some((old, new)) = &tried.last {
                present = if is_kept { new } else { old }.clone();
                binds = Cause::of(&present);
            }
            bench.judged(tried.verdict, climbed.levels);
            report(&tried);
            climbed.tried.push(tried);
        }
    }
    Ok(climbed)
}

/// Levels to compare with the present ones.
pub(super) struct Candidate {
    pub(super) text: String,
    pub(super) knobs: Vec<Knob>,
    pub(super) levels: Levels,
}

/// What can be tried of knobs. Several knobs move together where one alone is cut by the other.
fn candidates(now: Levels, knobs: &[Knob]) -> Vec<Candidate> {
    let [knob] = knobs else {
        let levels = knobs.iter().fold(now, |levels, knob| levels.with(*knob, 1));
        let texts: Vec<&str> = knobs.iter().map(|knob| knob.levels()[1]).collect();
        return vec![Candidate {
            text: texts.join(", "),
            knobs: knobs.to_vec(),
            levels,
        }];
    };
    let others = (0..knob.levels().len()).filter(|level| *level != now.level(*knob));
    let candidates = others.map(|level| Candidate {
        text: knob.levels()[level].to_owned(),
        knobs: knobs.to_vec(),
        levels: now.with(*knob, level),
    });
    candidates.collect()
}

/// Runs both by turns and judges by the ratios of the pairs.
pub(super) fn compare(
    bench: &mut dyn Bench,
    now: Levels,
    candidate: &Candidate,
    effort: Effort,
) -> Result<Tried, Failure> {
    let mut pairs = Vec::new();
    let mut repeats_left = effort.pairs_max * REPEATS;
    loop {
        let goal = pairs.len() + effort.pairs.max(1);
        while pairs.len() < goal {
            bench.paired(pairs.len(), effort.pairs_max, ratio(&pairs));
            let both = match pair(bench, now, candidate.levels, pairs.len())? {
                Ok(both) => both,
                Err((verdict, why)) => return Ok(unmeasured(candidate, verdict, why)),
            };
            if is_disturbed(&both) && repeats_left > 0 {
                repeats_left -= 1;
                continue;
            }
            pairs.push(both);
        }
        let tried = judged(&pairs, candidate, effort);
        if pairs.len() >= effort.pairs_max || is_settled(&tried, effort) {
            return Ok(tried);
        }
    }
}

/// The mean of the new rates by the old ones.
fn ratio(pairs: &[(Run, Run)]) -> Option<f64> {
    let ratios = pairs.iter();
    let ratios = ratios.map(|(old, new)| new.connections_per_s / old.connections_per_s.max(1.0));
    (!pairs.is_empty()).then(|| ratios.sum::<f64>() / pairs.len() as f64)
}

/// Whether others used so much of the machine during a pair that its ratio is theirs.
fn is_disturbed((old, new): &(Run, Run)) -> bool {
    old.others_share.max(new.others_share) > FOREIGN_SHARE_MAX
}

/// A verdict without figures, and why.
type Unmeasured = (Verdict, String);

/// One run of each; or why the new one cannot stay, with the verdict.
fn pair(
    bench: &mut dyn Bench,
    now: Levels,
    levels: Levels,
    index: usize,
) -> Result<Result<(Run, Run), Unmeasured>, Failure> {
    let mut runs = [None, None];
    // Who comes first changes, so that a drift of the machine favours nobody.
    for turn in [index % 2, 1 - index % 2] {
        runs[turn] = Some(match turn {
            0 => old(bench, now)?,
            _ => match bench.run(levels) {
                Err(Failure::Levels(why)) => return Ok(Err((Verdict::Impossible, why))),
                Err(Failure::Worse(why)) => return Ok(Err((Verdict::Worse, why))),
                result => result?,
            },
        });
    }
    let [old, new] = runs.map(Option::unwrap_or_default);
    Ok(Ok((old, new)))
}

/// A run of levels that were possible before: if they no longer are, the climb cannot go on.
fn old(bench: &mut dyn Bench, now: Levels) -> Result<Run, Failure> {
    bench.run(now).map_err(|failure| match failure {
        Failure::Over(why) => Failure::Over(why),
        failure => Failure::Climb(failure.text()),
    })
}

/// A step without a pair of runs.
fn unmeasured(candidate: &Candidate, verdict: Verdict, why: String) -> Tried {
    Tried {
        text: candidate.text.clone(),
        knobs: candidate.knobs.clone(),
        pairs: 0,
        obstacle: why,
        cause: Cause::Cpu,
        last: None,
        rate: 0.0,
        ratio: 1.0,
        bounds: None,
        cpu: None,
        verdict,
        client_limited: false,
    }
}

#[cfg(test)]
mod tests;
