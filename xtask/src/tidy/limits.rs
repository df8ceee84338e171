//! Ceilings and forbidden forms of one source file.

use std::path::Path;

use super::finding::Finding;
use super::scanner::Source;

/// The most lines of a function, with its signature: one screen.
const FUNCTION_LINES_MAX: usize = 70;
/// The most lines of a file.
const FILE_LINES_MAX: usize = 800;
/// Columns of a line, as rustfmt has it; rustfmt leaves long strings and comments alone.
const LINE_COLUMNS_MAX: usize = 100;

/// Columns of a line of Markdown. Tables, code, and pages that a tool writes may be wider.
const PAGE_COLUMNS_MAX: usize = 111;

/// The files that may contain `unsafe`: the system calls of the server and of the tools (which may
/// not import the server's).
const UNSAFE_FOLDERS: [&str; 3] = [
    "crates/lane/src/sys",
    "tools/lab/src/sys.rs",
    "tools/load/src/sys.rs",
];

/// Macros for unfinished code.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Checks one file.
pub(super) fn check(file: &Path, text: &str, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    lengths(file, text, source, &mut findings);
    if !UNSAFE_FOLDERS.iter().any(|folder| file.starts_with(folder)) {
        for line in word_lines(source, "unsafe") {
            let text = format!("unsafe belongs into {}", UNSAFE_FOLDERS.join(" or "));
            findings.push(Finding::new(file, line, text));
        }
    }
    for name in UNFINISHED {
        for (index, placed) in source.tokens.iter().enumerate() {
            if source.word(index) == Some(name) && source.is_mark(index + 1, '!') {
                findings.push(Finding::new(file, placed.line, format!("{name}! is left")));
            }
        }
    }
    if !is_tests(file) && !text.lines().any(|line| line.starts_with("//!")) {
        let text = "a module opens with //!: why it exists and what it must not do";
        findings.push(Finding::new(file, 1, text));
    }
    findings
}

/// Checks the widths of a page of Markdown that people write. The findings that `turnpike tune`
/// writes behind its page are not among them.
pub(super) fn page(file: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line == "## Findings" || line.starts_with("Written by `cargo xtask docs`") {
            break;
        }
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let columns = line.chars().count();
        let is_free = in_code || line.starts_with('|') || line.starts_with("    ");
        if !is_free && columns > PAGE_COLUMNS_MAX {
            let text = format!("{columns} columns, at most {PAGE_COLUMNS_MAX}");
            findings.push(Finding::new(file, index + 1, text));
        }
    }
    findings
}

/// A sibling `tests.rs` needs no description: its name is sufficient.
fn is_tests(file: &Path) -> bool {
    file.ends_with("tests.rs") || file.components().any(|part| part.as_os_str() == "tests")
}

fn lengths(file: &Path, text: &str, source: &Source, findings: &mut Vec<Finding>) {
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        let text = format!("{lines} lines in a file, at most {FILE_LINES_MAX}");
        findings.push(Finding::new(file, FILE_LINES_MAX + 1, text));
    }
    for (index, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS_MAX {
            let text = format!("{columns} columns, at most {LINE_COLUMNS_MAX}");
            findings.push(Finding::new(file, index + 1, text));
        }
    }
    for function in source.functions() {
        if function.lines > FUNCTION_LINES_MAX {
            let (name, lines) = (&function.name, function.lines);
            let text = format!("fn {name} has {lines} lines, at most {FUNCTION_LINES_MAX}");
            findings.push(Finding::new(file, function.line, text));
        }
    }
}

fn word_lines(source: &Source, word: &str) -> Vec<usize> {
    let of_word = |(index, _): &(usize, _)| source.word(*index) == Some(word);
    source
        .tokens
        .iter()
        .enumerate()
        .filter(of_word)
        .map(|(_, placed)| placed.line)
        .collect()
}

#[cfg(test)]
mod tests;
