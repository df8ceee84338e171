//! `tune climb`: finds the best levels of seven knobs by experiment, in network namespaces of its
//! own, as study S3 did by hand: one step, paired runs, keep or undo.
//!
//! `knobs` says what is moved, `search` decides, and is pure but for the runs that a `Bench` gives;
//! `field` makes real runs, a record gives them again.

mod field;
mod guard;
mod knobs;
mod record;
mod search;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use turnpike_lab::bench;

use crate::cli::{EXIT_FAILED, EXIT_USAGE, Failed, say};
use crate::report;
use field::{Field, Wish};
use knobs::Levels;
use search::Effort;

pub(crate) use guard::run as guard;

#[derive(Debug, Args)]
pub(crate) struct Climb {
    /// Shorter runs and fewer pairs: about three minutes
    #[arg(long)]
    quick: bool,
    /// The server: a program that takes nginx's configuration with -c
    #[arg(long, value_name = "PROGRAM", default_value = "nginx")]
    server: PathBuf,
    /// Connections that the load generator keeps open
    #[arg(long, value_name = "N", default_value_t = 64)]
    connections: usize,
    /// Undo a step that makes the 99th percentile of latency longer than N times
    #[arg(long, value_name = "N", default_value_t = 3.0)]
    p99_factor: f64,
    /// Write every run to a file, which --replay takes
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Decide again from recorded runs; runs nothing
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,
}

/// `tune climb`.
pub(crate) fn run(command: &Climb) -> Result<ExitCode, Failed> {
    let effort = Effort {
        pairs: if command.quick { 4 } else { 8 },
        p99_factor_max: command.p99_factor,
    };
    if let Some(path) = &command.replay {
        let mut recorded = record::read(path).map_err(|text| (EXIT_USAGE, text))?;
        let climbed = search::climb(&mut recorded, Levels::default(), effort);
        let climbed = climbed.map_err(|text| (EXIT_USAGE, text))?;
        say(&table::text(&climbed, report::width()));
        return Ok(ExitCode::SUCCESS);
    }
    if !nix::unistd::geteuid().is_root() {
        let text = "root is needed: climb makes network namespaces of its own";
        return Err((EXIT_FAILED, text.to_owned()));
    }
    bench::watch();
    guard::clean_dead();
    let folder = guard::folder(std::process::id());
    let result = real(command, effort, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    result.map_err(|text| (EXIT_FAILED, format!("{text}; everything is put back")))
}

fn real(command: &Climb, effort: Effort, folder: &Path) -> Result<ExitCode, String> {
    let wish = Wish {
        program: command.server.clone(),
        connections: command.connections,
        seconds: if command.quick { 0.6 } else { 3.0 },
    };
    let guard = guard::start(folder)?;
    let mut field = Field::new(wish, folder, allowed_cpus())?;
    let climbed = search::climb(&mut field, Levels::default(), effort);
    eprintln!();
    if let Some(path) = &command.record {
        record::write(path, &field.runs)?;
    }
    let climbed = climbed?;
    say(&table::text(&climbed, report::width()));
    say(&format!(
        "\nThe final configuration:\n\n{}",
        field.configuration(climbed.levels)
    ));
    for (path, value) in climbed.levels.settings() {
        say(&format!("# {} = {value}\n", path.replace('/', ".")));
    }
    drop(field);
    guard.release();
    Ok(ExitCode::SUCCESS)
}

/// The CPUs that this process may use.
fn allowed_cpus() -> Vec<usize> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    turnpike_host::list(line.unwrap_or("0"))
}
