//! From a checked command line to a running master.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use turnpike_lane::log::{Errno, ErrorLog, Level, LogSet};
use turnpike_lane::sys::process::{self, Limit, Resource};
use turnpike_plan::product::Product;

use super::daemon::{self, Detached};
use super::gates::{self, GateSet, NotOpened};
use super::inherit::Said;
use super::loaded::{self, LoadError, LoadedConfiguration, Reading};
use super::supervise::{Master, Origin};
use super::systemd;
use super::{inherit, orphan, pid_file};
use crate::checked::Checked;
use crate::cli::Options;
use crate::control::api::ApiAddress;
use crate::embedded;
use crate::needs::Listen;
use crate::paths::Paths;
use crate::standard_error::write_standard_error;

/// How often a master that lives is looked at before it counts as one that goes on living, and the
/// pause between: one that was killed just now may not be dead yet.
const LIFE_LOOKS_MAX: u32 = 20;
const LIFE_PAUSE: Duration = Duration::from_millis(25);

/// Opens everything, goes into the background if asked to, and serves until told to end.
pub(super) fn run(
    options: &Options,
    api: Option<ApiAddress>,
    paths: &Paths,
    globals: Option<&str>,
    log: &ErrorLog,
) -> ExitCode {
    let descriptors = process::limit(Resource::OpenFiles).ok();
    raise_descriptor_limit(descriptors);
    let (origin, loaded) = match open(paths, globals, log) {
        Ok(opened) => opened,
        Err(LoadError::Gate(NotOpened { in_use: true })) if paths.embedded => {
            write_standard_error(embedded::PORT_TAKEN);
            return ExitCode::FAILURE;
        }
        Err(_) => {
            super::tell_of_places(options, paths);
            return ExitCode::FAILURE;
        }
    };
    greet(
        &loaded.log,
        loaded.configuration.settings.product,
        descriptors,
    );
    let settings = &loaded.configuration.settings;
    let mut launcher = None;
    // One that takes another's place is where that one is.
    if settings.daemon && !matches!(origin, Origin::Inherited(_)) {
        match daemon::detach() {
            Ok(Detached::Launcher(code)) => return code,
            Ok(Detached::Daemon(waiting)) => launcher = Some(waiting),
            Err(error) => {
                log.event(
                    Level::Emerg,
                    format_args!("fork() failed {}", Errno(&error)),
                );
                return ExitCode::FAILURE;
            }
        }
    }
    match Master::start(paths, globals, loaded, launcher, origin, api) {
        Ok(mut master) => master.run(),
        Err(error) => {
            log.event(
                Level::Emerg,
                format_args!("the master cannot start {}", Errno(&error)),
            );
            ExitCode::FAILURE
        }
    }
}

/// Looks for who was here before, and opens what the configuration needs beyond what that one has.
fn open(
    paths: &Paths,
    globals: Option<&str>,
    log: &ErrorLog,
) -> Result<(Origin, LoadedConfiguration), LoadError> {
    let mut said = Said::new();
    let inherited = inherit::take(&mut said);
    let passed = GateSet::inherited(systemd::sockets(&mut said), true);
    let Reading { checked, log, .. } = loaded::read(paths, globals, log);
    let log = &log;
    for (level, message) in said {
        log.event(level, format_args!("{message}"));
    }
    let checked = checked.ok_or(LoadError::Files)?;
    let origin = match inherited {
        Some(inherited) => Origin::Inherited(inherited),
        None => predecessor(&checked, &passed, log)?,
    };
    let gates = match &origin {
        Origin::Inherited(inherited) => &inherited.gates,
        Origin::Adopted(orphan) => &orphan.gates,
        Origin::Fresh => &passed,
    };
    let loaded = LoadedConfiguration::of(checked, &LogSet::new(), gates, log)?;
    Ok((origin, loaded))
}

/// The serving process that the last master has left, if there is one. It is a failure if another
/// master is alive: both would share addresses unnoticed.
fn predecessor(checked: &Checked, passed: &GateSet, log: &ErrorLog) -> Result<Origin, LoadError> {
    let Checked {
        configuration,
        needs,
    } = checked;
    let settings = &configuration.settings;
    let pid_file = &settings.pid_file;
    if let Some(process) = living_master(pid_file) {
        let is_its = |listen: &Listen| {
            let holder = gates::holder(&listen.address);
            holder.is_some_and(|holder| i32::try_from(holder.process) == Ok(process))
        };
        let is_told = settings.product == Product::Turnpike && needs.listens.iter().any(is_its);
        if !is_told && !GateSet::shares_addresses(&needs.listens) {
            // The kernel refuses what is in use.
            return Ok(Origin::Fresh);
        }
        let file = pid_file.display();
        log.event(
            Level::Emerg,
            format_args!(
                "this server runs already: process {process} holds \"{file}\"; \"-s reload\" \
                 gives it another configuration, \"-s quit\" ends it"
            ),
        );
        return Err(LoadError::Files);
    }
    let Some(path) = &settings.adoption else {
        return Ok(Origin::Fresh);
    };
    match orphan::find(path, &configuration.paths.prefix, passed) {
        Ok(Some(orphan)) => Ok(Origin::Adopted(Box::new(orphan))),
        Ok(None) => Ok(Origin::Fresh),
        Err(message) => {
            log.event(Level::Emerg, format_args!("{message}"));
            Err(LoadError::Files)
        }
    }
}

/// The master that has this pid file, or had it before an upgrade moved it.
fn living_master(pid_file: &Path) -> Option<i32> {
    let places = [pid_file.to_path_buf(), orphan::old_path(pid_file)];
    let look = || places.iter().find_map(|path| pid_file::holder(path));
    for _ in 1..LIFE_LOOKS_MAX {
        look()?;
        thread::sleep(LIFE_PAUSE);
    }
    look()
}

/// The first lines of a start; tools look for the version in them.
fn greet(log: &ErrorLog, product: Product, descriptors: Option<Limit>) {
    let notice = |message: std::fmt::Arguments<'_>| log.event(Level::Notice, message);
    notice(format_args!("using the \"epoll\" event method"));
    notice(format_args!("{}", product.name_and_build()));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    notice(format_args!("OS: Linux {}", release.trim()));
    if let Some(Limit { soft, hard }) = descriptors {
        notice(format_args!("getrlimit(RLIMIT_NOFILE): {soft}:{hard}"));
    }
}

/// The master holds every socket and log: it takes all the descriptors that it may have.
fn raise_descriptor_limit(limit: Option<Limit>) {
    if let Some(Limit { hard, .. }) = limit {
        // The old limit may do as well.
        let _ = process::set_limit(Resource::OpenFiles, Limit { soft: hard, hard });
    }
}
