//! Runs every test suite of the workspace: as the current user and, if that is root, once more as
//! an ordinary user. The suites are built once. Tests that were skipped without root are named and
//! counted, so that such a run never looks complete.

mod report;
mod user;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::{self, must, text};
use report::Report;
use user::User;

/// A test executable.
struct Suite {
    /// The folder of the crate and the name of the target.
    name: String,
    executable: PathBuf,
    /// Where cargo runs it.
    folder: PathBuf,
}

/// Builds and runs the suites.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--only"], &["--once"])?;
    let suites: Vec<Suite> = build()?
        .into_iter()
        .filter(|suite| {
            options
                .text("--only")
                .is_none_or(|part| suite.name.contains(part))
        })
        .collect();
    // Users may open more than the 1024 files that a login begins with, and a few tests do.
    turnpike_host::raise_file_limit();
    let mut report = Report::default();
    run_all(&suites, None, &mut report)?;
    if options.text("--only").is_none() {
        let start = Instant::now();
        must(workspace::cargo().args(["test", "--workspace", "--locked", "--doc", "--quiet"]))?;
        println!(
            "unit: documentation's examples, {} s",
            start.elapsed().as_secs()
        );
    }
    if nix::unistd::geteuid().is_root() && !options.has("--once") {
        let reached: Vec<&Path> = suites
            .iter()
            .map(|suite| suite.executable.as_path())
            .collect();
        let user = User::ordinary(&reached)?;
        println!("unit: once more as an ordinary user (uid {})", user::UID);
        run_all(&suites, Some(&user), &mut report)?;
    }
    report.finish()
}

/// Builds every suite, and reads their paths from cargo's messages.
fn build() -> Result<Vec<Suite>, String> {
    let output = workspace::cargo()
        .args(["test", "--workspace", "--locked", "--no-run"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo test does not start: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build".to_owned());
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let suites: Vec<Suite> = messages.lines().filter_map(suite).collect();
    match suites.is_empty() {
        true => Err("cargo test names no test executable".to_owned()),
        false => Ok(suites),
    }
}

/// The suite in a message of cargo, if any.
fn suite(message: &str) -> Option<Suite> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_test = message["profile"]["test"] == true;
    let executable = message["executable"].as_str().filter(|_| is_test)?;
    let folder = Path::new(text(&message, "manifest_path")).parent()?;
    let place = folder.strip_prefix(workspace::root()).unwrap_or(folder);
    Some(Suite {
        name: format!("{} {}", place.display(), text(&message["target"], "name")),
        executable: executable.into(),
        folder: folder.to_path_buf(),
    })
}

fn run_all(suites: &[Suite], user: Option<&User>, report: &mut Report) -> Outcome {
    for suite in suites {
        let mut command = match user {
            None => Command::new(&suite.executable),
            Some(user) => user.command(&suite.executable),
        };
        let start = Instant::now();
        let output = command
            .current_dir(&suite.folder)
            .env("CARGO_MANIFEST_DIR", &suite.folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", suite.executable.display()))?;
        report.add(&suite.name, &output, start.elapsed());
    }
    Ok(())
}
