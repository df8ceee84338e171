//! The references of directives and metrics, which the binary prints. This chore writes them to the
//! documentation, or checks that the documentation is up to date. It checks the links of all pages,
//! and builds the pages as a site.

mod links;
pub(crate) mod site;
mod site_links;

use std::path::Path;
use std::process::Command;

use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// Documents and the words that make the binary print them.
const DOCUMENTS: &[(&str, &[&str])] = &[
    ("docs/support.md", &["directives", "--support"]),
    ("docs/metrics.md", &["metric-names"]),
    ("docs/variables.md", &["variable-names"]),
    ("docs/tune.md", &["findings"]),
];

/// The pages of the reference of directives: a list, and a page for each family.
const DIRECTIVES: [&str; 2] = ["directives.md", "directives"];

/// Writes every document, or with `--check` compares; with `--site` builds the site instead.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    if arguments.iter().any(|argument| argument == "--site") {
        return site::build();
    }
    let check = arguments.iter().any(|argument| argument == "--check");
    workspace::build_for_debugging()?;
    for (path, words) in DOCUMENTS {
        let file = workspace::root().join(path);
        let output = turnpike(words)?;
        if check {
            let written = std::fs::read(&file).map_err(|error| format!("{path}: {error}"))?;
            if written != output {
                return Err(out_of_date(path));
            }
            println!("docs: {path} is current");
        } else {
            std::fs::write(&file, &output).map_err(|error| format!("{path}: {error}"))?;
            println!("docs: {path} written");
        }
    }
    directives(check)?;
    links::check()
}

/// What the binary prints after these words.
fn turnpike(words: &[&str]) -> Result<Vec<u8>, String> {
    let program = workspace::target().join("debug/turnpike");
    let output = Command::new(&program)
        .args(words)
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        let report = String::from_utf8_lossy(&output.stderr);
        Err(format!("turnpike {}: {report}", words.join(" ")))
    }
}

fn out_of_date(path: &str) -> String {
    format!("{path} is out of date; please run: cargo xtask docs")
}

/// Has the binary write the reference of directives, and compares or replaces the pages that are
/// there, so that a page of a family that is gone goes too.
fn directives(check: bool) -> Outcome {
    let docs = workspace::root().join("docs");
    let made = workspace::target().join("reference");
    remove(&made)?;
    let report = turnpike(&["directives", "--write", &made.to_string_lossy()])?;
    if check {
        let compared = Command::new("diff")
            .args(["-rq", "--"])
            .args([&docs.join(DIRECTIVES[1]), &made.join(DIRECTIVES[1])])
            .output()
            .map_err(|error| format!("diff: {error}"))?;
        let list = |folder: &Path| std::fs::read(folder.join(DIRECTIVES[0])).ok();
        if !compared.status.success() || list(&docs) != list(&made) {
            print!("{}", String::from_utf8_lossy(&compared.stdout));
            return Err(out_of_date(
                "docs/directives.md or a page of docs/directives",
            ));
        }
    } else {
        remove(&docs.join(DIRECTIVES[1]))?;
        must(
            Command::new("cp")
                .arg("-r")
                .args(DIRECTIVES.map(|name| made.join(name)))
                .arg(&docs),
        )?;
    }
    print!(
        "docs: the directives' pages are current; {}",
        String::from_utf8_lossy(&report)
    );
    Ok(())
}

fn remove(folder: &Path) -> Outcome {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}
