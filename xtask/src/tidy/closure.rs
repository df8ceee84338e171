//! The forbidden dependencies of the server's binary, at any depth: it often runs as root, so code
//! for terminals and tools does not belong in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::finding::Finding;
use crate::workspace::{elements, text};

/// The crate whose normal dependencies are checked.
const SERVER: &str = "turnpike-server";

/// Terminal interfaces, which belong in `turnpike-view`, and the tools, which do in
/// `turnpike-tools`, with what reads their options.
const FORBIDDEN: &[&str] = &[
    "clap",
    "turnpike-ingress",
    "turnpike-lab",
    "turnpike-load",
    "turnpike-log",
    "turnpike-tune",
    "ratatui",
    "ratatui-core",
    "crossterm",
    "termion",
    "cursive",
    "indicatif",
    "console",
];

/// Checks the resolved dependencies, as `cargo metadata` gives them.
pub(super) fn check(metadata: &Value) -> Vec<Finding> {
    let packages = elements(metadata, "packages");
    let names: BTreeMap<&str, &str> = packages
        .iter()
        .map(|package| (text(package, "id"), text(package, "name")))
        .collect();
    let nodes: BTreeMap<&str, &Value> = elements(&metadata["resolve"], "nodes")
        .iter()
        .map(|node| (text(node, "id"), node))
        .collect();
    let server = names.iter().find(|(_, name)| **name == SERVER);
    let mut waiting: Vec<&str> = server.map(|(id, _)| *id).into_iter().collect();
    let mut linked = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !linked.insert(id) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        let normal = elements(node, "deps").iter().filter(|edge| is_normal(edge));
        waiting.extend(normal.map(|edge| text(edge, "pkg")));
    }
    FORBIDDEN
        .iter()
        .filter(|name| linked.iter().any(|id| names.get(id) == Some(name)))
        .map(|name| {
            let text =
                format!("{SERVER} links {name}, which belongs in turnpike-tools or turnpike-view");
            Finding::new(Path::new("crates/server/Cargo.toml"), 1, text)
        })
        .collect()
}

/// Whether an edge is linked into the binary: not for tests or build scripts only.
fn is_normal(edge: &Value) -> bool {
    elements(edge, "dep_kinds")
        .iter()
        .any(|kind| kind["kind"].is_null())
}

#[cfg(test)]
mod tests;
