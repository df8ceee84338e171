//! A climb's runs in a file, and a bench that gives them again in their order.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::knobs::{Knob, Levels};
use super::search::{Bench, Effort, Failure, Run};

/// The version of the format.
const SCHEMA: &str = "turnpike-tune-climb/3";

/// How a climb was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Climbing {
    /// The server's program.
    pub(crate) server: String,
    pub(crate) effort: Effort,
    /// Whether the whole grid was run too.
    pub(crate) has_grid: bool,
}

#[derive(Deserialize)]
struct File {
    climbing: Climbing,
    runs: Vec<(String, Run)>,
}

/// Recorded runs by their levels.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) climbing: Climbing,
    /// Every run in its order.
    pub(crate) all: Vec<(String, Run)>,
    runs: BTreeMap<String, VecDeque<Run>>,
}

/// The text of a record: a line for each run, with its figures in the order of [`Run`]'s fields,
/// which keeps a climb with a grid short.
pub(crate) fn text(climbing: &Climbing, runs: &[(String, Run)]) -> String {
    // Numbers and names only, which JSON always holds.
    let climbing = serde_json::to_string(climbing).unwrap_or_default();
    let lines: Vec<String> = runs.iter().map(|(key, run)| line(key, run)).collect();
    format!(
        "{{\"schema\":\"{SCHEMA}\",\"climbing\":{climbing},\"runs\":[\n{}\n]}}\n",
        lines.join(",\n")
    )
}

fn line(key: &str, run: &Run) -> String {
    let Run {
        connections_per_s,
        p99_us,
        errors,
        answered,
        client_limited,
        overflows,
        cpu_us,
        server_us,
        others_share,
        softirq_share,
        idle_share,
        cookies,
    } = run;
    // As JSON has it.
    let cookies = cookies.map_or_else(|| "null".to_owned(), |count| count.to_string());
    format!(
        "[\"{key}\",[{connections_per_s},{p99_us},{errors},{answered},{client_limited},\
         {overflows},{cpu_us},{server_us},{others_share},{softirq_share},{idle_share},\
         {cookies}]]"
    )
}

/// Reads runs.
///
/// # Errors
/// In words.
pub(crate) fn read(path: &Path) -> Result<Recorded, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    of_text(&text).map_err(|error| wrong(&error))
}

/// Runs of a record's text.
///
/// # Errors
/// In words.
pub(crate) fn of_text(text: &str) -> Result<Recorded, String> {
    let wrong = "not a record of `turnpike tune climb --record` of this version";
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value["schema"] != SCHEMA {
        return Err(wrong.to_owned());
    }
    let mut file: File =
        serde_json::from_value(value).map_err(|error| format!("{wrong}: {error}"))?;
    let count = Knob::ALL.len();
    for (key, _) in &mut file.runs {
        // Knobs that came later were at their start.
        *key = format!("{key:0<count$}");
    }
    let mut runs: BTreeMap<String, VecDeque<Run>> = BTreeMap::new();
    for (key, run) in &file.runs {
        runs.entry(key.clone()).or_default().push_back(run.clone());
    }
    Ok(Recorded {
        climbing: file.climbing,
        all: file.runs,
        runs,
    })
}

impl Bench for Recorded {
    /// Levels without runs left were not possible when it was recorded.
    fn run(&mut self, levels: Levels) -> Result<Run, Failure> {
        let runs = self.runs.get_mut(&levels.key());
        let run = runs.and_then(VecDeque::pop_front);
        let why = || format!("the record has no more runs of {}", levels.key());
        run.ok_or_else(|| Failure::Levels(why()))
    }
}
