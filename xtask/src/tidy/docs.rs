//! The rules for doc comments: public items of the crates have one, and each comment of an item and
//! each paragraph about a module names its noun first.
//!
//! Fields and variants need none if their name is sufficient: a line that repeats the name only
//! costs the reader time.

use std::path::Path;

use super::finding::Finding;

/// The items that must be described if they are `pub`. Modules describe themselves with `//!`.
const DESCRIBED: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static"];

/// Words between `pub` and the item's keyword.
const QUALIFIERS: &[&str] = &["async", "const", "unsafe", "extern", "\"C\""];

/// First words that do not name the subject.
const PRONOUNS: &[&str] = &[
    "It", "Its", "They", "He", "She", "Who", "Whose", "Whom", "Those", "Whoever", "Whatever",
    "Nobody", "Somebody",
];

/// Finds comments that do not name their noun first, in any file.
pub(super) fn subjects(file: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let begins = match line.get(..3) {
            Some("///") => !before.starts_with("///"),
            Some("//!") => !before.starts_with("//!") || before == "//!",
            _ => false,
        };
        if begins && let Some(word) = pronoun(&line[3..]) {
            let text = format!("a doc comment begins with \"{word}\": name the thing first");
            findings.push(Finding::new(file, index + 1, text));
        }
        before = line;
    }
    findings
}

/// Finds public items without a comment, in a file of the crates.
pub(super) fn described(file: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut described = false;
    let mut in_attribute = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("///") {
            described = true;
            continue;
        }
        if in_attribute || line.starts_with("#[") {
            in_attribute = !line.ends_with(']');
            continue;
        }
        if !described && let Some(keyword) = item(line) {
            let text = format!("a public {keyword} without a doc comment");
            findings.push(Finding::new(file, index + 1, text));
        }
        described = false;
    }
    findings
}

fn pronoun(doc: &str) -> Option<&'static str> {
    let first = doc.split_whitespace().next()?;
    let first = first.trim_end_matches(|c: char| c.is_ascii_punctuation());
    let first = first.strip_suffix("'s").unwrap_or(first);
    PRONOUNS.iter().find(|word| **word == first).copied()
}

/// The keyword of the public item that begins in this line.
fn item(line: &str) -> Option<&'static str> {
    let words: Vec<&str> = line.strip_prefix("pub ")?.split_whitespace().collect();
    let at = words
        .iter()
        .position(|word| DESCRIBED.contains(word) && *word != "const");
    let keyword = match at {
        Some(at) if words[..at].iter().all(|word| QUALIFIERS.contains(word)) => words[at],
        _ if words.first() == Some(&"const") => "const",
        _ => return None,
    };
    DESCRIBED.iter().find(|known| **known == keyword).copied()
}

#[cfg(test)]
mod tests;
