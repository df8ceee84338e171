//! The command line.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use turnpike_host::Host;
use turnpike_usage::Usage;

use crate::climb::{self, Climb};
use crate::facts::{self, Facts};
use crate::findings::{self, Finding};
use crate::row::Severity;
use crate::undo::{self, Apply, PlanCommand, Revert, Status};
use crate::{page, report};

/// Wrong usage, or a file that cannot be read: nothing was looked at.
pub(crate) const EXIT_USAGE: u8 = 1;
/// Something failed on the way.
pub(crate) const EXIT_FAILED: u8 = 2;
/// The worst finding is a warning.
const EXIT_WARNING: u8 = 3;
/// The worst finding is a problem.
const EXIT_PROBLEM: u8 = 4;

/// Finds what limits this machine's rate of connections, and changes it with undo.
#[derive(Debug, Parser)]
#[command(name = "turnpike tune", max_term_width = 100)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what limits this machine; changes nothing
    #[command(
        after_help = "Exit status: 0 nothing worse than a note, 3 a warning, 4 a problem; \
        1 wrong usage."
    )]
    Check(Check),
    /// Print the changes that check's findings ask for; changes nothing
    Plan(PlanCommand),
    /// Make the changes of the plan; without --yes only show them
    #[command(
        after_help = "Each change is noted in the journal (/var/lib/turnpike/tune) before it is \
        made. Exit status: 0, 2 if a change failed."
    )]
    Apply(Apply),
    /// Put everything back that apply has changed, also after a crash or a restart
    #[command(
        after_help = "Exit status: 0, 5 if something was left because somebody else has \
        changed it since."
    )]
    Revert(Revert),
    /// Show the changes that are made, and whether they are in force
    Status(Status),
    /// Find the best values of settings by experiment, in network namespaces of its own, or with
    /// --live on a server that has clients
    #[command(
        after_help = "Seven settings start with their worst value, the others with the default. \
        Without --live, the machine's own settings are not touched. Exit status: 0, 2 if the run \
        was stopped, 6 if a goal of --grid is missed."
    )]
    Climb(Climb),
    /// Watch over a climb
    #[command(hide = true)]
    Guard {
        process: u32,
        folder: PathBuf,
        state: Option<PathBuf>,
    },
}

/// Where the facts come from.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// Look at this configuration of nginx or turnpike too, with its logs
    #[arg(short, long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Read what --record wrote on any machine, instead of looking at this one
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Watch counters for so many seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// The folder below which the files of the system are
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub(crate) root: PathBuf,
}

#[derive(Debug, Args)]
struct Check {
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print only the evidence of each finding
    #[arg(short, long, conflicts_with = "json")]
    brief: bool,
    /// Explain a finding and exit
    #[arg(long, value_name = "ID")]
    explain: Option<String>,
    /// Write what was read of this machine to a file, without addresses or names
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// The command line of `turnpike tune`.
pub fn usage() -> Usage {
    turnpike_load::usage_of(&Options::command())
}

/// Runs `turnpike tune` with the arguments after its name. Exit status: 0; 1 for wrong usage; 2
/// after a failure; `check` also returns 3 for a warning and 4 for a problem.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let name = OsString::from("turnpike tune");
    let options = match Options::try_parse_from(std::iter::once(&name).chain(arguments)) {
        Ok(options) => options,
        Err(error) => {
            turnpike_load::print_refusal("turnpike tune", &error);
            return ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { 0 });
        }
    };
    let result = match options.command {
        Command::Check(check) => run_check(&check),
        Command::Plan(command) => undo::plan(&command),
        Command::Apply(apply) => undo::apply(&apply),
        Command::Revert(revert) => undo::revert(&revert),
        Command::Status(status) => undo::status(&status),
        Command::Climb(command) => climb::run(&command),
        Command::Guard {
            process,
            folder,
            state,
        } => Ok(climb::guard(process, &folder, state.as_deref())),
    };
    result.unwrap_or_else(|(status, text)| {
        eprintln!("turnpike tune: {text}");
        ExitCode::from(status)
    })
}

/// What went wrong, with the exit status.
pub(crate) type Failed = (u8, String);

fn run_check(check: &Check) -> Result<ExitCode, Failed> {
    if let Some(id) = &check.explain {
        return explain(id);
    }
    let facts = read(&check.source)?;
    if let Some(path) = &check.record {
        let text = serde_json::to_string_pretty(&facts).map_err(|error| failed(path, &error))?;
        std::fs::write(path, text + "\n").map_err(|error| failed(path, &error))?;
    }
    let findings = findings::judge(&facts);
    say(&if check.json {
        report::json(&facts, &findings)
    } else {
        report::text(&facts, &findings, check.brief, report::width())
    });
    Ok(status(&findings))
}

fn status(findings: &[Finding]) -> ExitCode {
    let worst = findings.iter().map(|finding| finding.seen.severity).max();
    match worst {
        Some(Severity::Problem) => ExitCode::from(EXIT_PROBLEM),
        Some(Severity::Warning) => ExitCode::from(EXIT_WARNING),
        Some(Severity::Note) | None => ExitCode::SUCCESS,
    }
}

fn explain(id: &str) -> Result<ExitCode, Failed> {
    let Some(row) = findings::row(id) else {
        let ids: Vec<&str> = findings::rows().map(|row| row.id).collect();
        let near = turnpike_conf::did_you_mean(id, ids.iter().copied());
        let near = near.unwrap_or_else(|| ".".to_owned());
        let text = format!(
            "there is no finding \"{id}\"{near} There are: {}",
            ids.join(" ")
        );
        return Err((EXIT_USAGE, text));
    };
    say(&page::explanation(row, report::width()));
    Ok(ExitCode::SUCCESS)
}

/// The facts of this machine, or of a recorded one.
pub(crate) fn read(source: &Source) -> Result<Facts, Failed> {
    let host = Host::under(&source.root);
    let mut facts = match &source.facts {
        Some(path) => recorded(path)?,
        None => facts::read(&host, &source.root, source.seconds),
    };
    if let Some(file) = &source.conf {
        let added = facts.add_configuration(&host, file);
        added.map_err(|text| (EXIT_USAGE, text))?;
    }
    Ok(facts)
}

fn recorded(path: &Path) -> Result<Facts, Failed> {
    let usage = |text: String| (EXIT_USAGE, format!("{}: {text}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    let facts: Facts = serde_json::from_str(&text).map_err(|error| usage(error.to_string()))?;
    if facts.schema == facts::SCHEMA {
        Ok(facts)
    } else {
        Err(usage(format!(
            "not a record of `turnpike tune check --record`: its schema is \"{}\" and not \"{}\"",
            facts.schema,
            facts::SCHEMA
        )))
    }
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Failed {
    (EXIT_FAILED, format!("{}: {error}", path.display()))
}

fn seconds(word: &str) -> Result<f64, String> {
    /// Longer, and the command looks as if it hung.
    const SECONDS_MAX: f64 = 600.0;
    let seconds: f64 = word
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    if (0.0..=SECONDS_MAX).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("from 0 to {SECONDS_MAX} seconds"))
    }
}

/// Writes to standard output; a reader that went away is no reason to break off.
pub(crate) fn say(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}
