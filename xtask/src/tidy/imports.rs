//! The import table: which of our crates may name which. An edge that is not in the table is a
//! wall broken, however convenient.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::finding::Finding;
use super::scanner::Source;
use crate::workspace::{self, elements, text};

/// A crate's folder and the folders that it may import. Any crate may use test helpers as a
/// dev-dependency; they are listed only if they are a normal one.
const TABLE: &[(&str, &[&str])] = &[
    ("crates/wire", &[]),
    ("crates/conf", &[]),
    ("crates/lane", &["crates/wire"]),
    ("crates/cache", &["crates/wire"]),
    ("crates/express", &["crates/lane"]),
    (
        "crates/plan",
        &["crates/wire", "crates/conf", "crates/lane", "crates/quic"],
    ),
    ("crates/quic", &["crates/wire", "crates/lane"]),
    (
        "crates/http",
        &[
            "crates/wire",
            "crates/conf",
            "crates/lane",
            "crates/plan",
            "crates/quic",
        ],
    ),
    (
        "crates/stream",
        &["crates/wire", "crates/conf", "crates/lane", "crates/plan"],
    ),
    (
        "crates/protocols",
        &["crates/lane", "crates/plan", "crates/http", "crates/stream"],
    ),
    ("crates/upstream", &["crates/wire", "crates/lane"]),
    (
        "crates/modules",
        &[
            "crates/wire",
            "crates/conf",
            "crates/lane",
            "crates/plan",
            "crates/http",
            "crates/stream",
            "crates/upstream",
            "crates/cache",
            "crates/express",
        ],
    ),
    (
        "crates/server",
        &[
            "crates/wire",
            "crates/conf",
            "crates/lane",
            "crates/express",
            "crates/plan",
            "crates/http",
            "crates/stream",
            "crates/protocols",
            "crates/modules",
            "tools/host",
            "tools/usage",
        ],
    ),
    ("tools/agent", &[]),
    ("tools/host", &["crates/conf"]),
    (
        "tools/ingress",
        &["crates/wire", "crates/conf", "tools/agent"],
    ),
    (
        "tools/lab",
        &["tools/host", "tools/load", "tools/trace", "tools/usage"],
    ),
    ("tools/load", &["crates/wire", "tools/host", "tools/usage"]),
    ("tools/log", &["tools/load"]),
    (
        "tools/program",
        &[
            "tools/lab",
            "tools/load",
            "tools/log",
            "tools/tune",
            "tools/usage",
        ],
    ),
    (
        "tools/tune",
        &[
            "crates/conf",
            "tools/host",
            "tools/lab",
            "tools/load",
            "tools/usage",
        ],
    ),
    ("tools/usage", &[]),
    ("tools/view", &["tools/load"]),
    (
        "tools/simulate",
        &[
            "crates/wire",
            "crates/conf",
            "crates/lane",
            "crates/plan",
            "crates/http",
            "crates/stream",
            "crates/protocols",
            "crates/modules",
            "testkit",
        ],
    ),
    ("tools/trace", &[]),
    ("testkit", &["tools/trace"]),
    ("xtask", &["testkit", "tools/host"]),
];

/// The page that repeats the table for readers.
pub(super) const PAGE: &str = "ARCHITECTURE.md";

/// The crate that anyone may have as a dev-dependency.
const TEST_HELPERS: &str = "testkit";

/// Checks every edge between our own crates.
pub(super) fn check(metadata: &Value) -> Vec<Finding> {
    let root = workspace::root();
    let mut findings = Vec::new();
    for package in elements(metadata, "packages") {
        let manifest = Path::new(text(package, "manifest_path"));
        let manifest = manifest.strip_prefix(&root).unwrap_or(manifest);
        let folder = manifest.parent().unwrap_or(manifest);
        let row = TABLE.iter().find(|(name, _)| Path::new(name) == folder);
        let Some((_, allowed)) = row else {
            let text = "a crate that the import table does not know";
            findings.push(Finding::new(manifest, 1, text));
            continue;
        };
        for dependency in elements(package, "dependencies") {
            let Some(path) = dependency["path"].as_str().map(Path::new) else {
                continue;
            };
            let path = path.strip_prefix(&root).unwrap_or(path);
            let helper = text(dependency, "kind") == "dev" && path == Path::new(TEST_HELPERS);
            if !helper && !allowed.iter().any(|name| Path::new(name) == path) {
                let name = text(dependency, "name");
                let text = format!("{} may not import {name}", folder.display());
                findings.push(Finding::new(
                    manifest,
                    line_of(&root.join(manifest), name),
                    text,
                ));
            }
        }
    }
    findings
}

/// Checks that every edge of the table is used: an edge that no source needs is a gap in a wall.
/// `read` returns the text of a file below the root.
pub(super) fn unused(files: &[PathBuf], read: &dyn Fn(&Path) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, allowed) in TABLE {
        let folder = Path::new(folder);
        let is_source = |file: &&PathBuf| {
            file.starts_with(folder) && file.extension().is_some_and(|end| end == "rs")
        };
        let sources: Vec<Source> = files
            .iter()
            .filter(is_source)
            .filter_map(|file| Some(Source::scan(&read(file)?)))
            .collect();
        for other in *allowed {
            let name = other.rsplit('/').next().unwrap_or(other);
            let name = format!("turnpike_{name}");
            let names_it =
                |source: &Source| (0..source.tokens.len()).any(|at| source.word(at) == Some(&name));
            if !sources.iter().any(names_it) {
                let text =
                    format!("nothing here names {name}: take {other} out of the import table");
                findings.push(Finding::new(&folder.join("Cargo.toml"), 1, text));
            }
        }
    }
    findings
}

/// Checks that the table of ARCHITECTURE.md says of each crate what the import table says.
pub(super) fn page(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, allowed) in TABLE {
        let begin = format!("| `{folder}` |");
        let row = text
            .lines()
            .zip(1..)
            .find(|(row, _)| row.starts_with(&begin));
        let line = row.map_or(1, |(_, line)| line);
        let cell = row.and_then(|(row, _)| row.strip_suffix(" |")?.rsplit_once("| "));
        let mut named: Vec<&str> = cell.map_or("", |(_, cell)| cell).split(", ").collect();
        named.retain(|name| !matches!(*name, "" | "–"));
        named.sort_unstable();
        let mut expected: Vec<&str> = allowed
            .iter()
            .map(|other| other.rsplit('/').next().unwrap_or(other))
            .collect();
        expected.sort_unstable();
        if row.is_none() || named != expected {
            let text = format!("the row of {folder} should name {}", expected.join(", "));
            findings.push(Finding::new(Path::new(PAGE), line, text));
        }
    }
    findings
}

/// The line of a manifest that names the dependency, 1 where none does.
fn line_of(manifest: &Path, name: &str) -> usize {
    let text = std::fs::read_to_string(manifest).unwrap_or_default();
    text.lines()
        .position(|line| line.trim_start().starts_with(name))
        .map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests;
