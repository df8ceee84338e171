//! The records behind the tables of bench/README.md: which table has one, and which of the parts
//! that its study measures have changed since.
//!
//! A record keeps the git hashes of these parts in `sources.txt`, a line each, so that a table of
//! an older tree is seen as such without a word being believed.

use std::path::Path;

use super::{climb, study};
use crate::outcome::Outcome;
use crate::workspace;

/// The file of a record with the hashes.
const SOURCES: &str = "sources.txt";

/// A published table.
pub(super) struct Table {
    /// What a person calls it: the word after `cargo xtask bench`.
    pub(super) name: &'static str,
    /// The markers around it in bench/README.md.
    pub(super) markers: (&'static str, &'static str),
    /// The folders and files that its study measures.
    pub(super) measured: &'static [&'static str],
}

const TABLES: &[&Table] = &[
    &study::BESIDE_NGINX.table,
    &study::REAL.table,
    &study::APPLICATIONS.table,
    &study::SECURE.table,
    &study::STREAM.table,
    &climb::TABLE,
];

/// What is known of a table's record.
#[derive(Debug, PartialEq)]
enum State {
    Missing,
    /// The record is older than the file of hashes.
    Unknown,
    /// Nothing that it measures has changed.
    Current,
    /// What has changed.
    Changed(Vec<String>),
}

/// Says what is known of each table's record.
///
/// # Errors
/// A table has no record.
pub(super) fn run() -> Outcome {
    let page = workspace::root().join("bench/README.md");
    let text = std::fs::read_to_string(&page);
    let text = text.map_err(|error| format!("{}: {error}", page.display()))?;
    let mut without = Vec::new();
    for table in TABLES {
        let record = record(&text, table.markers);
        let state = match record {
            None => State::Missing,
            Some(record) => {
                let path = page.with_file_name("results").join(record).join(SOURCES);
                compare(std::fs::read_to_string(path).ok(), &hashes(table.measured)?)
            }
        };
        let said = match &state {
            State::Missing => {
                without.push(table.name);
                "it has no record".to_owned()
            }
            State::Unknown => "its record does not say of which tree it is".to_owned(),
            State::Current => "its record is of this tree".to_owned(),
            State::Changed(parts) => format!("changed since its record: {}", parts.join(", ")),
        };
        println!("bench: table {}: {said}", table.name);
    }
    if without.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "a table of bench/README.md has no record: {}; run: cargo xtask bench {}",
            without.join(", "),
            without[0]
        ))
    }
}

/// The error where a part that is measured has changes without a commit: the record could not say
/// what it is of.
pub(super) fn check_committed(table: &Table) -> Outcome {
    let status = workspace::git(&[&["status", "--porcelain", "--"], table.measured].concat())?;
    match status.lines().next() {
        None => Ok(()),
        Some(first) => Err(format!(
            "{} is not committed, so a record could not name its sources: commit it, or run with \
             --no-write",
            first.rsplit(' ').next().unwrap_or(first)
        )),
    }
}

/// Notes the measured parts' hashes in a record.
pub(super) fn note(record: &Path, table: &Table) -> Outcome {
    let path = record.join(SOURCES);
    let written = std::fs::write(&path, hashes(table.measured)?);
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// The hash of each part as committed, a line each.
fn hashes(measured: &[&str]) -> Result<String, String> {
    let mut text = String::new();
    for part in measured {
        let hash = workspace::git(&["rev-parse", &format!("HEAD:{part}")])?;
        text.push_str(&format!("{hash} {part}\n"));
    }
    Ok(text)
}

/// The name of the record that a table links.
fn record<'a>(page: &'a str, (begin, end): (&str, &str)) -> Option<&'a str> {
    let (_, rest) = page.split_once(begin)?;
    let (table, _) = rest.split_once(end)?;
    let (_, link) = table.split_once("(results/")?;
    Some(link.split_once("/README.md)")?.0)
}

fn compare(noted: Option<String>, now: &str) -> State {
    let Some(noted) = noted else {
        return State::Unknown;
    };
    let known: Vec<&str> = noted.lines().collect();
    let changed = now.lines().filter(|line| !known.contains(line));
    let parts = changed.filter_map(|line| Some(line.split_once(' ')?.1.to_owned()));
    match parts.collect::<Vec<String>>() {
        parts if parts.is_empty() => State::Current,
        parts => State::Changed(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_its_record() {
        let page = "<!-- a -->\n| t |\n\nRecord: [x](results/x-1/README.md).\n<!-- z -->\n\
                    <!-- b -->\nThere is no record yet.\n<!-- y -->\n";
        let cases = [
            (("<!-- a -->", "<!-- z -->"), Some("x-1")),
            (("<!-- b -->", "<!-- y -->"), None),
            (("<!-- c -->", "<!-- y -->"), None),
        ];
        for (markers, expected) in cases {
            assert_eq!(record(page, markers), expected, "{markers:?}");
        }
    }

    #[test]
    fn a_record_is_compared_part_by_part() {
        let now = "1 crates/http\n2 crates/lane\n";
        let changed =
            |parts: &[&str]| State::Changed(parts.iter().map(ToString::to_string).collect());
        let cases = [
            (None, State::Unknown),
            (Some("1 crates/http\n2 crates/lane\n"), State::Current),
            (
                Some("1 crates/http\n9 crates/lane\n"),
                changed(&["crates/lane"]),
            ),
            (Some("2 crates/lane\n"), changed(&["crates/http"])),
            (Some(""), changed(&["crates/http", "crates/lane"])),
        ];
        for (noted, expected) in cases {
            assert_eq!(
                compare(noted.map(str::to_owned), now),
                expected,
                "{noted:?}"
            );
        }
    }

    #[test]
    fn every_measured_part_is_in_the_tree() {
        for table in TABLES {
            for part in table.measured {
                assert!(
                    workspace::root().join(part).exists(),
                    "{}: {part}",
                    table.name
                );
            }
        }
    }
}
