//! The evaluation of runs: medians with intervals, claims, laws. It is a pure function: the same
//! runs and study always give exactly the same summary.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::environment::Section;
use crate::goals::{self, GoalSummary};
use crate::matrix::{CONTENDER, Case, Dimension, plain};
use crate::metric::{Figure, METRICS};
use crate::probe::CoreTimes;
use crate::record::Run;
use crate::statistics::{self, Answer, Interval, Law};
use crate::study::Study;
use crate::study::model::{Claim, Expect, PlotKind};

/// The version of summary.json.
pub(crate) const SCHEMA: &str = "turnpike-lab/1";

/// The data before the first run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) schema: String,
    pub(crate) study: String,
    pub(crate) study_file: String,
    pub(crate) study_text: String,
    pub(crate) date: String,
    pub(crate) machine: String,
    pub(crate) quick: bool,
    pub(crate) repetitions: u32,
    pub(crate) seconds: f64,
    pub(crate) warmup_s: f64,
    pub(crate) seed: u64,
    pub(crate) only: BTreeMap<String, Vec<String>>,
    pub(crate) topology: String,
    pub(crate) cpus: usize,
    /// Whether driver and server have CPUs in common in at least one case.
    pub(crate) shared_cpus: bool,
    /// Differences from the study: contenders that were left out, and others.
    pub(crate) notes: Vec<String>,
    pub(crate) environment: Vec<Section>,
    pub(crate) contenders: Vec<ContenderRecord>,
}

/// A contender as it was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContenderRecord {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) command: String,
    pub(crate) driver: String,
    /// File name and text.
    pub(crate) configurations: Vec<(String, String)>,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) header: Header,
    /// Runs that are there, and that were planned.
    pub(crate) runs: usize,
    pub(crate) planned: usize,
    pub(crate) cases: Vec<CaseSummary>,
    #[serde(default)]
    pub(crate) goals: Vec<GoalSummary>,
    pub(crate) claims: Vec<ClaimSummary>,
    pub(crate) laws: Vec<LawSummary>,
}

/// A case's runs in numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CaseSummary {
    pub(crate) at: Vec<(String, String)>,
    pub(crate) runs: usize,
    /// Runs without a mark.
    pub(crate) used: usize,
    /// Each kind of mark with the number of runs that have it.
    pub(crate) marks: BTreeMap<String, usize>,
    pub(crate) metrics: BTreeMap<String, MetricSummary>,
    /// Shares of connections by worker, the busiest first.
    pub(crate) workers: Result<Vec<f64>, String>,
    /// System calls by name, for each request.
    #[serde(default)]
    pub(crate) calls: BTreeMap<String, f64>,
    pub(crate) cores: Vec<CoreShares>,
    pub(crate) distribution: Vec<(f64, f64)>,
}

/// A CPU's mean shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct CoreShares {
    pub(crate) cpu: usize,
    pub(crate) busy: f64,
    pub(crate) idle: f64,
    pub(crate) softirq: f64,
    pub(crate) steal: f64,
}

/// A metric of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MetricSummary {
    /// Of the runs that may be used; of all where none may.
    Known {
        median: f64,
        interval: Option<Interval>,
        values: Vec<f64>,
    },
    /// Why there is no figure.
    NotAvailable(String),
}

impl MetricSummary {
    /// The median, where there is one.
    pub(crate) fn median(&self) -> Option<f64> {
        match self {
            MetricSummary::Known { median, .. } => Some(*median),
            MetricSummary::NotAvailable(_) => None,
        }
    }
}

/// A claim at one combination of what it leaves free.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClaimSummary {
    pub(crate) text: String,
    pub(crate) metric: String,
    /// What the claim leaves free.
    pub(crate) at: Vec<(String, String)>,
    pub(crate) of: String,
    pub(crate) against: String,
    pub(crate) published: Option<f64>,
    pub(crate) expect: Expect,
    pub(crate) answer: Answer,
}

/// A fitted law of one curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LawSummary {
    pub(crate) along: String,
    pub(crate) metric: String,
    /// The curve's fixed levels.
    pub(crate) at: Vec<(String, String)>,
    /// N and the median there.
    pub(crate) points: Vec<(f64, f64)>,
    /// The law and the intervals of contention and coherence, or why there is none.
    pub(crate) law: Result<FittedLaw, String>,
}

/// A law with the intervals that the rounds give.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FittedLaw {
    pub(crate) law: Law,
    pub(crate) sigma: Option<Interval>,
    pub(crate) kappa: Option<Interval>,
}

impl CaseSummary {
    /// The case.
    pub(crate) fn case(&self) -> Case {
        Case {
            at: self.at.clone(),
        }
    }

    /// A metric's summary.
    pub(crate) fn metric(&self, name: &str) -> Option<&MetricSummary> {
        self.metrics.get(name)
    }
}

/// Sums up.
pub(crate) fn sum_up(
    header: Header,
    study: &Study,
    dimensions: &[Dimension],
    cases: &[Case],
    runs: &[Run],
) -> Summary {
    let seed = header.seed;
    let laws = study
        .plot
        .iter()
        .filter(|plot| plot.kind == PlotKind::Scaling)
        .flat_map(|plot| {
            let along = plot.along.as_ref().map(|along| along.get_ref().clone());
            let metric = plot.metric.as_ref().map(|metric| metric.get_ref().clone());
            let at = plain(&plot.at);
            let of_plot: Vec<Case> = cases
                .iter()
                .filter(|case| case.is_at(&at))
                .cloned()
                .collect();
            laws(
                &along.unwrap_or_default(),
                &metric.unwrap_or_default(),
                &of_plot,
                runs,
                seed,
            )
        });
    let summaries = cases.iter().map(|case| sum_case(case, runs, seed));
    let summaries: Vec<CaseSummary> = summaries.filter(|case| case.runs > 0).collect();
    Summary {
        runs: runs.len(),
        planned: cases.len() * header.repetitions as usize,
        goals: goals::sum_up(study, cases, &summaries, runs, &header),
        cases: summaries,
        claims: study
            .claim
            .iter()
            .flat_map(|claim| claims(claim, dimensions, cases, runs, &header))
            .collect(),
        laws: laws.collect(),
        header,
    }
}

fn sum_case(case: &Case, runs: &[Run], seed: u64) -> CaseSummary {
    let all: Vec<&Run> = runs.iter().filter(|run| &run.case == case).collect();
    let clean: Vec<&Run> = all
        .iter()
        .copied()
        .filter(|run| run.marks.is_empty())
        .collect();
    let used = if clean.is_empty() { &all } else { &clean };
    let mut marks: BTreeMap<String, usize> = BTreeMap::new();
    for mark in all.iter().flat_map(|run| &run.marks) {
        let kind = mark.split(':').next().unwrap_or(mark).to_owned();
        *marks.entry(kind).or_default() += 1;
    }
    let metrics = METRICS
        .iter()
        .map(|metric| (metric.name.to_owned(), sum_metric(metric.name, used, seed)));
    CaseSummary {
        at: case.at.clone(),
        runs: all.len(),
        used: clean.len(),
        marks,
        metrics: metrics.collect(),
        workers: workers(used),
        calls: calls(used),
        cores: cores(used),
        distribution: distribution(used),
    }
}

fn sum_metric(name: &str, runs: &[&Run], seed: u64) -> MetricSummary {
    let figures = runs.iter().filter_map(|run| run.figures.get(name));
    let values: Vec<f64> = figures.clone().filter_map(Figure::value).collect();
    match statistics::median(&values) {
        Some(median) => MetricSummary::Known {
            median,
            interval: statistics::interval(&values, statistics::median, seed),
            values,
        },
        None => {
            let why = figures.into_iter().find_map(|figure| match figure {
                Figure::Missing(why) => Some(why.clone()),
                Figure::Value(_) => None,
            });
            MetricSummary::NotAvailable(why.unwrap_or_else(|| "no run has it".to_owned()))
        }
    }
}

/// The median of each system call.
fn calls(runs: &[&Run]) -> BTreeMap<String, f64> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, each) in runs.iter().flat_map(|run| &run.calls) {
        values.entry(name).or_default().push(*each);
    }
    let medians = values
        .into_iter()
        .filter_map(|(name, values)| Some((name.to_owned(), statistics::median(&values)?)));
    medians.collect()
}

/// The mean share of the busiest worker, of the second, and so on.
fn workers(runs: &[&Run]) -> Result<Vec<f64>, String> {
    let known: Vec<&Vec<u64>> = runs
        .iter()
        .filter_map(|run| run.workers.as_ref().ok())
        .collect();
    let Some(most) = known.iter().map(|counts| counts.len()).max() else {
        let why = runs
            .iter()
            .find_map(|run| run.workers.as_ref().err().cloned());
        return Err(why.unwrap_or_else(|| "no run has it".to_owned()));
    };
    let mut shares = vec![0.0; most];
    for counts in &known {
        let sum: u64 = counts.iter().sum();
        for (share, count) in shares.iter_mut().zip(counts.iter()) {
            *share += *count as f64 / sum.max(1) as f64 / known.len() as f64;
        }
    }
    Ok(shares)
}

fn cores(runs: &[&Run]) -> Vec<CoreShares> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let mean = |at: usize, field: fn(&CoreTimes) -> f64| {
        let values: Vec<f64> = runs
            .iter()
            .filter_map(|run| run.cores.get(at).map(field))
            .collect();
        statistics::mean(&values).unwrap_or_default()
    };
    let shares = |(at, core): (usize, &CoreTimes)| CoreShares {
        cpu: core.cpu,
        busy: mean(at, |core| core.busy),
        idle: mean(at, |core| core.idle),
        softirq: mean(at, |core| core.softirq),
        steal: mean(at, |core| core.steal),
    };
    first.cores.iter().enumerate().map(shares).collect()
}

/// The median over the runs at each share of requests.
fn distribution(runs: &[&Run]) -> Vec<(f64, f64)> {
    let mut points: BTreeMap<u64, (f64, Vec<f64>)> = BTreeMap::new();
    for (percent, us) in runs.iter().flat_map(|run| &run.distribution) {
        let entry = points.entry(percent.to_bits());
        entry.or_insert((*percent, Vec::new())).1.push(*us);
    }
    points
        .into_values()
        .filter_map(|(percent, values)| Some((percent, statistics::median(&values)?)))
        .collect()
}

/// A claim at every combination of what it leaves free.
fn claims(
    claim: &Claim,
    dimensions: &[Dimension],
    cases: &[Case],
    runs: &[Run],
    header: &Header,
) -> Vec<ClaimSummary> {
    let at = plain(&claim.at);
    let (of, against) = (plain(&claim.of), plain(&claim.against));
    // A quick run shows what there is, and says that it proves nothing.
    let with_marked = header.quick;
    let compared: Vec<&String> = of.keys().chain(against.keys()).collect();
    let mut claims: Vec<ClaimSummary> = Vec::new();
    let first = cases
        .iter()
        .filter(|case| case.is_at(&of) && case.is_at(&at));
    for case in first {
        let free: Vec<(String, String)> = case
            .at
            .iter()
            .filter(|(name, _)| !compared.contains(&name) && !at.contains_key(name))
            .cloned()
            .collect();
        let is_other = |other: &&Case| {
            other.is_at(&against)
                && dimensions
                    .iter()
                    .filter(|dimension| !compared.contains(&&dimension.name))
                    .all(|dimension| other.level(&dimension.name) == case.level(&dimension.name))
        };
        let Some(other) = cases.iter().find(is_other) else {
            continue;
        };
        let pairs = pairs(claim.metric.get_ref(), case, other, runs, with_marked);
        claims.push(ClaimSummary {
            text: claim.text.clone(),
            metric: claim.metric.get_ref().clone(),
            at: free,
            of: case.label(),
            against: other.label(),
            published: claim.published,
            expect: claim.expect,
            answer: statistics::answer(&pairs, claim.expect, header.seed),
        });
    }
    claims
}

/// The values of both cases in every round in which both may be used.
pub(crate) fn pairs(
    metric: &str,
    of: &Case,
    against: &Case,
    runs: &[Run],
    with_marked: bool,
) -> Vec<(f64, f64)> {
    let value = |case: &Case, round: u32| {
        let run = runs
            .iter()
            .find(|run| &run.case == case && run.round == round)?;
        if with_marked || run.marks.is_empty() {
            run.figures.get(metric)?.value()
        } else {
            None
        }
    };
    let last = runs.iter().map(|run| run.round).max().unwrap_or_default();
    (0..=last)
        .filter_map(|round| Some((value(of, round)?, value(against, round)?)))
        .collect()
}

/// Dimensions with their levels.
type Levels = Vec<(String, String)>;

fn laws(along: &str, metric: &str, cases: &[Case], runs: &[Run], seed: u64) -> Vec<LawSummary> {
    let mut curves: Vec<(Levels, Vec<&Case>)> = Vec::new();
    for case in cases {
        let fixed: Vec<(String, String)> = case
            .at
            .iter()
            .filter(|(name, _)| name != along)
            .cloned()
            .collect();
        match curves.iter_mut().find(|(known, _)| *known == fixed) {
            Some((_, members)) => members.push(case),
            None => curves.push((fixed, vec![case])),
        }
    }
    curves
        .into_iter()
        .map(|(at, members)| law(along, metric, at, &members, runs, seed))
        .collect()
}

fn law(
    along: &str,
    metric: &str,
    at: Vec<(String, String)>,
    members: &[&Case],
    runs: &[Run],
    seed: u64,
) -> LawSummary {
    let n = |case: &Case| {
        case.level(along)
            .and_then(|level| level.parse::<f64>().ok())
    };
    let points: Vec<(f64, f64)> = members
        .iter()
        .filter_map(|case| {
            let summary = sum_case(case, runs, seed);
            Some((n(case)?, summary.metric(metric)?.median()?))
        })
        .collect();
    let mut sigmas = Vec::new();
    let mut kappas = Vec::new();
    let last = runs.iter().map(|run| run.round).max().unwrap_or_default();
    for round in 0..=last {
        let of_round: Vec<(f64, f64)> = members
            .iter()
            .filter_map(|case| {
                let run = runs
                    .iter()
                    .find(|run| &run.case == *case && run.round == round && run.marks.is_empty())?;
                Some((n(case)?, run.figures.get(metric)?.value()?))
            })
            .collect();
        if of_round.len() == members.len()
            && let Ok(law) = statistics::fit(&of_round)
        {
            sigmas.push(law.sigma);
            kappas.push(law.kappa);
        }
    }
    LawSummary {
        along: along.to_owned(),
        metric: metric.to_owned(),
        at,
        law: statistics::fit(&points).map(|law| FittedLaw {
            law,
            sigma: statistics::interval(&sigmas, statistics::median, seed),
            kappa: statistics::interval(&kappas, statistics::median, seed),
        }),
        points,
    }
}

/// The dimensions that are not the contender, with more than one level among these cases.
pub(crate) fn varied(dimensions: &[Dimension], cases: &[CaseSummary]) -> Vec<String> {
    let is_varied = |name: &str| {
        let mut levels: Vec<String> = cases
            .iter()
            .filter_map(|case| case.case().level(name).map(str::to_owned))
            .collect();
        levels.sort();
        levels.dedup();
        levels.len() > 1
    };
    dimensions
        .iter()
        .map(|dimension| dimension.name.clone())
        .filter(|name| name != CONTENDER && is_varied(name))
        .collect()
}

#[cfg(test)]
mod tests;
