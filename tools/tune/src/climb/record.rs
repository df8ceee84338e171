//! A climb's runs in a file, and a bench that gives them again in their order.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::knobs::Levels;
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

#[derive(Serialize, Deserialize)]
struct File {
    schema: String,
    climbing: Climbing,
    runs: Vec<(String, Run)>,
}

/// Recorded runs by their levels.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) climbing: Climbing,
    runs: BTreeMap<String, VecDeque<Run>>,
}

/// The text of a record.
pub(crate) fn text(climbing: &Climbing, runs: &[(String, Run)]) -> String {
    let file = File {
        schema: SCHEMA.to_owned(),
        climbing: climbing.clone(),
        runs: runs.to_vec(),
    };
    // Numbers and names only, which JSON always holds.
    serde_json::to_string(&file).unwrap_or_default() + "\n"
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
    let wrong = "no record of `turnpike tune climb --record` of this version";
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value["schema"] != SCHEMA {
        return Err(wrong.to_owned());
    }
    let file: File = serde_json::from_value(value).map_err(|error| format!("{wrong}: {error}"))?;
    let mut runs: BTreeMap<String, VecDeque<Run>> = BTreeMap::new();
    for (key, run) in file.runs {
        runs.entry(key).or_default().push_back(run);
    }
    Ok(Recorded {
        climbing: file.climbing,
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
