//! `lab compare`: two runs of one study, case by case. They were not interleaved, so the ratio is
//! of medians, with a wider interval than a paired one.

use std::path::Path;

use crate::columns::aligned;
use crate::error::LabError;
use crate::matrix::Case;
use crate::metric::{self, Better, Metric};
use crate::record::Run;
use crate::report;
use crate::session;
use crate::statistics;

/// What is compared.
const METRICS: &[&str] = &[
    "requests_per_s",
    "latency_p50_us",
    "latency_p99_us",
    "server_cpu_us",
];

/// Prints the table, or writes it as a page.
///
/// # Errors
/// A folder is no run, or the runs have nothing in common.
pub(crate) fn compare(a: &Path, b: &Path, page: Option<&Path>) -> Result<(), LabError> {
    let (of, of_runs) = session::read_results(a)?;
    let (against, against_runs) = session::read_results(b)?;
    if of.study != against.study {
        let text = format!("{} and {} are different studies", of.study, against.study);
        return Err(LabError::step("compare", text));
    }
    let lines = lines(&of_runs, &against_runs, of.seed);
    if lines.is_empty() {
        return Err(LabError::step("compare", "the runs have no case in common"));
    }
    let mut notes = vec![format!("A: {}", a.display()), format!("B: {}", b.display())];
    if of.machine != against.machine {
        let (one, other) = (&of.machine, &against.machine);
        notes.push(format!("Different machines: {one} and {other}."));
    }
    let few = lines.iter().filter(|line| line[4].is_empty()).count();
    if few > 0 {
        notes.push(format!(
            "{few} of {} rows have no ratio: each run needs three usable repetitions of a case.",
            lines.len()
        ));
    }
    match page {
        None => {
            let table = aligned(&HEAD.map(str::to_owned), &lines);
            print!("{}\n\n{table}", notes.join("\n"));
        }
        Some(path) => {
            let text = report::comparison(&of.study, &notes, &HEAD, &lines)?;
            std::fs::write(path, text).map_err(|error| LabError::step("compare", error))?;
            println!("{}", path.display());
        }
    }
    Ok(())
}

/// The columns.
const HEAD: [&str; 6] = ["case", "metric", "A", "B", "A/B", ""];

/// One row of the table.
type Line = [String; 6];

fn lines(a: &[Run], b: &[Run], seed: u64) -> Vec<Line> {
    let mut cases: Vec<&Case> = Vec::new();
    for run in a {
        if !cases.contains(&&run.case) && b.iter().any(|other| other.case == run.case) {
            cases.push(&run.case);
        }
    }
    let mut lines = Vec::new();
    for case in cases {
        for metric in METRICS.iter().filter_map(|name| metric::find(name)) {
            let (of, against) = (values(a, case, metric.name), values(b, case, metric.name));
            let (Some(first), Some(second)) =
                (statistics::median(&of), statistics::median(&against))
            else {
                continue;
            };
            let ratio = statistics::unpaired(&of, &against, seed);
            let (shown, answer) = match ratio {
                None => (String::new(), ""),
                Some((ratio, bounds)) => (
                    format!("{ratio:.3} ({:.3} to {:.3})", bounds.low, bounds.high),
                    answer(metric, bounds.low > 1.0, bounds.high < 1.0),
                ),
            };
            lines.push([
                case.label(),
                metric.title.to_owned(),
                metric.show(first),
                metric.show(second),
                shown,
                answer.to_owned(),
            ]);
        }
    }
    lines
}

fn answer(metric: &Metric, is_above: bool, is_below: bool) -> &'static str {
    match (metric.better, is_above, is_below) {
        (_, false, false) => "no difference shown",
        (Better::Higher, true, _) | (Better::Lower, false, true) => "A is better",
        (Better::Higher, false, true) | (Better::Lower, true, _) => "B is better",
        (Better::Neither, true, _) => "A is higher",
        (Better::Neither, false, true) => "A is lower",
    }
}

/// A case's values that may be used.
fn values(runs: &[Run], case: &Case, metric: &str) -> Vec<f64> {
    runs.iter()
        .filter(|run| &run.case == case && run.marks.is_empty())
        .filter_map(|run| run.figures.get(metric)?.value())
        .collect()
}
