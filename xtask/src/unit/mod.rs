//! Runs every test of the workspace twice: as the current user with every server in its sandbox,
//! and as an ordinary user without. The suites are built once. Integration tests of the server have
//! a process each, so that none meets the folder, limits or panics of another. Tests that were
//! skipped without root are named and counted, so that such a run never looks complete.

mod failures;
mod home;
mod job;
mod pool;
mod report;
mod user;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde_json::Value;

use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::{self, must, text};
use home::Home;
use job::Job;
use report::Report;
use user::User;

/// The variable by which the testkit puts servers into their sandbox.
const SANDBOX: &str = "TURNPIKE_TEST_SANDBOX";

/// Suites that compare thousands of cases, which do not depend on who runs them. They run once, and
/// `--other-ways` has them as an ordinary user.
const COMPARISONS: [&str; 2] = ["crates/server comparisons", "tools/lab report"];

/// The suite whose tests have a process each.
const TESTS_APART: &str = "crates/server it";

/// The suite that counts what requests cost: nothing else runs beside it.
const COUNTS: &str = "crates/server counts";

/// A test executable.
struct Suite {
    /// The folder of the crate and the name of the target.
    name: String,
    executable: PathBuf,
    /// Where cargo runs it.
    folder: PathBuf,
}

/// One run of all suites.
struct Pass<'a> {
    /// `None`: the current user.
    user: Option<&'a User>,
    /// The home folder of tests that run as the current user.
    home: &'a Home,
    /// Whether every server under test is in its sandbox.
    is_sandboxed: bool,
    /// Whether the comparisons are a part of it.
    has_comparisons: bool,
}

/// Builds and runs the suites.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--only"], &["--once", "--other-ways"])?;
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
    let reached: Vec<&Path> = suites
        .iter()
        .map(|suite| suite.executable.as_path())
        .collect();
    let is_root = nix::unistd::geteuid().is_root();
    let ordinary = if is_root && !options.has("--once") {
        Some(User::ordinary(&reached)?)
    } else {
        None
    };
    // Tests make files whose modes others look at.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    let home = Home::create()?;
    let mut report = Report::default();
    for pass in passes(&options, ordinary.as_ref(), &home) {
        println!("unit: {pass}");
        run_all(&suites, &pass, &mut report)?;
    }
    if options.text("--only").is_none() {
        let start = Instant::now();
        must(workspace::cargo().args(["test", "--workspace", "--locked", "--doc", "--quiet"]))?;
        println!(
            "unit: documentation's examples, {} s",
            start.elapsed().as_secs()
        );
    }
    report.finish()
}

/// Two runs meet every user and the sandbox; `--other-ways` are the two that are left then.
fn passes<'a>(options: &Options, ordinary: Option<&'a User>, home: &'a Home) -> Vec<Pass<'a>> {
    let pass = |user, is_sandboxed| Pass {
        user,
        home,
        is_sandboxed,
        has_comparisons: true,
    };
    match options.has("--once") {
        true => vec![pass(None, false)],
        false if options.has("--other-ways") => vec![pass(None, false), pass(ordinary, true)],
        false => {
            let mut second = pass(ordinary, false);
            second.has_comparisons = false;
            vec![pass(None, true), second]
        }
    }
}

impl fmt::Display for Pass<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.user {
            None => write!(formatter, "as the current user")?,
            Some(_) => write!(formatter, "as an ordinary user (uid {})", user::UID)?,
        }
        if self.is_sandboxed {
            write!(formatter, ", every server in its sandbox")?;
        } else {
            write!(formatter, ", no server in a sandbox")?;
        }
        if self.has_comparisons {
            Ok(())
        } else {
            write!(formatter, ", without the comparisons that ran before")
        }
    }
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
    if suites.is_empty() {
        Err("cargo test names no test executable".to_owned())
    } else {
        Ok(suites)
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

/// Runs what a pass has: most of it side by side, then what wants the machine for itself.
fn run_all(suites: &[Suite], pass: &Pass, report: &mut Report) -> Outcome {
    let is_part =
        |suite: &&Suite| pass.has_comparisons || !COMPARISONS.contains(&suite.name.as_str());
    let (alone, beside): (Vec<&Suite>, Vec<&Suite>) = suites
        .iter()
        .filter(is_part)
        .partition(|suite| suite.name == COUNTS);
    let mut jobs = Vec::new();
    for suite in beside {
        if suite.name == TESTS_APART {
            jobs.extend(job::for_each_test(suite)?);
        } else {
            jobs.push(Job::of(suite));
        }
    }
    pool::run(jobs, pool::WORKERS, pass, report)?;
    let jobs = alone.into_iter().map(Job::of).collect();
    pool::run(jobs, 1, pass, report)?;
    report.add_strays(pool::end_strays()?);
    Ok(())
}
