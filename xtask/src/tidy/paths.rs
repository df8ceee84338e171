//! Modules of a crate that few may name: finer walls than the import table has, which knows crates
//! only.

use std::path::Path;

use super::finding::Finding;
use super::scanner::Source;

/// A module that only some folders may name.
struct Wall {
    crate_name: &'static str,
    module: &'static str,
    /// Files and folders that may name it.
    inside: &'static [&'static str],
    cure: &'static str,
}

const WALLS: [Wall; 1] = [Wall {
    crate_name: "turnpike_wire",
    module: "h1",
    inside: &[
        "crates/http/src/h1",
        // The load generator is an HTTP/1 client of its own and may import nothing but wire.
        "tools/load/src/http1.rs",
    ],
    cure: "HTTP/1 is read and written in http::h1 alone, the rest of the server has \
           wire::message",
}];

/// Checks one file.
pub(super) fn check(file: &Path, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for wall in &WALLS {
        if wall.inside.iter().any(|inside| file.starts_with(inside)) {
            continue;
        }
        for (index, placed) in source.tokens.iter().enumerate() {
            if source.word(index) == Some(wall.crate_name) && leads_to(source, index, wall.module) {
                let text = format!("{}::{}: {}", wall.crate_name, wall.module, wall.cure);
                findings.push(Finding::new(file, placed.line, text));
            }
        }
    }
    findings
}

/// Whether the path whose first word is at `index` continues to `module`, alone or in braces.
fn leads_to(source: &Source, index: usize, module: &str) -> bool {
    let is_path = source.is_mark(index + 1, ':') && source.is_mark(index + 2, ':');
    if !is_path || !source.is_mark(index + 3, '{') {
        return is_path && source.word(index + 3) == Some(module);
    }
    let mut depth = 0usize;
    for at in index + 3..source.tokens.len() {
        if source.is_mark(at, '{') {
            depth += 1;
        } else if source.is_mark(at, '}') {
            depth -= 1;
            if depth == 0 {
                return false;
            }
        }
        let begins = source.is_mark(at, '{') || source.is_mark(at, ',');
        if depth == 1 && begins && source.word(at + 1) == Some(module) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
