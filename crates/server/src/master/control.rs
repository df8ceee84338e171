//! `-s`: commands for a running master, by its pid file.

use std::process::ExitCode;

use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::signal;

use super::{pid_file, site};
use crate::cli::Command;
use crate::paths::Paths;

/// Sends the command's signal to the master that the configuration's pid file names.
pub(super) fn send(
    command: Command,
    paths: &Paths,
    globals: Option<&str>,
    log: &ErrorLog,
) -> ExitCode {
    let Some(configuration) = site::read(paths, globals, log) else {
        return ExitCode::FAILURE;
    };
    log.event(Level::Notice, format_args!("signal process started"));
    let process = match pid_file::read(&configuration.settings.pid_file) {
        Ok(process) => process,
        Err(message) => {
            // nginx says this one at level error, and to the person who asked.
            log.event(Level::Error, format_args!("{message}"));
            return ExitCode::FAILURE;
        }
    };
    let number = match command {
        Command::Stop => nix::libc::SIGTERM,
        Command::Quit => nix::libc::SIGQUIT,
        Command::Reopen => nix::libc::SIGUSR1,
        Command::Reload => nix::libc::SIGHUP,
    };
    match signal::send(process, number) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = Errno(&error);
            let message = format_args!("kill({process}, {number}) failed {error}");
            log.event(Level::Alert, message);
            ExitCode::FAILURE
        }
    }
}
