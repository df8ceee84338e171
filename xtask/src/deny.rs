//! The rules for dependencies: licences compatible with Apache-2.0, crates of the public registry
//! that Cargo.lock pins, and no crate in two major versions without a reason.
//!
//! The rules are in `deny.toml`, in cargo-deny's format, so that either tool can check them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::outcome::Outcome;
use crate::workspace::{self, elements, text};

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Our targets: crates for other systems are never built.
pub(crate) const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Rules as written in `deny.toml`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rules {
    licenses: BTreeSet<String>,
    /// The crates that may occur twice, with their reasons.
    twice: BTreeSet<String>,
}

/// Judges every dependency.
pub(crate) fn run(_arguments: &[String]) -> Outcome {
    let file = workspace::root().join("deny.toml");
    let written = std::fs::read_to_string(&file).map_err(|error| format!("deny.toml: {error}"))?;
    let rules = rules(&written);
    let options = ["--locked", "--filter-platform", PLATFORM];
    let metadata = workspace::metadata(&options)?;
    // The fuzz targets are a separate workspace, and no part of the binary: duplicates do no harm
    // there, but licences and sources count.
    let fuzz = workspace::root().join("fuzz/Cargo.toml");
    let fuzz = fuzz.display().to_string();
    let fuzz = workspace::metadata(&[&options[..], &["--manifest-path", &fuzz]].concat())?;
    let mut findings = findings(&metadata, &rules);
    findings.extend(origins(&fuzz, &rules));
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!(
                "deny: {} crates, nothing to say",
                elements(&metadata, "packages").len()
            );
            Ok(())
        }
        count => Err(format!("{count} findings")),
    }
}

fn findings(metadata: &Value, rules: &Rules) -> Vec<String> {
    let mut findings = origins(metadata, rules);
    findings.extend(twice(metadata, rules));
    findings
}

/// Licences and sources that are not on the lists.
fn origins(metadata: &Value, rules: &Rules) -> Vec<String> {
    let mut findings = Vec::new();
    for package in elements(metadata, "packages") {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let license = text(package, "license").replace('/', " OR ");
        if !is_allowed(&license, &rules.licenses) {
            findings.push(format!(
                "{name} {version}: licence \"{license}\" is not on the list"
            ));
        }
        match package["source"].as_str() {
            None | Some(REGISTRY) => {}
            Some(source) => findings.push(format!("{name} {version}: comes from {source}")),
        }
    }
    findings
}

/// Crates in two majors without a reason, and reasons without such a crate.
fn twice(metadata: &Value, rules: &Rules) -> Vec<String> {
    let mut findings = Vec::new();
    let mut majors: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for package in elements(metadata, "packages") {
        let (name, version) = (text(package, "name"), text(package, "version"));
        majors.entry(name).or_default().insert(major(version));
    }
    for (name, majors) in &majors {
        if majors.len() > 1 && !rules.twice.contains(*name) {
            let majors = majors.iter().cloned().collect::<Vec<_>>().join(" and ");
            findings.push(format!("{name}: there in {majors}, no reason in deny.toml"));
        }
    }
    for name in &rules.twice {
        if majors
            .get(name.as_str())
            .is_none_or(|majors| majors.len() < 2)
        {
            findings.push(format!("deny.toml: {name} is no longer there twice"));
        }
    }
    findings
}

/// The part of a version within which cargo would unify: `2`, `0.4`, `0.0.3`.
fn major(version: &str) -> String {
    let core = version.split(['-', '+']).next().unwrap_or(version);
    let mut kept = Vec::new();
    for part in core.split('.') {
        kept.push(part);
        if part != "0" {
            break;
        }
    }
    kept.join(".")
}

/// Whether an SPDX expression leaves a choice of allowed licences only.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let verdict = any(&words, &mut at, allowed);
    verdict && at == words.len()
}

fn any(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut verdict = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        verdict |= all(words, at, allowed);
    }
    verdict
}

fn all(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut verdict = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        verdict &= one(words, at, allowed);
    }
    verdict
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let verdict = any(words, at, allowed);
        *at += 1; // the closing one; if it is not there, `is_allowed` sees that the end is missed
        return verdict;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.contains(*word)
}

/// Reads the two lists that we use: quoted texts of `allow`, crates of `skip`.
fn rules(written: &str) -> Rules {
    let mut rules = Rules::default();
    let mut list = "";
    for line in written
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
    {
        match line.split_once('=') {
            Some((key, _)) if key.trim() == "allow" => list = "allow",
            Some((key, _)) if key.trim() == "skip" => list = "skip",
            _ if line == "]" => list = "",
            _ => {
                let quoted = line.split('"').nth(1).unwrap_or_default().to_owned();
                match list {
                    _ if quoted.is_empty() => {}
                    "allow" => drop(rules.licenses.insert(quoted)),
                    "skip" => drop(rules.twice.insert(quoted)),
                    _ => {}
                }
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests;
