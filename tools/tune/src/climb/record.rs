//! A climb's runs in a file, and a bench that gives them again in their order.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::knobs::Levels;
use super::search::{Bench, Run};

/// The version of the format.
const SCHEMA: &str = "turnpike-tune-climb/1";

#[derive(Serialize, Deserialize)]
struct File {
    schema: String,
    runs: Vec<(String, Run)>,
}

/// Runs by their levels.
#[derive(Debug)]
pub(crate) struct Recorded(BTreeMap<String, VecDeque<Run>>);

/// Writes runs.
///
/// # Errors
/// In words.
pub(crate) fn write(path: &Path, runs: &[(String, Run)]) -> Result<(), String> {
    let file = File {
        schema: SCHEMA.to_owned(),
        runs: runs.to_vec(),
    };
    let text = serde_json::to_string(&file).map_err(|error| error.to_string())?;
    std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
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
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if file.schema != SCHEMA {
        return Err("no record of `turnpike tune climb --record`".to_owned());
    }
    let mut runs: BTreeMap<String, VecDeque<Run>> = BTreeMap::new();
    for (key, run) in file.runs {
        runs.entry(key).or_default().push_back(run);
    }
    Ok(Recorded(runs))
}

impl Bench for Recorded {
    fn run(&mut self, levels: Levels) -> Result<Run, String> {
        let runs = self.0.get_mut(&levels.key());
        let run = runs.and_then(VecDeque::pop_front);
        run.ok_or_else(|| format!("the record has no more runs of {}", levels.key()))
    }
}
