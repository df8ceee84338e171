//! The rule that protocol code and the configuration's language are sans-IO: bytes in, events and
//! bytes out. Such a crate opens nothing, asks no clock and starts nothing; whoever calls it does.

use std::path::Path;

use super::finding::Finding;
use super::paths::leads_to;
use super::scanner::Source;

/// The crates without input and output.
const CRATES: [&str; 2] = ["crates/wire/src", "crates/conf/src"];

/// Modules of the standard library that they do not name. The types of `std::net` and `std::time`
/// without a system behind them are those of `core`.
const MODULES: [&str; 6] = ["fs", "net", "time", "thread", "process", "env"];

/// Paths that those modules stand below.
const PARENTS: [&str; 2] = ["std", "unix"];

/// Crates of which the same is true.
const FOREIGN: [&str; 4] = ["nix", "tokio", "libc", "rustix"];

/// Checks one file that is no test.
pub(super) fn check(file: &Path, source: &Source) -> Vec<Finding> {
    if !CRATES.iter().any(|folder| file.starts_with(folder)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, placed) in source.tokens.iter().enumerate() {
        let Some(word) = source.word(index) else {
            continue;
        };
        let mut named: Vec<&str> = Vec::new();
        if PARENTS.contains(&word) {
            let modules = MODULES.into_iter();
            named.extend(modules.filter(|module| leads_to(source, index, module)));
        }
        let is_path = source.is_mark(index + 1, ':') && source.is_mark(index + 2, ':');
        let is_first = index == 0 || !source.is_mark(index - 1, ':');
        if is_first && is_path {
            named.extend(FOREIGN.into_iter().filter(|foreign| *foreign == word));
        }
        for name in named {
            let text = format!("{word} {name}: this crate is sans-IO, its callers do that");
            findings.push(Finding::new(file, placed.line, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
