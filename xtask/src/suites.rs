//! Runs suites of the Makefile one after the other and shows the seconds of each, so that a slow
//! one is noticed. The first failure ends the run.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// Runs the named targets of the Makefile.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    if arguments.is_empty() {
        return Err("name at least one target of the Makefile".to_owned());
    }
    let _ = std::fs::remove_file(notes()); // of a run before; there may be none
    let begin = Instant::now();
    let mut lines = Vec::new();
    for name in arguments {
        let start = Instant::now();
        let outcome = must(
            Command::new("make")
                .current_dir(workspace::root())
                .args(["--no-print-directory", name]),
        );
        lines.push(format!("{name:<16} {:>5} s", start.elapsed().as_secs()));
        println!("suites: {}", lines.last().map_or("", String::as_str));
        if let Err(message) = outcome {
            return Err(format!("{name} failed: {message}"));
        }
    }
    println!("suites: all passed");
    for line in &lines {
        println!("  {line}");
    }
    println!("  {:<16} {:>5} s", "together", begin.elapsed().as_secs());
    print!("{}", std::fs::read_to_string(notes()).unwrap_or_default());
    Ok(())
}

/// Keeps a line for the end of the run, when it is the last that a person sees.
///
/// # Errors
/// The target folder cannot be written.
pub(crate) fn note(line: &str) -> Outcome {
    std::fs::create_dir_all(workspace::target())
        .and_then(|()| std::fs::write(notes(), format!("  {line}\n")))
        .map_err(|error| format!("{}: {error}", notes().display()))
}

fn notes() -> PathBuf {
    workspace::target().join("suites.txt")
}
