//! The rule that crates must not give out the socket of a client. A request's client is used
//! through the methods of its type; with the descriptor, a caller could bypass its TLS session, or
//! write between the frames of its protocol.
//!
//! The rule checks public functions' results, public fields and the traits that give a descriptor.

use std::path::Path;

use super::finding::Finding;
use super::scanner::{Source, Token};

/// The crates that have clients or get them. `lane::transport` is below them.
const CRATES: [&str; 4] = [
    "crates/plan/src",
    "crates/http/src",
    "crates/stream/src",
    "crates/modules/src",
];

/// The module that writes HTTP/1 onto connections.
const TRANSPORT_HOLDER: &str = "crates/http/src/h1";

/// Types from which a descriptor can be had.
const YIELDING_TYPES: [&str; 4] = ["RawFd", "OwnedFd", "BorrowedFd", "Transport"];

/// Traits whose implementations give a descriptor.
const YIELDING_TRAITS: [&str; 3] = ["AsFd", "AsRawFd", "IntoRawFd"];

/// Public fields whose descriptor is no HTTP client's: file, name, and meaning.
const OTHERS: [(&str, &str); 4] = [
    // A listening socket, whose queue is counted.
    ("crates/http/src/counters/reader.rs", "socket"),
    // A connection that another protocol's gate accepted; it passes through unread.
    ("crates/http/src/connection/connections.rs", "socket"),
    // A connection that a session of stream passes to an address of HTTP: it is moved, not used.
    ("crates/http/src/connection/passed.rs", "transport"),
    ("crates/stream/src/serve.rs", "transport"),
];

/// Checks one file that is no test.
pub(super) fn check(file: &Path, source: &Source) -> Vec<Finding> {
    let is_checked = CRATES.iter().any(|folder| file.starts_with(folder));
    if !is_checked || file.starts_with(TRANSPORT_HOLDER) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, placed) in source.tokens.iter().enumerate() {
        let yielding = match source.word(index) {
            Some("pub") => public_item(source, index + 1).filter(|name| !is_other(file, name)),
            Some("impl") => implemented(source, index + 1),
            _ => None,
        };
        if let Some(name) = yielding {
            let text = format!("{name} yields a descriptor: give a verb of the client instead");
            findings.push(Finding::new(file, placed.line, text));
        }
    }
    findings
}

fn is_other(file: &Path, field: &str) -> bool {
    let is_it = |(path, name): &(&str, &str)| file == Path::new(path) && field == *name;
    OTHERS.iter().any(is_it)
}

/// The name of the function or field that is public from `index` on, if it yields a descriptor.
fn public_item(source: &Source, index: usize) -> Option<&str> {
    let mut at = index;
    while matches!(source.word(at), Some("const" | "async" | "unsafe")) {
        at += 1;
    }
    if source.word(at) == Some("fn") {
        let result = result_of(source, at + 2)?;
        let yields = names_type(source, result, &['{', ';']);
        return yields.then(|| source.word(at + 1)).flatten();
    }
    // A field: a name and a colon that begins no path.
    let is_field = source.is_mark(at + 1, ':') && !source.is_mark(at + 2, ':');
    let yields = is_field && names_type(source, at + 2, &[',', '}', '=']);
    yields.then(|| source.word(at)).flatten()
}

/// Where the type of a function's result begins; `None`: it has none.
fn result_of(source: &Source, index: usize) -> Option<usize> {
    let mut round = 0usize;
    for at in index..source.tokens.len() {
        match source.tokens[at].token {
            Token::Mark('(') => round += 1,
            Token::Mark(')') => round = round.saturating_sub(1),
            Token::Mark('{' | ';') if round == 0 => return None,
            Token::Mark('-') if round == 0 && source.is_mark(at + 1, '>') => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// Whether one of [`YIELDING_TYPES`] is in the type from `index` to one of the `ends` outside of
/// its brackets.
fn names_type(source: &Source, index: usize, ends: &[char]) -> bool {
    let mut depth = 0usize;
    for placed in source.tokens.get(index..).unwrap_or_default() {
        match &placed.token {
            Token::Mark(mark) if depth == 0 && ends.contains(mark) => return false,
            Token::Mark('(' | '[' | '<') => depth += 1,
            Token::Mark(')' | ']' | '>') => depth = depth.saturating_sub(1),
            Token::Word(word) if YIELDING_TYPES.contains(&word.as_str()) => return true,
            _ => {}
        }
    }
    false
}

/// The trait that an implementation from `index` on is of, if it yields a descriptor.
fn implemented(source: &Source, index: usize) -> Option<&str> {
    let mut at = index;
    while !source.is_mark(at, '{') && !source.is_mark(at, ';') {
        let name = source.word(at);
        let is_of_trait = source.word(at + 1) == Some("for");
        if is_of_trait && name.is_some_and(|name| YIELDING_TRAITS.contains(&name)) {
            return name;
        }
        at += 1;
        if at >= source.tokens.len() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests;
