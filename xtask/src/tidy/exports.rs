//! The rule that crates must not give out the socket of a client. A request's client is used
//! through the methods of its type; with the descriptor, a caller could bypass its TLS session, or
//! write between the frames of its protocol.
//!
//! The rule checks what is public: results of functions and what they pass to closures, fields and
//! variants, aliases, and the traits that give a descriptor. The two traits whose methods are given
//! a client's connection have implementations only where connections are served.

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
const YIELDING_TYPES: [&str; 6] = [
    "RawFd",
    "OwnedFd",
    "BorrowedFd",
    "AsyncFd",
    "Transport",
    "Waited",
];

/// Namesakes of them: file, and type.
const NAMESAKES: [(&str, &str); 2] = [
    // What a PROXY protocol header says of a connection.
    ("crates/modules/src", "Transport"),
    // What a request has waited for.
    ("crates/modules/src/proxy_cache", "Waited"),
];

/// Traits whose implementations give a descriptor.
const YIELDING_TRAITS: [&str; 3] = ["AsFd", "AsRawFd", "IntoRawFd"];

/// Traits whose implementations are given connections, and where these are served.
const TAKING_TRAITS: [&str; 2] = ["Receiver", "Protocol"];
const TAKERS: [&str; 2] = ["crates/http/src/connection", "crates/stream/src"];

/// Checks one file that is no test.
pub(super) fn check(file: &Path, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !TAKERS.iter().any(|taker| file.starts_with(taker)) {
        findings.extend(taken(file, source));
    }
    let is_checked = CRATES.iter().any(|folder| file.starts_with(folder));
    if !is_checked || file.starts_with(TRANSPORT_HOLDER) {
        return findings;
    }
    let exports = Exports { file, source };
    for (index, placed) in source.tokens.iter().enumerate() {
        let yielding = match source.word(index) {
            Some("pub") => exports.public_item(index + 1),
            Some("impl") => exports.implemented(index + 1),
            Some("type") if source.word(index + 1) == Some("Target") => exports.alias(index),
            _ => None,
        };
        if let Some(name) = yielding {
            let text = format!("{name} yields a descriptor: give a verb of the client instead");
            findings.push(Finding::new(file, placed.line, text));
        }
    }
    findings
}

/// The implementations of [`TAKING_TRAITS`] in a file that serves no connections.
fn taken(file: &Path, source: &Source) -> Vec<Finding> {
    let is_taking = |at: &usize| {
        let name = source.word(*at).unwrap_or_default();
        source.word(at + 1) == Some("for") && TAKING_TRAITS.contains(&name)
    };
    let found = (0..source.tokens.len()).filter(is_taking);
    let finding = |at: usize| {
        let name = source.word(at).unwrap_or_default();
        let text = format!("{name} is given clients' connections: serve them where others are");
        Finding::new(file, source.tokens[at].line, text)
    };
    found.map(finding).collect()
}

struct Exports<'a> {
    file: &'a Path,
    source: &'a Source,
}

impl<'a> Exports<'a> {
    /// The name of the item that is public from `index` on, if it yields a descriptor.
    fn public_item(&self, index: usize) -> Option<&'a str> {
        let source = self.source;
        let mut at = index;
        while matches!(source.word(at), Some("const" | "async" | "unsafe")) {
            at += 1;
        }
        match source.word(at) {
            Some("fn") => self.function(at),
            Some("type") => self.alias(at),
            Some("enum") => self.body(at, |inner| source.word(inner) != Some("fn")),
            Some("struct") => self.tuple(at),
            Some("trait") => self.body(at, |inner| {
                source.word(inner) == Some("fn") && self.function(inner).is_some()
            }),
            _ => self.field(at),
        }
    }

    /// A field: a name and a colon that begins no path.
    fn field(&self, at: usize) -> Option<&'a str> {
        let source = self.source;
        let is_field = source.is_mark(at + 1, ':') && !source.is_mark(at + 2, ':');
        let yields = is_field && self.names_type(at + 2, &[',', '}', '=']);
        yields.then(|| source.word(at)).flatten()
    }

    /// A function whose result yields one, or that passes one to a closure.
    fn function(&self, at: usize) -> Option<&'a str> {
        let source = self.source;
        let result = self.result_of(at + 2);
        let yields = result.is_some_and(|result| self.names_type(result, &['{', ';']));
        let passes = || {
            (at + 2..self.signature_end(at + 2)).any(|inner| {
                matches!(source.word(inner), Some("Fn" | "FnMut" | "FnOnce" | "fn"))
                    && source.is_mark(inner + 1, '(')
                    && self.names_type(inner + 2, &[')'])
            })
        };
        (yields || passes()).then(|| source.word(at + 1)).flatten()
    }

    /// Another name for a type that yields one.
    fn alias(&self, at: usize) -> Option<&'a str> {
        let yields = self.names_type(at + 2, &[';']);
        yields.then(|| self.source.word(at + 1)).flatten()
    }

    /// An item with a body in braces; `yields` is asked at each token of it that names a yielding
    /// type or begins a function.
    fn body(&self, at: usize, yields: impl Fn(usize) -> bool) -> Option<&'a str> {
        let source = self.source;
        let begin = (at..source.tokens.len()).find(|begin| source.is_mark(*begin, '{'))?;
        let mut depth = 0usize;
        for inner in begin..source.tokens.len() {
            match &source.tokens[inner].token {
                Token::Mark('{') => depth += 1,
                Token::Mark('}') => depth -= 1,
                Token::Word(word) => {
                    let is_asked = word == "fn" || self.is_yielding(word);
                    if is_asked && yields(inner) {
                        return source.word(at + 1);
                    }
                }
                Token::Mark(_) => {}
            }
            if depth == 0 {
                return None;
            }
        }
        None
    }

    /// A struct whose public fields have no names.
    fn tuple(&self, at: usize) -> Option<&'a str> {
        let source = self.source;
        let is_end = |end: &usize| {
            ['(', '{', ';']
                .iter()
                .any(|mark| source.is_mark(*end, *mark))
        };
        let begin = (at..source.tokens.len()).find(is_end)?;
        let end = (begin..source.tokens.len()).find(|end| source.is_mark(*end, ';'))?;
        let yields = |inner: usize| {
            source.word(inner) == Some("pub")
                && !source.is_mark(inner + 1, '(')
                && self.names_type(inner + 1, &[',', ')'])
        };
        let is_tuple = source.is_mark(begin, '(');
        (is_tuple && (begin..end).any(yields))
            .then(|| source.word(at + 1))
            .flatten()
    }

    /// The trait that an implementation from `index` on is of, if it yields a descriptor.
    fn implemented(&self, index: usize) -> Option<&'a str> {
        let source = self.source;
        let mut at = index;
        while !source.is_mark(at, '{') && !source.is_mark(at, ';') {
            let name = source.word(at);
            if source.word(at + 1) == Some("for")
                && name.is_some_and(|name| YIELDING_TRAITS.contains(&name))
            {
                return name;
            }
            // A conversion into one.
            if name == Some("for")
                && source
                    .word(at + 1)
                    .is_some_and(|word| self.is_yielding(word))
            {
                return source.word(at + 1);
            }
            at += 1;
            if at >= source.tokens.len() {
                return None;
            }
        }
        None
    }

    /// Where the type of a function's result begins; `None`: it has none.
    fn result_of(&self, index: usize) -> Option<usize> {
        let source = self.source;
        let end = self.signature_end(index);
        let mut round = 0usize;
        for at in index..end {
            match source.tokens[at].token {
                Token::Mark('(') => round += 1,
                Token::Mark(')') => round = round.saturating_sub(1),
                Token::Mark('-') if round == 0 && source.is_mark(at + 1, '>') => {
                    return Some(at + 2);
                }
                _ => {}
            }
        }
        None
    }

    /// Where a function's signature ends.
    fn signature_end(&self, index: usize) -> usize {
        let source = self.source;
        let mut round = 0usize;
        for at in index..source.tokens.len() {
            match source.tokens[at].token {
                Token::Mark('(' | '[') => round += 1,
                Token::Mark(')' | ']') => round = round.saturating_sub(1),
                Token::Mark('{' | ';') if round == 0 => return at,
                _ => {}
            }
        }
        source.tokens.len()
    }

    /// Whether one of [`YIELDING_TYPES`] is in the type from `index` to one of the `ends` outside
    /// of its brackets.
    fn names_type(&self, index: usize, ends: &[char]) -> bool {
        let mut depth = 0usize;
        for placed in self.source.tokens.get(index..).unwrap_or_default() {
            match &placed.token {
                Token::Mark(mark) if depth == 0 && ends.contains(mark) => return false,
                Token::Mark('(' | '[' | '<') => depth += 1,
                Token::Mark(')' | ']' | '>') => depth = depth.saturating_sub(1),
                Token::Word(word) if self.is_yielding(word) => return true,
                _ => {}
            }
        }
        false
    }

    fn is_yielding(&self, word: &str) -> bool {
        let is_namesake =
            |(folder, name): &(&str, &str)| self.file.starts_with(folder) && word == *name;
        YIELDING_TYPES.contains(&word) && !NAMESAKES.iter().any(is_namesake)
    }
}

#[cfg(test)]
mod tests;
