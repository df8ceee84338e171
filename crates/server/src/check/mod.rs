//! `turnpike check FILE`: what of an nginx.conf works here, what is refused and where, what has no
//! effect, and what to do instead.
//!
//! The check says nothing of its own about a directive: the rows and the errors of `-t` do.

mod report;
pub(crate) mod support;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use turnpike_conf::{Row, Tree};
use turnpike_host::DiskLoader;
use turnpike_lane::log::Errno;

use crate::checked::Checked;
use crate::families;
use crate::master::trial;
use crate::paths::{Paths, Places};
use crate::standard_error::write_standard_error;
use report::Report;
use turnpike_plan::product::Product;

/// The usage text.
pub(crate) const HELP: &str = "\
Usage: turnpike check [--json] [-p PREFIX] FILE

Shows which directives of an nginx.conf work, which are refused, which have no effect, and what to
do instead. It starts nothing and changes nothing.

  --json        : print JSON
  -p PREFIX     : the folder that relative paths start from (default: the folder of FILE)

Things that the file needs but this machine lacks, or this user may not use, are listed apart.
The exit status is 0 if the server can start with the file, 1 if it cannot, and 2 if FILE cannot be
read or the command line is wrong.
";

/// The exit status when nothing could be checked.
const NOT_CHECKED: u8 = 2;

/// Words in a row's summary that say that the directive changes nothing here.
const NO_EFFECT: &[&str] = &["without effect", "not supported yet"];

/// Whether a directive with this row does what it does in nginx.
pub(crate) fn has_effect(row: &Row) -> bool {
    NO_EFFECT.iter().all(|words| !row.summary.contains(words))
}

/// Whether a directive with this row takes `off` alone: it is refused with anything else.
pub(crate) fn only_off(row: &Row) -> bool {
    row.syntax == "off"
}

/// Runs the subcommand with the arguments after its name.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let request = match Request::read(arguments) {
        Ok(Some(request)) => request,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            write_standard_error(&format!("turnpike check: {message}\n{HELP}"));
            return ExitCode::from(NOT_CHECKED);
        }
    };
    let report = match check(&request) {
        Ok(report) => report,
        Err(message) => {
            write_standard_error(&format!("turnpike check: {message}\n"));
            return ExitCode::from(NOT_CHECKED);
        }
    };
    let text = if request.is_json {
        report.json()
    } else {
        report.table()
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) if report.loads() => ExitCode::SUCCESS,
        Ok(()) | Err(_) => ExitCode::FAILURE,
    }
}

/// What the command line asks for.
struct Request {
    file: PathBuf,
    prefix: Option<PathBuf>,
    is_json: bool,
}

impl Request {
    /// `None` when help is asked for.
    fn read(arguments: &[OsString]) -> Result<Option<Request>, String> {
        let (mut file, mut prefix, mut is_json) = (None, None, false);
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.to_str() {
                Some("-h" | "--help") => return Ok(None),
                Some("--json") => is_json = true,
                Some("-p") => {
                    let folder = rest.next().ok_or("option \"-p\" requires directory name")?;
                    prefix = Some(PathBuf::from(folder));
                }
                Some(option) if option.starts_with('-') => {
                    return Err(format!("invalid option: \"{option}\""));
                }
                _ if file.is_none() => file = Some(PathBuf::from(argument)),
                _ => return Err("one file at a time".to_owned()),
            }
        }
        let file = file.ok_or("name a file, for example /etc/nginx/nginx.conf")?;
        Ok(Some(Request {
            file,
            prefix,
            is_json,
        }))
    }
}

fn check(request: &Request) -> Result<Report, String> {
    let shown = request.file.display();
    let failed = |error: &std::io::Error| format!("open() \"{shown}\" failed {}", Errno(error));
    let file = std::path::absolute(&request.file).map_err(|error| failed(&error))?;
    fs::File::open(&file).map_err(|error| failed(&error))?;
    let folder = file.parent().unwrap_or(Path::new("/")).to_path_buf();
    let prefix = request.prefix.as_ref().map(std::path::absolute);
    let prefix = prefix.transpose().map_err(|error| failed(&error))?;
    let places = match prefix {
        Some(_) => Places::Prefix,
        None => Places::current(),
    };
    let paths = Paths {
        prefix: prefix.unwrap_or(folder),
        configuration: file.clone(),
        embedded: false,
        given: None,
        error_log: None,
        product: Product::Turnpike,
        cpu_count: turnpike_lane::sys::process::usable_cpu_count(),
        places,
        user: None,
    };
    let (tree, _, _) = families::registry().examine(&DiskLoader, &file, None);
    Ok(report_of(&paths, &tree))
}

fn report_of(paths: &Paths, tree: &Tree) -> Report {
    match Checked::read(paths, None) {
        Ok(checked) => {
            let warnings = checked.configuration.settings.warnings.iter();
            let warnings = warnings.chain(&checked.needs.warnings).cloned();
            let failures = trial::failures(&checked).into_iter();
            let failures = failures.map(|failure| match failure.advice {
                Some(advice) => format!("{}: {advice}", failure.sentence),
                None => failure.sentence,
            });
            let failures = failures.collect();
            Report::new(paths, tree, &[], warnings.collect(), failures)
        }
        Err(errors) => Report::new(paths, tree, &errors.0, Vec::new(), Vec::new()),
    }
}
