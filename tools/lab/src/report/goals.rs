//! The tables of goals and of counted system calls, without any mark-up.

use super::words::{Table, figure, plain_ratio, ratio_text};
use crate::columns::aligned;
use crate::goals::GoalSummary;
use crate::metric::{self, Metric};
use crate::probe::is_waiting;
use crate::summary::Summary;

/// Calls that are rarer than this are left out of a list of names.
const CALLS_SHOWN_MIN: f64 = 0.01;

/// Every goal with its figures, its ratio and its limits.
pub(super) fn table(summary: &Summary) -> Table {
    let goals = &summary.goals;
    // The columns have the names of the first goal's two cases; others say theirs in their cells.
    let first = goals.first();
    let of_title = first.map_or("measured", |goal| goal.of.as_str());
    let against_title = first.map_or("beside", |goal| goal.against.as_str());
    let head = ["row", "figure", of_title, against_title];
    let head = head.into_iter().chain(["ratio", "goal", "verdict"]);
    let row = |goal: &GoalSummary| {
        let levels = goal.at.iter().map(|(_, level)| level.as_str());
        let row: Vec<&str> = levels.collect();
        let metric = metric::find(&goal.metric);
        let shown = |name: &str, title: &str, summary| {
            let text = metric.map_or_else(String::new, |metric| figure(metric, summary));
            if name == title {
                text
            } else {
                format!("{name}: {text}")
            }
        };
        vec![
            row.join(", "),
            metric.map_or("", |metric| metric.title).to_owned(),
            shown(&goal.of, of_title, goal.of_figure.as_ref()),
            shown(&goal.against, against_title, goal.against_figure.as_ref()),
            ratio_text(&goal.answer),
            metric.map_or_else(String::new, |metric| limits(goal, metric)),
            goal.verdict.text().to_owned(),
        ]
    };
    Table {
        head: head.map(ToOwned::to_owned).collect(),
        rows: goals.iter().map(row).collect(),
    }
}

fn limits(goal: &GoalSummary, metric: &Metric) -> String {
    let own = goal
        .at_most
        .map(|most| format!("at most {}", metric.show(most)));
    let ratio = goal
        .ratio_at_most
        .map(|most| format!("ratio at most {}", plain_ratio(most)));
    let limits: Vec<String> = own.into_iter().chain(ratio).collect();
    limits.join(", ")
}

/// The system calls of each case by name, the most frequent first; `None` where none were counted.
pub(super) fn calls(summary: &Summary) -> Option<Table> {
    let names = |calls: &std::collections::BTreeMap<String, f64>, waiting: bool| {
        let mut calls: Vec<(&String, &f64)> = calls
            .iter()
            .filter(|(name, each)| is_waiting(name) == waiting && **each >= CALLS_SHOWN_MIN)
            .collect();
        calls.sort_by(|left, right| right.1.total_cmp(left.1).then(left.0.cmp(right.0)));
        let text = |(name, each): &(&String, &f64)| {
            if (*each * 100.0).round() == 100.0 {
                (*name).clone()
            } else {
                format!("{name} {each:.2}")
            }
        };
        calls.iter().map(text).collect::<Vec<_>>().join("; ")
    };
    let counted = summary.cases.iter().filter(|case| !case.calls.is_empty());
    let rows: Vec<Vec<String>> = counted
        .map(|case| {
            let (working, waiting) = (names(&case.calls, false), names(&case.calls, true));
            vec![case.case().label(), working, waiting]
        })
        .collect();
    let head = ["case", "system calls of a request", "calls that wait"];
    (!rows.is_empty()).then(|| Table {
        head: head.map(ToOwned::to_owned).to_vec(),
        rows,
    })
}

/// The table of goals for a terminal; empty where a study has none.
pub(super) fn text(summary: &Summary) -> String {
    if summary.goals.is_empty() {
        return String::new();
    }
    let Table { head, rows } = table(summary);
    aligned(&head, &rows)
}
