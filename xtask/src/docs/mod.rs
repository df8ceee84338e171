//! The references of directives and metrics, which the binary prints. This chore writes them to the
//! documentation, or checks that the documentation is up to date. It checks the links of all pages,
//! and builds the pages as a site.

mod links;
pub(crate) mod site;
mod site_links;

use std::process::Command;

use crate::outcome::Outcome;
use crate::workspace;

/// Documents and the words that make the binary print them.
const DOCUMENTS: &[(&str, &[&str])] = &[
    ("docs/directives.md", &["directives"]),
    ("docs/support.md", &["directives", "--support"]),
    ("docs/metrics.md", &["metric-names"]),
    ("docs/variables.md", &["variable-names"]),
    ("docs/tune.md", &["findings"]),
];

/// Writes every document, or with `--check` compares; with `--site` builds the site instead.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    if arguments.iter().any(|argument| argument == "--site") {
        return site::build();
    }
    let check = arguments.iter().any(|argument| argument == "--check");
    workspace::build_for_debugging()?;
    let program = workspace::target().join("debug/turnpike");
    for (path, words) in DOCUMENTS {
        let file = workspace::root().join(path);
        let output = Command::new(&program)
            .args(*words)
            .output()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        if !output.status.success() {
            let report = String::from_utf8_lossy(&output.stderr);
            return Err(format!("turnpike {}: {report}", words.join(" ")));
        }
        if check {
            let written = std::fs::read(&file).map_err(|error| format!("{path}: {error}"))?;
            if written != output.stdout {
                return Err(format!(
                    "{path} is out of date; please run: cargo xtask docs"
                ));
            }
            println!("docs: {path} is current");
        } else {
            std::fs::write(&file, &output.stdout).map_err(|error| format!("{path}: {error}"))?;
            println!("docs: {path} written");
        }
    }
    links::check()
}
