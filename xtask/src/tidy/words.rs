//! Words that no committed text may contain: paths of one person's machine, and reminders.

use std::path::Path;

use super::finding::Finding;

/// Folders that exist on one machine only. Split, so that this file is not its own finding.
const PLACES: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
];

/// Reminders: an issue is the place for them.
const REMINDERS: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
];

/// Whether a file is prose or code of ours, and not test data or generated text.
pub(super) fn applies(file: &Path) -> bool {
    let data = ["fuzz/corpus", "bench/results", "LICENSE", "Cargo.lock"];
    !data.iter().any(|start| file.starts_with(start))
}

/// Checks one file.
pub(super) fn check(file: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for place in PLACES.iter().filter(|place| has_path(line, place)) {
            findings.push(Finding::new(
                file,
                index + 1,
                format!("a place of one machine: {place}"),
            ));
        }
        for word in REMINDERS.iter().filter(|word| has_word(line, word)) {
            findings.push(Finding::new(
                file,
                index + 1,
                format!("a reminder is left: {word}"),
            ));
        }
    }
    findings
}

/// The path from the root of the file system: not the end of a longer one.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|character| character.is_alphanumeric() || "._-~}%".contains(character))
    })
}

fn has_word(line: &str, word: &str) -> bool {
    let part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(part)
            && !line[at + word.len()..].chars().next().is_some_and(part)
    })
}

#[cfg(test)]
mod tests;
