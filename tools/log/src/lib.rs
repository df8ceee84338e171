//! `turnpike log`: what an access log says at first sight.
//!
//! Lines are read once, as a stream; what is kept of them is bounded (`busiest`, `timeline`), so a
//! log of any size takes some megabytes. Nothing is looked up and nothing but the page is written.

mod busiest;
mod entry;
mod input;
mod options;
mod page;
mod summary;
mod text;
mod timeline;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use options::Options;
use summary::Summary;

/// The usage text.
pub const HELP: &str = "\
Usage: turnpike log [--top N] [--query] [--html PAGE] FILE...

Summarises access logs in the formats combined and json, plain or compressed by gzip: statuses,
requests over time, times, and the paths, hosts and clients with most requests. FILE - is standard
input. Several files count as one log. A time in seconds after the fields of combined is taken as
$request_time.

  --top N     : show the first N of each list (default: 10)
  --query     : distinguish paths by their queries too
  --html PAGE : write a page instead of text; - is standard output

The exit status is 0, 1 if a file cannot be read or has no line in a known format, and 2 if the
command line is wrong.
";

/// The exit status for a wrong command line.
const EXIT_USAGE: u8 = 2;

/// Runs `turnpike log` with the arguments after its name.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let options = match Options::read(arguments) {
        Ok(options) => options,
        Err(message) => {
            eprint!("turnpike log: {message}\n{HELP}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("turnpike log: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut summary = Summary::new(options.with_query);
    for file in &options.files {
        input::for_each_line(file, |number, line| summary.take(file, number, line))?;
    }
    if summary.requests == 0 {
        return Err(match summary.unknown_first {
            Some(place) => format!("{place} is in neither of the formats combined and json"),
            None => "there are no lines".to_owned(),
        });
    }
    match options.page.as_deref() {
        None => print(&text::show(&summary, options.top)),
        Some(path) => {
            let page = page::show(&summary, options.top)?;
            match path.to_str() {
                Some("-") => print(&page),
                _ => std::fs::write(path, page).map_err(|error| format!("{path:?}: {error}")),
            }
        }
    }
}

fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader, such as head, has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
