//! Goals: figures of cases, or their ratios to other cases, beside the limits that a study sets for
//! them.

use serde::{Deserialize, Serialize};

use crate::matrix::{Case, plain};
use crate::record::Run;
use crate::statistics::{self, Answer};
use crate::study::Study;
use crate::study::model::{Expect, Goal};
use crate::summary::{self, CaseSummary, Header, MetricSummary};

/// A goal at one combination of what it leaves free.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GoalSummary {
    pub(crate) metric: String,
    /// The levels that both cases share.
    pub(crate) at: Vec<(String, String)>,
    /// The levels of the case that the goal is for, as text.
    pub(crate) of: String,
    pub(crate) against: String,
    pub(crate) of_figure: Option<MetricSummary>,
    pub(crate) against_figure: Option<MetricSummary>,
    /// The ratio of both.
    pub(crate) answer: Answer,
    pub(crate) at_most: Option<f64>,
    pub(crate) ratio_at_most: Option<f64>,
    pub(crate) verdict: GoalVerdict,
}

/// Whether a goal was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GoalVerdict {
    /// The figures are within their limits.
    Met,
    /// A figure is above its limit before it is rounded.
    Missed,
    /// A figure that has a limit is not there.
    NotMeasured,
    /// There is no limit.
    NoGoal,
}

impl GoalVerdict {
    /// In words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            GoalVerdict::Met => "met",
            GoalVerdict::Missed => "missed",
            GoalVerdict::NotMeasured => "not measured",
            GoalVerdict::NoGoal => "",
        }
    }
}

/// The goals of a study at every case that was run.
pub(crate) fn sum_up(
    study: &Study,
    cases: &[Case],
    summaries: &[CaseSummary],
    runs: &[Run],
    header: &Header,
) -> Vec<GoalSummary> {
    let mut goals: Vec<GoalSummary> = Vec::new();
    for goal in &study.goal {
        let (of, against) = (plain(&goal.of), plain(&goal.against));
        let meant = cases
            .iter()
            .filter(|case| case.is_at(&of) && case.is_within(&goal.at));
        for case in meant {
            // The other case differs by what `against` says, and by nothing else.
            let mut other = case.clone();
            for (name, level) in &mut other.at {
                if let Some(wanted) = against.get(name) {
                    level.clone_from(wanted);
                }
            }
            let pairs = summary::pairs(goal.metric.get_ref(), case, &other, runs, header.quick);
            let summed = one(goal, (case, &other), &pairs, summaries, header.seed);
            let is_same = |known: &&mut GoalSummary| {
                (&known.metric, &known.at, &known.of, &known.against)
                    == (&summed.metric, &summed.at, &summed.of, &summed.against)
            };
            match goals.iter_mut().find(is_same) {
                Some(known) => *known = summed,
                None => goals.push(summed),
            }
        }
    }
    // What is measured of a case stands together, in the order of the cases.
    goals.sort_by_key(|goal| {
        let is_it = |case: &Case| {
            goal.at
                .iter()
                .all(|(name, level)| case.level(name) == Some(level))
        };
        cases.iter().position(is_it)
    });
    goals
}

fn one(
    goal: &Goal,
    (case, other): (&Case, &Case),
    pairs: &[(f64, f64)],
    summaries: &[CaseSummary],
    seed: u64,
) -> GoalSummary {
    let figure = |case: &Case| {
        let summary = summaries.iter().find(|summary| summary.at == case.at)?;
        summary.metric(goal.metric.get_ref()).cloned()
    };
    let of_figure = figure(case);
    let answer = statistics::answer(pairs, Expect::Open, seed);
    let own = of_figure.as_ref().and_then(MetricSummary::median);
    let verdict = judge(&[(goal.at_most, own), (goal.ratio_at_most, answer.ratio)]);
    let (shared, differing): (Vec<_>, Vec<_>) = case
        .at
        .iter()
        .cloned()
        .partition(|(name, level)| other.level(name) == Some(level));
    let names = |at: &[(String, String)], case: &Case| {
        let levels = at.iter().filter_map(|(name, _)| case.level(name));
        levels.collect::<Vec<_>>().join(", ")
    };
    GoalSummary {
        metric: goal.metric.get_ref().clone(),
        of: names(&differing, case),
        against: names(&differing, other),
        at: shared,
        against_figure: figure(other),
        of_figure,
        answer,
        at_most: goal.at_most,
        ratio_at_most: goal.ratio_at_most,
        verdict,
    }
}

/// A limit with the figure that it is for.
type Limited = (Option<f64>, Option<f64>);

/// Whether all figures are within their limits.
fn judge(parts: &[Limited]) -> GoalVerdict {
    let limited = parts
        .iter()
        .filter_map(|(limit, figure)| Some(((*limit)?, *figure)));
    let mut verdict = GoalVerdict::NoGoal;
    for (limit, figure) in limited {
        verdict = match figure {
            None => return GoalVerdict::NotMeasured,
            Some(figure) if figure > limit => return GoalVerdict::Missed,
            Some(_) => GoalVerdict::Met,
        };
    }
    verdict
}

#[cfg(test)]
mod tests;
