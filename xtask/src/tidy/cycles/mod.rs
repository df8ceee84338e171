//! Import cycles between the modules of one crate. Modules in a cycle can be read, tested and moved
//! only together, so the biggest cycle of a crate has a ceiling, which may only come down.
//!
//! An edge is a path that leads from a module to another one: `use` lines and paths in expressions
//! and types, `super` and re-exports included. An edge leads to the module that the path names, not
//! to the one where a re-exported name is defined: the re-export is an edge of its own. A `mod`
//! line is no edge, and code for tests only has none. Calls of methods need no path and are not
//! seen.

mod components;
mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::finding::Finding;
use modules::Crate;

/// The size in modules that no cycle of a crate may exceed unless [`CEILINGS`] grants more.
const GOAL: usize = 6;

/// The crates whose largest cycle is still above the goal, with its size. A number here is lowered
/// when the cycle has become smaller, and never raised.
const CEILINGS: &[(&str, usize)] = &[];

/// Reads the text of a file below the workspace's root.
type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The cycles of one crate, the biggest first.
pub(super) struct Cycles {
    /// The folder that holds the crate's manifest.
    folder: PathBuf,
    /// The file that the crate starts with.
    root: PathBuf,
    cycles: Vec<Cycle>,
}

/// Modules of which each leads to every other one.
struct Cycle {
    members: Vec<Member>,
}

/// A module of a cycle, and the modules of this cycle that it names.
struct Member {
    name: String,
    file: PathBuf,
    /// Name of the other module and the first line that names it.
    edges: Vec<(String, usize)>,
}

/// Finds the cycles of every crate in the workspace.
pub(super) fn find(files: &[PathBuf], read: Read<'_>) -> Vec<Cycles> {
    let known: BTreeSet<&Path> = files.iter().map(PathBuf::as_path).collect();
    let roots = files.iter().filter(|file| is_crate_root(file));
    roots
        .filter_map(|root| {
            let folder = root.ancestors().find(|folder| folder.ends_with("src"))?;
            Some(Cycles {
                folder: folder.parent()?.to_path_buf(),
                root: root.clone(),
                cycles: cycles_of(&Crate::read(root, &|file| {
                    known.contains(file).then(|| read(file)).flatten()
                })),
            })
        })
        .collect()
}

/// One finding for each cycle that is larger than its crate's ceiling.
pub(super) fn check(found: &[Cycles]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for cycles in found {
        let ceiling = ceiling(&cycles.folder, CEILINGS);
        for cycle in &cycles.cycles {
            let size = cycle.members.len();
            if size > ceiling {
                let names: Vec<&str> = cycle.members.iter().map(|one| one.name.as_str()).collect();
                let text = format!(
                    "an import cycle of {size} modules, at most {ceiling}: {} \
                     (`cargo xtask tidy --cycles` prints its edges)",
                    names.join(", ")
                );
                findings.push(Finding::new(&cycles.root, 1, text));
            }
        }
    }
    findings
}

/// The entries of [`CEILINGS`] that can be lowered, one sentence for each crate.
pub(super) fn slack(found: &[Cycles]) -> Vec<String> {
    slack_in(found, CEILINGS)
}

fn slack_in(found: &[Cycles], ceilings: &[(&str, usize)]) -> Vec<String> {
    let mut biggest: BTreeMap<&Path, usize> = BTreeMap::new();
    for cycles in found {
        let of_crate = biggest.entry(&cycles.folder).or_default();
        *of_crate = cycles.biggest().max(*of_crate);
    }
    let mut sentences = Vec::new();
    for (folder, ceiling) in ceilings {
        let size = biggest.get(Path::new(folder)).copied().unwrap_or_default();
        if size < *ceiling {
            let cure = if size > GOAL {
                format!("lower it to {size}")
            } else {
                "remove its row".to_owned()
            };
            sentences.push(format!(
                "{folder}: the biggest import cycle has {size} modules, the ceiling is {ceiling}: \
                 {cure} in CEILINGS (xtask/src/tidy/cycles/mod.rs)"
            ));
        }
    }
    sentences
}

/// Writes the cycles of all crates, or of the one in `only`, with the edges that make them.
pub(super) fn write(found: &[Cycles], only: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    for cycles in found {
        if only.is_some_and(|only| !cycles.folder.ends_with(only)) {
            continue;
        }
        let ceiling = ceiling(&cycles.folder, CEILINGS);
        writeln!(
            out,
            "{}: {} cycles, the biggest has {} modules (ceiling {ceiling}, goal {GOAL})",
            cycles.root.display(),
            cycles.cycles.len(),
            cycles.biggest(),
        )?;
        for cycle in &cycles.cycles {
            writeln!(out, "  {} modules", cycle.members.len())?;
            for member in &cycle.members {
                writeln!(out, "    {} ({})", member.name, member.file.display())?;
                for (to, line) in &member.edges {
                    writeln!(out, "      line {line}: {to}")?;
                }
            }
        }
    }
    Ok(())
}

impl Cycles {
    fn biggest(&self) -> usize {
        let first = self.cycles.first();
        first.map_or(0, |cycle| cycle.members.len())
    }
}

/// Whether cargo starts a library or a program of a package from this file.
fn is_crate_root(file: &Path) -> bool {
    let in_src = |path: &Path| path.ends_with("src");
    let folder = file.parent().unwrap_or(Path::new(""));
    let is_main = file.ends_with("lib.rs") || file.ends_with("main.rs");
    let is_program = folder.ends_with("bin") && folder.parent().is_some_and(in_src);
    (is_main && in_src(folder)) || (is_program && file.extension().is_some_and(|end| end == "rs"))
}

fn ceiling(folder: &Path, ceilings: &[(&str, usize)]) -> usize {
    let row = ceilings.iter().find(|(name, _)| Path::new(name) == folder);
    row.map_or(GOAL, |(_, size)| *size)
}

fn cycles_of(of: &Crate) -> Vec<Cycle> {
    let edges: Vec<Vec<usize>> = of
        .modules
        .iter()
        .map(|module| module.edges.keys().copied().collect())
        .collect();
    let mut cycles: Vec<Cycle> = components::strongly_connected(&edges)
        .into_iter()
        .filter(|members| members.len() > 1)
        .map(|members| cycle(of, &members))
        .collect();
    cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.members.len()));
    cycles
}

fn cycle(of: &Crate, members: &[usize]) -> Cycle {
    let member = |index: &usize| {
        let module = &of.modules[*index];
        let inside = module.edges.iter().filter(|(to, _)| members.contains(to));
        Member {
            name: module.name(),
            file: module.file.clone(),
            edges: inside
                .map(|(to, line)| (of.modules[*to].name(), *line))
                .collect(),
        }
    };
    let mut members: Vec<Member> = members.iter().map(member).collect();
    members.sort_by(|one, other| one.name.cmp(&other.name));
    Cycle { members }
}

#[cfg(test)]
mod tests;
