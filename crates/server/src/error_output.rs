//! Where standard error leads once a server is up.

use std::os::fd::AsFd as _;

use turnpike_lane::log::{Destination, Errno, ErrorLog, Level, LogSet, Spec};
use turnpike_lane::sys::process::{self, Stream};

/// Leads standard error to the first error log file, unless a log goes there itself: what a
/// library or a panic prints is found where errors are looked for, and whoever waits for the
/// end of a launcher's output is not kept waiting by a daemon.
pub(crate) fn lead_to_log(specs: &[Spec], logs: &LogSet, log: &ErrorLog) {
    if specs
        .iter()
        .any(|spec| spec.destination == Destination::Stderr)
    {
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
