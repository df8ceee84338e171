//! The record of a run: one line of raw.csv, written as soon as the run is over, so that no later
//! failure can lose it. The report uses only these lines.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use crate::error::LabError;
use crate::matrix::Case;
use crate::metric::{Figure, METRICS};
use crate::probe::CoreTimes;

/// The prefix of a reason in place of a figure.
const MISSING: &str = "not available: ";

/// One run of one case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) round: u32,
    /// The run's place in the round's order.
    pub(crate) position: u32,
    pub(crate) case: Case,
    /// Why it must not be used for a claim; empty if it may be.
    pub(crate) marks: Vec<String>,
    pub(crate) figures: BTreeMap<String, Figure>,
    /// Connections by worker during the warm-up, or why that is not known.
    pub(crate) workers: Result<Vec<u64>, String>,
    /// System calls by name, for each request.
    pub(crate) calls: BTreeMap<String, f64>,
    pub(crate) cores: Vec<CoreTimes>,
    /// Percent of requests to microseconds.
    pub(crate) distribution: Vec<(f64, f64)>,
}

/// The file's first line.
pub(crate) fn header(dimensions: &[String]) -> String {
    let mut cells = vec!["round".to_owned(), "position".to_owned()];
    cells.extend(dimensions.iter().cloned());
    cells.push("marks".to_owned());
    cells.extend(METRICS.iter().map(|metric| metric.name.to_owned()));
    cells.extend(["workers", "calls", "cores", "distribution"].map(str::to_owned));
    line(&cells)
}

/// Adds lines to the file.
///
/// # Errors
/// The file's; what was there before stays.
pub(crate) fn append(path: &Path, text: &str) -> Result<(), LabError> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_data()
    })
    .map_err(|error| LabError::file(path, &error))
}

impl Run {
    /// The record's line.
    pub(crate) fn line(&self) -> String {
        let mut cells = vec![self.round.to_string(), self.position.to_string()];
        cells.extend(self.case.at.iter().map(|(_, level)| level.clone()));
        cells.push(self.marks.join("; "));
        cells.extend(
            METRICS
                .iter()
                .map(|metric| match self.figures.get(metric.name) {
                    Some(Figure::Value(value)) => format!("{value}"),
                    Some(Figure::Missing(why)) => format!("{MISSING}{why}"),
                    None => format!("{MISSING}the driver does not report it"),
                }),
        );
        cells.push(match &self.workers {
            Ok(counts) => joined(counts.iter().map(ToString::to_string)),
            Err(why) => format!("{MISSING}{why}"),
        });
        // Names have spaces in them.
        let calls = self.calls.iter();
        let calls: Vec<String> = calls.map(|(name, each)| format!("{name}:{each}")).collect();
        cells.push(calls.join(";"));
        cells.push(joined(self.cores.iter().map(|core| {
            let CoreTimes {
                cpu,
                busy,
                idle,
                softirq,
                steal,
            } = core;
            format!("{cpu}:{busy:.4}:{idle:.4}:{softirq:.4}:{steal:.4}")
        })));
        let points = self.distribution.iter();
        cells.push(joined(
            points.map(|(percent, us)| format!("{percent}:{us}")),
        ));
        line(&cells)
    }

    /// A line's run; `None` where the line is none.
    fn parse(names: &[String], cells: &[String]) -> Option<Run> {
        let cell = |name: &str| {
            let at = names.iter().position(|known| known == name)?;
            cells.get(at).map(String::as_str)
        };
        let marks_at = names.iter().position(|name| name == "marks")?;
        let dimensions = names.get(2..marks_at)?.iter().zip(cells.get(2..marks_at)?);
        let at = dimensions
            .map(|(name, level)| (name.clone(), level.clone()))
            .collect();
        let mut figures = BTreeMap::new();
        for metric in METRICS {
            let figure = match cell(metric.name) {
                None => Figure::Missing("the run is older than this metric".to_owned()),
                Some(text) => match text.strip_prefix(MISSING) {
                    Some(why) => Figure::Missing(why.to_owned()),
                    None => Figure::Value(text.parse().ok()?),
                },
            };
            figures.insert(metric.name.to_owned(), figure);
        }
        let workers = match cell("workers")?.strip_prefix(MISSING) {
            Some(why) => Err(why.to_owned()),
            None => Ok(numbers(cell("workers")?)
                .into_iter()
                .map(|count| count as u64)
                .collect()),
        };
        let calls = cell("calls").unwrap_or_default().split(';');
        let calls = calls.filter_map(|call| {
            let (name, each) = call.rsplit_once(':')?;
            Some((name.to_owned(), each.parse().ok()?))
        });
        let cores = cell("cores")?.split(' ').filter_map(core).collect();
        let pair = |text: &str| {
            let (percent, us) = text.split_once(':')?;
            Some((percent.parse().ok()?, us.parse().ok()?))
        };
        let marks = cell("marks")?.split("; ").filter(|mark| !mark.is_empty());
        Some(Run {
            round: cell("round")?.parse().ok()?,
            position: cell("position")?.parse().ok()?,
            case: Case { at },
            marks: marks.map(str::to_owned).collect(),
            figures,
            workers,
            calls: calls.collect(),
            cores,
            distribution: cell("distribution")?.split(' ').filter_map(pair).collect(),
        })
    }
}

fn core(text: &str) -> Option<CoreTimes> {
    let fields: Vec<f64> = text
        .split(':')
        .filter_map(|field| field.parse().ok())
        .collect();
    let [cpu, busy, idle, softirq, steal] = fields[..] else {
        return None;
    };
    Some(CoreTimes {
        cpu: cpu as usize,
        busy,
        idle,
        softirq,
        steal,
    })
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(' ')
        .filter_map(|number| number.parse().ok())
        .collect()
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" ")
}

/// Reads all runs of a file; a last line that was not written to its end is left out.
///
/// # Errors
/// The file's, or a line that is no run, with its number.
pub(crate) fn read(path: &Path) -> Result<Vec<Run>, LabError> {
    let text = std::fs::read_to_string(path).map_err(|error| LabError::file(path, &error))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let mut lines = whole.lines();
    let names = cells(lines.next().unwrap_or_default());
    let mut runs = Vec::new();
    for (index, line) in lines.enumerate() {
        let run = Run::parse(&names, &cells(line)).ok_or_else(|| LabError::File {
            name: format!("{}:{}", path.display(), index + 2),
            text: "not a line of the lab's".to_owned(),
        })?;
        runs.push(run);
    }
    Ok(runs)
}

/// Removes an incomplete last line, so that the next one does not continue it.
///
/// # Errors
/// The file's error.
pub(crate) fn mend(path: &Path) -> Result<(), LabError> {
    let wrong = |error: std::io::Error| LabError::file(path, &error);
    let text = std::fs::read(path).map_err(wrong)?;
    let whole = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    if whole < text.len() {
        OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| file.set_len(whole as u64))
            .map_err(wrong)
    } else {
        Ok(())
    }
}

/// A line of RFC 4180; a line end within a cell becomes a space.
fn line(cells: &[String]) -> String {
    let quoted = |cell: &String| {
        let cell = cell.replace(['\n', '\r'], " ");
        if cell.contains([',', '"']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell
        }
    };
    let mut line = cells.iter().map(quoted).collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                push(&mut cells, '"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => push(&mut cells, character),
        }
    }
    cells
}

fn push(cells: &mut [String], character: char) {
    if let Some(cell) = cells.last_mut() {
        cell.push(character);
    }
}

#[cfg(test)]
mod tests;
