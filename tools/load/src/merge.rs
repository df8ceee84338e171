//! `turnpike load merge`: adds up HdrHistogram logs, of this tool or of any other.
//!
//! Percentiles of several machines cannot be averaged; their histograms can be added.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{CommandFactory as _, Parser};

use crate::report::hdr::{self, Tagged};
use crate::units::show_time_us;

/// Adds up HdrHistogram logs and prints their percentiles.
#[derive(Debug, Parser)]
#[command(name = "turnpike load merge")]
struct MergeOptions {
    /// Logs written by --hdr
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write the sum as a log
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The command line.
pub(crate) fn command() -> clap::Command {
    MergeOptions::command()
}

/// Runs the subcommand; `arguments` begin after its name.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let name = OsString::from("turnpike load merge");
    let words = std::iter::once(&name).chain(arguments);
    let options = match MergeOptions::try_parse_from(words) {
        Ok(options) => options,
        Err(error) => {
            crate::print_refusal("turnpike load merge", &error);
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    let mut tagged = Tagged::new();
    let mut length = Duration::ZERO;
    for file in &options.files {
        match hdr::read(file, &mut tagged) {
            // Logs of one run on several machines cover the same time.
            Ok(interval) => length = length.max(interval),
            Err(error) => {
                eprintln!("turnpike load: {}: {error}", file.display());
                return ExitCode::FAILURE;
            }
        }
    }
    crate::say(&table(&tagged));
    if let Some(path) = &options.output
        && let Err(error) = hdr::write(path, &tagged, SystemTime::now(), length)
    {
        eprintln!("turnpike load: {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn table(tagged: &Tagged) -> String {
    let mut text = format!("{:<14}{:>12}", "", "count");
    for name in ["mean", "p50", "p90", "p99", "p99.9", "max"] {
        text.push_str(&format!("{name:>11}"));
    }
    text.push('\n');
    for (name, histogram) in tagged {
        text.push_str(&format!("{name:<14}{:>12}", histogram.len()));
        let quantile = |share| histogram.value_at_quantile(share) as f64;
        let values = [
            histogram.mean(),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            quantile(0.999),
            histogram.max() as f64,
        ];
        for value in values {
            text.push_str(&format!("{:>11}", show_time_us(value / 1e3)));
        }
        text.push('\n');
    }
    text
}
