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

/// First words that make a clause of a noun: "What is sent" for "The response".
const CLAUSES: &[&str] = &["What", "How", "Where", "Why", "When", "Which"];

/// The most comments that may begin so in all files. The number only goes down: write the noun.
const CLAUSES_MAX: usize = 2_500;

/// Names that are written in lower case at the beginning of a sentence too.
const LOWER_CASE_NAMES: &[&str] = &["nginx", "curl", "epoll", "wrk", "h2spec", "systemd"];

/// Finds out whether more comments begin with a clause than the number that was reached.
pub(super) fn clauses(count: usize) -> Option<Finding> {
    let file = Path::new("xtask/src/tidy/docs.rs");
    let text = format!(
        "{count} doc comments begin with \"What\", \"How\" or the like, at most {CLAUSES_MAX}: \
         begin new ones with their noun"
    );
    (count > CLAUSES_MAX).then(|| Finding::new(file, 1, text))
}

/// The number of comments in a file that begin with a clause.
pub(super) fn count_clauses(text: &str) -> usize {
    paragraphs(text)
        .filter(|(_, doc)| {
            let first = doc.split_whitespace().next();
            first.is_some_and(|first| CLAUSES.contains(&first))
        })
        .count()
}

/// Finds what a merge of comments has left of a sentence: a line that begins in lower case behind a
/// full stop.
pub(super) fn halves(file: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let mark = line.get(..3).filter(|mark| matches!(*mark, "///" | "//!"));
        let goes_on = mark.is_some_and(|mark| before.starts_with(mark)) && before.ends_with('.');
        let word = line.get(3..).and_then(|doc| doc.split_whitespace().next());
        let is_lower = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
        if goes_on
            && let Some(word) = word.filter(is_lower)
            && !LOWER_CASE_NAMES.contains(&word)
            && !before.ends_with("..")
        {
            let text = format!("half a sentence: \"{word}\" stands behind a full stop");
            findings.push(Finding::new(file, index + 1, text));
        }
        before = line;
    }
    findings
}

/// The first lines of the comments of items, and of the paragraphs about modules, with the numbers
/// of their lines.
fn paragraphs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut before = "";
    text.lines().enumerate().filter_map(move |(index, line)| {
        let line = line.trim();
        let begins = match line.get(..3) {
            Some("///") => !before.starts_with("///"),
            Some("//!") => !before.starts_with("//!") || before == "//!",
            _ => false,
        };
        before = line;
        begins.then(|| (index, &line[3..]))
    })
}

/// Finds comments that do not name their noun first, in any file.
pub(super) fn subjects(file: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, doc) in paragraphs(text) {
        if let Some(word) = pronoun(doc) {
            let text = format!("a doc comment begins with \"{word}\": name the thing first");
            findings.push(Finding::new(file, index + 1, text));
        }
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
