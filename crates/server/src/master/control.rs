//! `-s`: commands for a running master, by its pid file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::signal;
use turnpike_plan::product::Product;

use super::loaded::{self, Reading};
use super::{orphan, pid_file};
use crate::adoption;
use crate::checked::Checked;
use crate::cli::Command;
use crate::paths::Paths;

/// Goes on with nginx's message where there is no such master.
const NOT_RUNNING: &str =
    "; no server with this configuration runs: \"turnpike -c FILE\" starts it";

/// Sends the command's signal to the master that the configuration's pid file names.
pub(super) fn send(
    command: Command,
    paths: &Paths,
    globals: Option<&str>,
    log: &ErrorLog,
) -> ExitCode {
    let Reading {
        checked,
        product,
        log,
    } = loaded::read(paths, globals, log);
    let log = &log;
    let Some(checked) = checked else {
        return ExitCode::FAILURE;
    };
    log.event(Level::Notice, format_args!("signal process started"));
    let settings = &checked.configuration.settings;
    if pid_file::holder(&settings.pid_file).is_none()
        && let Some(path) = &settings.adoption
        && let Some(process) = orphan::look(path)
    {
        return send_without_master(command, &checked, path, process, log);
    }
    let process = match pid_file::read(&settings.pid_file) {
        Ok(process) => process,
        Err(message) => {
            // nginx says this one at level error, and to the person who asked.
            let hint = match product {
                Product::Turnpike => NOT_RUNNING,
                Product::Nginx => "",
            };
            log.event(Level::Error, format_args!("{message}{hint}"));
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
            let is_gone = error.raw_os_error() == Some(nix::libc::ESRCH);
            let hint = match product {
                Product::Turnpike if is_gone => NOT_RUNNING,
                Product::Turnpike | Product::Nginx => "",
            };
            let error = Errno(&error);
            let message = format_args!("kill({process}, {number}) failed {error}{hint}");
            log.event(Level::Alert, message);
            ExitCode::FAILURE
        }
    }
}

/// The master is gone and its serving process is not: it can be ended; for all else a master is
/// needed.
fn send_without_master(
    command: Command,
    checked: &Checked,
    path: &Path,
    process: i32,
    log: &ErrorLog,
) -> ExitCode {
    let word = match command {
        Command::Stop => adoption::STOP,
        Command::Quit => adoption::QUIT,
        Command::Reopen | Command::Reload => {
            let message = format_args!(
                "there is no master process; serving process {process} runs without one: \
                 start the server again to add one, or end the process with \"-s quit\""
            );
            log.event(Level::Error, message);
            return ExitCode::FAILURE;
        }
    };
    if let Err(message) = orphan::command(path, word) {
        log.event(Level::Error, format_args!("{message}"));
        return ExitCode::FAILURE;
    }
    let message =
        format_args!("there is no master process; sent \"{word}\" to serving process {process}");
    log.event(Level::Notice, message);
    // What the master would have removed; what is not there needs no removing.
    let settings = &checked.configuration.settings;
    let files = [Some(settings.pid_file.as_path()), settings.control.path()];
    for file in files.into_iter().flatten().chain([path]) {
        let _ = fs::remove_file(file);
    }
    for listen in &checked.needs.listens {
        if let ListenAddress::Unix(path) = &listen.address {
            let _ = fs::remove_file(Path::new(OsStr::from_bytes(path)));
        }
    }
    ExitCode::SUCCESS
}
