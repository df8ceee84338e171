//! Modules of a crate that few may name: finer walls than the import table has, which knows crates
//! only. Those who may name such a module do not pass its names on.

use std::ops::Range;
use std::path::Path;

use super::finding::Finding;
use super::scanner::Source;

/// A module that only some folders may name.
struct Wall {
    crate_name: &'static str,
    /// The folder of the crate's sources.
    crate_folder: &'static str,
    module: &'static str,
    /// Files and folders that may name it.
    inside: &'static [&'static str],
    cure: &'static str,
}

const WALLS: [Wall; 1] = [Wall {
    crate_name: "turnpike_wire",
    crate_folder: "crates/wire/src",
    module: "h1",
    inside: &[
        "crates/http/src/h1",
        // The load generator is an HTTP/1 client of its own and may import nothing but wire.
        "tools/load/src/http1.rs",
        // The master answers the control API itself, and has no exchanges.
        "crates/server/src/control/api/request.rs",
    ],
    cure: "HTTP/1 is read and written in http::h1 alone, the rest of the server has \
           wire::message",
}];

/// Checks one file.
pub(super) fn check(file: &Path, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for wall in &WALLS {
        let is_inside = wall.inside.iter().any(|inside| file.starts_with(inside));
        if is_inside || file.starts_with(wall.crate_folder) {
            findings.extend(wall.passed_on(file, source));
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

impl Wall {
    /// What a file that may name the module passes on of it, by a re-export or another name.
    fn passed_on(&self, file: &Path, source: &Source) -> Vec<Finding> {
        let own_module = Path::new(self.crate_folder).join(self.module);
        if file.starts_with(own_module) {
            return Vec::new();
        }
        let is_of_crate = file.starts_with(self.crate_folder);
        let imported = self.imported(source, is_of_crate);
        let mut findings = Vec::new();
        for index in 0..source.tokens.len() {
            if source.word(index) != Some("pub") {
                continue;
            }
            let at = behind_visibility(source, index + 1);
            if !matches!(source.word(at), Some("use" | "type")) {
                continue;
            }
            let statement = at + 1..statement_end(source, at);
            let is_passed = |at: usize| {
                let word = source.word(at).unwrap_or_default();
                let is_first = !source.is_mark(at - 1, ':');
                self.begins_path(source, at, is_of_crate)
                    || (is_first && imported.iter().any(|name| name == word))
            };
            if statement.into_iter().any(is_passed) {
                let text = format!("passes names of {} on: {}", self.module, self.cure);
                findings.push(Finding::new(file, source.tokens[index].line, text));
            }
        }
        findings
    }

    /// Whether a path to the module begins at `at`.
    fn begins_path(&self, source: &Source, at: usize, is_of_crate: bool) -> bool {
        let begins = match source.word(at) {
            Some("crate" | "super" | "self") => is_of_crate,
            Some(word) if word == self.module => {
                return is_of_crate && !source.is_mark(at - 1, ':');
            }
            Some(word) => word == self.crate_name,
            None => false,
        };
        begins && leads_to(source, at, self.module)
    }

    /// The names of the module that a file imports, and the module's own where it is among them.
    fn imported(&self, source: &Source, is_of_crate: bool) -> Vec<String> {
        let mut names = Vec::new();
        for at in 0..source.tokens.len() {
            if source.word(at) != Some("use") {
                continue;
            }
            let statement = at + 1..statement_end(source, at);
            let mut places = statement.clone();
            if !places.any(|at| self.begins_path(source, at, is_of_crate)) {
                continue;
            }
            let module = statement
                .clone()
                .find(|at| source.word(*at) == Some(self.module));
            names.extend(
                module
                    .into_iter()
                    .flat_map(|at| names_of(source, at, &statement)),
            );
        }
        names
    }
}

/// The names that an import makes known of the module at `at`.
fn names_of(source: &Source, at: usize, statement: &Range<usize>) -> Vec<String> {
    let word = |at: usize| source.word(at).map(str::to_owned);
    if !source.is_mark(at + 1, ':') {
        return word(at).into_iter().collect();
    }
    let begin = at + 3;
    if !source.is_mark(begin, '{') {
        let alias = (source.word(begin + 1) == Some("as")).then(|| word(begin + 2));
        return alias.unwrap_or_else(|| word(begin)).into_iter().collect();
    }
    let end = (begin..statement.end).find(|end| source.is_mark(*end, '}'));
    let words = (begin..end.unwrap_or(statement.end)).filter_map(word);
    let own = |name: String| match name.as_str() {
        "self" => word(at).unwrap_or_default(),
        _ => name,
    };
    words.map(own).collect()
}

/// Where an item goes on behind `pub` and what stands in its brackets.
fn behind_visibility(source: &Source, at: usize) -> usize {
    if !source.is_mark(at, '(') {
        return at;
    }
    let end = (at..source.tokens.len()).find(|end| source.is_mark(*end, ')'));
    end.map_or(at, |end| end + 1)
}

/// Where the statement that begins at `at` ends.
fn statement_end(source: &Source, at: usize) -> usize {
    let all = source.tokens.len();
    (at..all)
        .find(|end| source.is_mark(*end, ';'))
        .unwrap_or(all)
}

/// Whether the path whose first word is at `index` continues to `module`, alone or in braces.
pub(super) fn leads_to(source: &Source, index: usize, module: &str) -> bool {
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
