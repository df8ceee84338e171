//! The tables of bench/README.md: each is the table of goals of the last record of its study.

use std::path::Path;

use crate::outcome::Outcome;
use crate::workspace;

/// Writes the table of a record between the markers.
///
/// # Errors
/// The record has no table, or the file no markers.
pub(super) fn write(record: &Path, markers: (&str, &str)) -> Outcome {
    let wrong = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let own = record.join("README.md");
    let text = std::fs::read_to_string(&own).map_err(|error| wrong(&own, error))?;
    let goals = section(&text, "## Goals")
        .ok_or_else(|| format!("{} has no table of goals", own.display()))?;
    let name = record.file_name().unwrap_or_default().to_string_lossy();
    let table = format!("{goals}\n\nRecord: [{name}](results/{name}/README.md).\n");
    let path = workspace::root().join("bench/README.md");
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&path, error))?;
    let (begin, end) = markers;
    let text = between_markers(&text, &table, markers)
        .ok_or_else(|| format!("bench/README.md has no {begin} and {end}"))?;
    std::fs::write(&path, text).map_err(|error| wrong(&path, error))?;
    println!("bench: the table of bench/README.md is that of {name}");
    Ok(())
}

/// The text between a heading and the next one of its kind.
fn section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let start = text.find(&format!("{heading}\n"))? + heading.len();
    let rest = &text[start..];
    let end = rest.find("\n## ").unwrap_or(rest.len());
    Some(rest[..end].trim())
}

/// The text with `table` between the markers; `None` if they are missing or out of order.
fn between_markers(text: &str, table: &str, (begin, end): (&str, &str)) -> Option<String> {
    let start = text.find(begin)? + begin.len();
    let end = start + text[start..].find(end)?;
    Some(format!("{}\n{table}{}", &text[..start], &text[end..]))
}

#[cfg(test)]
mod tests;
