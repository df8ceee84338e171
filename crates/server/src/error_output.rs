//! Where standard error leads once a server is up.

use std::os::fd::AsFd as _;

use turnpike_conf::Tree;
use turnpike_lane::log::{Destination, Errno, ErrorLog, Level, LogSet};
use turnpike_lane::sys::process::{self, Stream};

use crate::configuration::Configuration;

/// Leads standard error to the first error log file, unless a log goes there itself: what a
/// library or a panic prints is found where errors are looked for, and whoever waits for the
/// end of a launcher's output is not kept waiting by a daemon.
pub(crate) fn lead_to_log(configuration: &Configuration, logs: &LogSet, log: &ErrorLog) {
    let specs = &configuration.settings.error_logs;
    let implied = specs
        .iter()
        .any(|spec| spec.destination == Destination::Stderr);
    if implied || names_stderr(&configuration.tree) {
        return;
    }
    let Some(file) = specs.iter().find_map(|spec| logs.file(spec.file()?)) else {
        return;
    };
    if let Err(error) = process::redirect(Stream::Error, file.file().as_fd()) {
        log.event(
            Level::Alert,
            format_args!("dup2(STDERR) failed {}", Errno(&error)),
        );
    }
}

/// Whether an `error_log` at any level goes to standard error.
fn names_stderr(tree: &Tree) -> bool {
    tree.walk().any(|directive| {
        let first = directive.arguments.first();
        directive.name.text == "error_log" && first.is_some_and(|w| w.text == "stderr")
    })
}
