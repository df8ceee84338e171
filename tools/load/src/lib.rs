//! `turnpike load`: sends load to HTTP servers and measures them.
//!
//! wrk's options and output, requests per connection as an option, open loops of requests or
//! connections with latency from the intended start, every part of a transaction with its own
//! histogram, errors by kind, and a check whether the generator itself was the limit.
//!
//! One loop (`worker`) runs in each thread over its own epoll set and its own descriptor table;
//! threads share nothing that is written while they run. `connection` is the life of one
//! connection, `transport` and `http1` are the rows it is written over. It must not depend on the
//! server in any way but by the wire codecs: it also drives others.

mod compare;
mod connection;
mod diagnosis;
mod environment;
mod histogram;
mod http1;
mod http2;
mod http3;
mod live;
mod merge;
mod mix;
mod multiplexed;
mod options;
mod plan;
pub mod progress_line;
mod report;
mod run;
mod schedule;
mod series;
mod source;
mod streams;
pub mod svg;
mod sys;
mod tally;
mod target;
mod template;
mod thread;
mod threshold;
mod tls;
mod transport;
mod units;
mod usage;
mod watch;
mod worker;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

pub use histogram::Histogram;
pub use live::LiveFrame;
use options::Options;
use plan::Plan;
pub use report::html::document;
use report::limits::Limit;
use report::{csv, hdr, html, json, limits, text};
use run::Outcome;
use turnpike_usage::Usage;
pub use units::{show_bytes, show_time_us};
pub use usage::{print_refusal, usage_of};
use watch::Console;

/// Wrong usage, as wrk: nothing was run.
const EXIT_USAGE: u8 = 1;
/// The run could not be carried out or its figures not written.
const EXIT_FAILED: u8 = 2;
/// More errors than `--max-errors`.
const EXIT_ERRORS: u8 = 3;
/// A condition of `--fail-if` holds.
const EXIT_THRESHOLD: u8 = 4;

/// Runs `turnpike load` with the arguments after its name and returns its exit status: 0, 1 for
/// wrong usage, 2 when the run failed, 3 for more errors than `--max-errors`, 4 when a condition of
/// `--fail-if` holds.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let rest = arguments.get(1..).unwrap_or_default();
    match arguments.first().and_then(|word| word.to_str()) {
        Some("merge") => return merge::main(rest),
        Some("compare") => return compare::main(rest),
        _ => {}
    }
    let name = OsString::from("turnpike load");
    let options = match Options::try_parse_from(std::iter::once(&name).chain(arguments)) {
        Ok(options) => options,
        Err(error) => {
            usage::print_refusal("turnpike load", &error);
            return ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { 0 });
        }
    };
    if options.version {
        say(&format!(
            "turnpike load {} [epoll]\n",
            env!("CARGO_PKG_VERSION")
        ));
    }
    if options.urls.is_empty() && options.urls_from.is_none() && options.pages.is_none() {
        if !options.version {
            let _ = Options::command().print_help();
        }
        return ExitCode::from(if options.version { 0 } else { EXIT_USAGE });
    }
    let plan = match Plan::new(&options) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("turnpike load: {error}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    drive(&plan, &options, arguments)
}

/// The command line of `turnpike load`.
pub fn usage() -> Usage {
    let mut usage = usage_of(&Options::command().name("turnpike load"));
    let subcommands = [("merge", merge::command()), ("compare", compare::command())];
    for (name, command) in subcommands {
        usage.subcommands.push(Usage {
            name: name.to_owned(),
            ..usage_of(&command)
        });
    }
    usage
}

/// The values, in nanoseconds, below which these percentages of a log's `tag` lie: of a log that
/// `--hdr` wrote, or any other HdrHistogram log.
///
/// # Errors
/// In words, when the file cannot be read, is no such log, or has nothing under this tag.
pub fn percentiles(path: &Path, tag: &str, percents: &[f64]) -> Result<Vec<u64>, String> {
    let mut tagged = hdr::Tagged::new();
    hdr::read(path, &mut tagged).map_err(|error| format!("{}: {error}", path.display()))?;
    let histogram = tagged
        .get(tag)
        .ok_or_else(|| format!("{}: nothing is tagged {tag}", path.display()))?;
    Ok(percents
        .iter()
        .map(|percent| histogram.value_at_percentile(*percent))
        .collect())
}

fn drive(plan: &Plan, options: &Options, arguments: &[OsString]) -> ExitCode {
    let to_stdout = !matches!(options.json, Some(None));
    if to_stdout {
        say(&text::head(plan, options));
    }
    let mut console = Console::new(plan, options.quiet);
    let result = run::run(plan, &mut console);
    console.clear();
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("turnpike load: {error}");
            return ExitCode::from(EXIT_FAILED);
        }
    };
    let limits = limits::find(plan, &outcome);
    let is_measured = !outcome.refused && outcome.hopeless.is_none();
    if to_stdout && is_measured {
        say(&text::body(plan, options, &outcome, &limits));
    }
    if let Err(error) = write_files(plan, options, arguments, &outcome, &limits) {
        eprintln!("turnpike load: {error}");
        return ExitCode::from(EXIT_FAILED);
    }
    if let Some(reason) = &outcome.hopeless {
        eprintln!("{reason}");
        return ExitCode::from(EXIT_FAILED);
    }
    for line in diagnosis::lines(plan, &outcome.tally) {
        eprintln!("{line}");
    }
    if outcome.refused {
        eprintln!("{NOBODY_LISTENS}");
        return ExitCode::from(EXIT_FAILED);
    }
    let conditions = options.fail_if.iter();
    let breaches = conditions.filter_map(|one| one.breach(&outcome.tally, outcome.measured));
    let breaches: Vec<String> = breaches.collect();
    for breach in &breaches {
        eprintln!("{breach}");
    }
    match outcome.tally.errors.total() > options.max_errors {
        true => ExitCode::from(EXIT_ERRORS),
        false if !breaches.is_empty() => ExitCode::from(EXIT_THRESHOLD),
        false => ExitCode::SUCCESS,
    }
}

/// The hint under the reason when every connection was refused.
const NOBODY_LISTENS: &str = "no request was sent: is the server running, and is the port right?";

/// Writes to standard output; a reader that went away is no reason to break off.
fn say(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

fn write_files(
    plan: &Plan,
    options: &Options,
    arguments: &[OsString],
    outcome: &Outcome,
    limits: &[Limit],
) -> Result<(), String> {
    let command: Vec<String> = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(path) = &options.html {
        html::page(plan, &command, outcome, limits)
            .map_err(io::Error::other)
            .and_then(|page| std::fs::write(path, page))
            .map_err(|error| format!("--html: {error}"))?;
    }
    if let Some(file) = &options.json {
        let report = json::report(plan, command, outcome, limits);
        write_json(&report, file.as_deref()).map_err(|error| format!("--json: {error}"))?;
    }
    if let Some(path) = &options.hdr {
        let tagged = hdr::of_run(outcome, plan.pacing);
        hdr::write(path, &tagged, outcome.started, outcome.measured)
            .map_err(|error| format!("--hdr: {error}"))?;
    }
    if let Some(path) = &options.csv {
        std::fs::write(path, csv::of_run(outcome, &options.percentiles))
            .map_err(|error| format!("--csv: {error}"))?;
    }
    if let Some(path) = &options.failures {
        std::fs::write(path, failure_lines(outcome))
            .map_err(|error| format!("--failures: {error}"))?;
    }
    Ok(())
}

/// A line for each request that failed: when it began and ended, in microseconds since 1970, and
/// the kind of its error.
fn failure_lines(outcome: &Outcome) -> String {
    let started = outcome
        .clock_started
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let unix_us = |ns: u64| (started + std::time::Duration::from_nanos(ns)).as_micros();
    let mut lines = String::new();
    for failure in &outcome.tally.failures {
        let (begun, ended) = (unix_us(failure.begun_ns), unix_us(failure.ended_ns));
        let _ = writeln!(lines, "{begun}\t{ended}\t{}", failure.kind.name());
    }
    lines
}

fn write_json(report: &json::Report, file: Option<&Path>) -> std::io::Result<()> {
    let mut text = serde_json::to_string_pretty(report).map_err(std::io::Error::other)?;
    text.push('\n');
    match file {
        Some(path) => std::fs::write(path, text),
        None => std::io::stdout().write_all(text.as_bytes()),
    }
}
