//! `turnpike tune climb` from a bad start, for our server and for nginx: whether it finds the bad
//! settings, and whether its end is as near to the best of the whole grid as its goals ask for.
//!
//! The goals and their verdicts are the command's own; this chore runs it, shows them side by side
//! and fails where one is missed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::paper;
use super::records::{self, Table};
use crate::contender::Contender;
use crate::machine;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace;

/// The table in bench/README.md.
pub(super) const TABLE: Table = Table {
    name: "climb",
    markers: ("<!-- bench:climb:begin -->", "<!-- bench:climb:end -->"),
    measured: &[
        "Cargo.lock",
        "crates/http",
        "crates/lane",
        "crates/modules",
        "tools/tune",
    ],
};
/// The exit status of a climb that missed its goals, which its bundle tells in full.
const MISSED: i32 = 6;
/// The file of a bundle with the goals.
const GOALS: &str = "goals.json";

/// Climbs with both servers, or with one of them. Bundles that are whole in the folder already are
/// judged and not made again, so that a bench that was broken off goes on.
pub(super) fn run(arguments: &[String]) -> Outcome {
    let valued = ["--server", "--out", "--only"];
    let options = Options::parse(arguments, &valued, &["--debug", "--no-write"])?;
    let is_kept = !options.has("--no-write") && options.text("--out").is_none();
    if is_kept {
        records::check_committed(&TABLE)?;
    }
    let ours = Contender::ours(&options)?;
    let mut servers = vec![ours.clone(), Contender::nginx()?];
    if let Some(only) = options.text("--only") {
        servers.retain(|server| server.name == only);
        if servers.is_empty() {
            return Err("--only wants turnpike or nginx".to_owned());
        }
    }
    let out = folder(&options, is_kept);
    std::fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut all = Vec::new();
    for server in &servers {
        let bundle = out.join(&server.name);
        if !bundle.join(GOALS).exists() {
            climb(&ours.program, &server.program, &bundle)?;
        }
        all.push((server.name.clone(), read(&bundle)?));
    }
    let table = table(&all);
    println!("\n{table}");
    if is_kept {
        let text = format!("{HEAD}## Goals\n\n{table}");
        let readme = out.join("README.md");
        let written = std::fs::write(&readme, text);
        written.map_err(|error| format!("{}: {error}", readme.display()))?;
        records::note(&out, &TABLE)?;
        paper::write(&out, TABLE.markers)?;
    }
    judge(&all)
}

const HEAD: &str = "# Climbs from a bad start\n\nMade by `cargo xtask bench climb`. A folder for \
    each server has its ladder, its configuration and every run; `turnpike tune climb --replay \
    FOLDER/runs.json` decides again.\n\n";

/// Where the bundles are.
fn folder(options: &Options, is_kept: bool) -> PathBuf {
    if let Some(out) = options.text("--out") {
        return PathBuf::from(out);
    }
    let date = machine::first_line("date", &["-u", "+%Y-%m-%d"]);
    let name = format!("{date}-climb-{}", machine::slug());
    if is_kept {
        workspace::root().join("bench/results").join(name)
    } else {
        workspace::target().join("bench").join(name)
    }
}

/// Has our program climb with a server.
fn climb(program: &Path, server: &Path, bundle: &Path) -> Outcome {
    // What a climb that was broken off has left is empty; anything else is somebody's.
    let _ = std::fs::remove_dir(bundle);
    let mut command = Command::new(program);
    command.args(["tune", "climb", "--quick", "--grid", "--server"]);
    command.arg(server).arg("--bundle").arg(bundle);
    let status = command.status();
    let status = status.map_err(|error| format!("{}: {error}", program.display()))?;
    if status.success() || status.code() == Some(MISSED) {
        Ok(())
    } else {
        Err(format!("the climb ended with {status}"))
    }
}

/// The goals of a bundle.
fn read(bundle: &Path) -> Result<Value, String> {
    let path = bundle.join(GOALS);
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The goals side by side.
fn table(all: &[(String, Value)]) -> String {
    let mut text =
        "| server | bad settings found | goal | rate, the end over the best of the grid \
        | by CPU time | goal | verdict |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (name, goals) in all {
        let found = workspace::elements(goals, "found").len();
        let count = found + workspace::elements(goals, "not_found").len();
        let limited = match goals["client_limited"].as_bool() {
            Some(true) => ", the client was the limit",
            _ => "",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {found} of {count} | at least {} | {}{limited} | {} \
             | the interval reaches {} | {} |",
            goals["found_min"],
            ratio(&goals["rate"], goals),
            ratio(&goals["cpu"], goals),
            goals["ratio_min"],
            if is_reached(goals) {
                "met"
            } else {
                "**missed**"
            }
        );
    }
    text
}

fn ratio(value: &Value, goals: &Value) -> String {
    let number = |name: &str| value[name].as_f64();
    match (number("ratio"), number("low"), number("high")) {
        (Some(ratio), Some(low), Some(high)) => format!("{ratio:.3} ({low:.3} to {high:.3})"),
        _ if workspace::elements(goals, "differing").is_empty() => "the same".to_owned(),
        _ => "none".to_owned(),
    }
}

fn is_reached(goals: &Value) -> bool {
    goals["reached"].as_bool() == Some(true)
}

fn judge(all: &[(String, Value)]) -> Outcome {
    let missed = all.iter().filter(|(_, goals)| !is_reached(goals));
    let missed: Vec<&str> = missed.map(|(name, _)| name.as_str()).collect();
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("the goals are missed with {}", missed.join(", ")))
    }
}

#[cfg(test)]
mod tests;
