//! A bill of materials of the programs, in CycloneDX 1.5, beside the packages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::deny::PLATFORM;
use crate::workspace::{self, elements, text};

/// The packages whose programs are shipped.
pub(super) const SHIPPED: &[&str] = &["turnpike-server", "turnpike-tools", "turnpike-view"];

/// Writes the list, and returns its path.
///
/// # Errors
/// In words, when cargo does not say what is in the programs or the file cannot be written.
pub(super) fn build(out: &Path, version: &str) -> Result<PathBuf, String> {
    let metadata = workspace::metadata(&["--locked", "--filter-platform", PLATFORM])?;
    let path = out.join(format!("turnpike-{version}.cdx.json"));
    let list = format!("{:#}\n", list(&metadata, version));
    std::fs::write(&path, list).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// The list. It has no time and no number of its own, so that the same sources give the same list.
fn list(metadata: &Value, version: &str) -> Value {
    let used = used(metadata);
    let packages = elements(metadata, "packages").iter();
    let mut parts: Vec<Value> = packages
        .filter(|package| used.contains(text(package, "id")))
        .filter(|package| package["source"].is_string())
        .map(component)
        .collect();
    parts.sort_by_key(|part| part["bom-ref"].to_string());
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "name": "turnpike", "version": version,
            "bom-ref": format!("turnpike@{version}"),
            "licenses": [{ "expression": "Apache-2.0" }],
        } },
        "components": parts,
    })
}

fn component(package: &Value) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let url = format!("pkg:cargo/{name}@{version}");
    // Old crates write a slash for OR.
    let license = text(package, "license").replace('/', " OR ");
    json!({
        "type": "library", "name": name, "version": version, "bom-ref": url, "purl": url,
        "licenses": [{ "expression": license }],
    })
}

/// The packages that the shipped ones need to run: what only builds or tests need is left out.
fn used(metadata: &Value) -> BTreeSet<&str> {
    let nodes: BTreeMap<&str, &Value> = elements(&metadata["resolve"], "nodes")
        .iter()
        .map(|node| (text(node, "id"), node))
        .collect();
    let shipped = elements(metadata, "packages").iter();
    let shipped = shipped.filter(|package| SHIPPED.contains(&text(package, "name")));
    let mut open: Vec<&str> = shipped.map(|package| text(package, "id")).collect();
    let mut used = BTreeSet::new();
    while let Some(id) = open.pop() {
        let Some(node) = nodes.get(id).filter(|_| used.insert(id)) else {
            continue;
        };
        let normal = elements(node, "deps").iter().filter(|dependency| {
            let kinds = elements(dependency, "dep_kinds").iter();
            kinds.clone().any(|kind| kind["kind"].is_null())
        });
        open.extend(normal.map(|dependency| text(dependency, "pkg")));
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `cargo metadata` says of a workspace whose server needs `runs`, which needs `deeper`;
    /// `builds` is for build scripts, `tests` for tests, and `other` for a tool that stays here.
    fn metadata() -> Value {
        let package = |name: &str, source: Option<&str>| {
            json!({
                "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                "source": source,
            })
        };
        let outside = Some("registry");
        let needs = |name: &str, kind: Option<&str>| {
            let kinds = json!([{ "kind": kind }]);
            json!({ "pkg": name, "dep_kinds": kinds })
        };
        let leaf = |name: &str| json!({ "id": name, "deps": [] });
        json!({
            "packages": [
                package("turnpike-server", None), package("xtask", None),
                package("runs", outside), package("deeper", outside), package("builds", outside),
                package("tests", outside), package("other", outside),
            ],
            "resolve": { "nodes": [
                { "id": "turnpike-server", "deps": [
                    needs("runs", None),
                    needs("builds", Some("build")),
                    needs("tests", Some("dev")),
                ] },
                { "id": "runs", "deps": [needs("deeper", None)] },
                { "id": "xtask", "deps": [needs("other", None)] },
                leaf("deeper"), leaf("builds"), leaf("tests"), leaf("other"),
            ] },
        })
    }

    #[test]
    fn the_list_has_what_runs_and_not_what_builds() {
        let list = list(&metadata(), "1.2.3");
        let urls: Vec<&str> = elements(&list, "components")
            .iter()
            .map(|part| text(part, "purl"))
            .collect();
        assert_eq!(urls, ["pkg:cargo/deeper@1.0.0", "pkg:cargo/runs@1.0.0"]);
        assert_eq!(
            list["components"][0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
    }
}
