//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use turnpike_usage::Usage;

use crate::error::LabError;
use crate::session::{self, SessionOptions};
use crate::{compare, interrupt, ladder, report, show};

/// Wrong usage or a mistake in a study: nothing was run.
const EXIT_USAGE: u8 = 1;
/// Something failed on the way.
const EXIT_FAILED: u8 = 2;
/// Ctrl-C, as shells count it.
const EXIT_INTERRUPTED: u8 = 130;

/// Runs published studies of web servers on this machine and reports the results.
#[derive(Debug, Parser)]
#[command(name = "turnpike lab", max_term_width = 100)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the included studies
    List,
    /// Show a study: its published results, its contenders and its claims
    Show {
        /// A study's name, or the path of a file
        study: String,
        /// Print the file itself
        #[arg(long)]
        source: bool,
    },
    /// Run a study
    Run(Run),
    /// Write the report of a run again from its raw data
    Report {
        /// The folder of a run
        folder: PathBuf,
    },
    /// Compare two runs of a study, for example of two versions, days or machines
    Compare {
        /// The folder of the first run
        a: PathBuf,
        /// The folder of the second run
        b: PathBuf,
        /// Write the comparison as a page instead of printing it
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct Run {
    /// A study's name, or the path of a file
    study: String,
    /// Check that the study works: use fewer levels, repetitions and seconds
    #[arg(long)]
    quick: bool,
    /// Run only these levels: DIMENSION=LEVEL[,LEVEL], or a level alone; may be repeated
    #[arg(long, value_name = "LEVELS")]
    only: Vec<String>,
    /// The folder in which the run's folder is created
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Continue the last run of this study in DIR
    #[arg(long)]
    resume: bool,
    /// Repetitions of each case [the study's]
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// Seconds of each run [the study's]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// loopback, or netns: two network namespaces joined by a veth pair [the study's]
    #[arg(long, value_name = "NAME", value_parser = ["loopback", "netns"])]
    topology: Option<String>,
    /// Seed of the order and of all random choices [the study's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Do not show progress
    #[arg(short, long)]
    quiet: bool,
}

/// The command line of `turnpike lab`.
pub fn usage() -> Usage {
    turnpike_load::usage_of(&Options::command())
}

/// Runs `turnpike lab` with the arguments after its name. Exit status: 0; 1 for wrong usage or a
/// mistake in a study; 2 when something failed; 130 after Ctrl-C.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let name = OsString::from("turnpike lab");
    let options = match Options::try_parse_from(std::iter::once(&name).chain(arguments)) {
        Ok(options) => options,
        Err(error) => {
            turnpike_load::print_refusal("turnpike lab", &error);
            return ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { 0 });
        }
    };
    match carry_out(options.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("turnpike lab: {error}");
            ExitCode::from(match error {
                LabError::Study { .. } | LabError::Unknown(_) => EXIT_USAGE,
                LabError::Interrupted => EXIT_INTERRUPTED,
                _ => EXIT_FAILED,
            })
        }
    }
}

fn carry_out(command: Command) -> Result<(), LabError> {
    match command {
        Command::List => show::list(),
        Command::Show { study, source } => show::show(&study, source),
        Command::Run(run) => {
            let wish = SessionOptions {
                study: run.study,
                quick: run.quick,
                only: run.only,
                out: run.out,
                resume: run.resume,
                repetitions: run.repetitions,
                seconds: run.seconds,
                topology: run.topology,
                seed: run.seed,
                quiet: run.quiet,
            };
            // Before signals are blocked, which a command inherits.
            ladder::climb(&wish)?;
            interrupt::watch();
            let folder = session::run(&wish)?;
            println!("{}", folder.join("report.html").display());
            Ok(())
        }
        Command::Report { folder } => report::again(&folder),
        Command::Compare { a, b, html } => compare::compare(&a, &b, html.as_deref()),
    }
}
