//! From a checked command line to a running master.

use std::fs;
use std::process::ExitCode;

use turnpike_lane::log::{Errno, ErrorLog, Level, LogSet};
use turnpike_lane::sys::process::{self, Limit, Resource};

use super::daemon::{self, Detached};
use super::gates::{GateSet, NotOpened};
use super::inherit;
use super::site::{Failure, Site};
use super::supervise::Master;
use super::systemd;
use crate::paths::Paths;
use crate::version::{NGINX_VERSION, TURNPIKE_VERSION};
use crate::{embedded, say};

/// Opens everything, goes into the background if asked to, and serves until told to end.
pub(super) fn run(paths: &Paths, globals: Option<&str>, log: &ErrorLog) -> ExitCode {
    let descriptors = process::limit(Resource::OpenFiles).ok();
    raise_descriptor_limit(descriptors);
    let inherited = inherit::take(log);
    let passed = GateSet::inherited(systemd::sockets(log), true);
    let gates = inherited
        .as_ref()
        .map_or(&passed, |inherited| &inherited.gates);
    let site = match Site::open(paths, globals, &LogSet::new(), gates, log) {
        Ok(site) => site,
        Err(Failure::Gate(NotOpened { in_use: true })) if paths.embedded => {
            say(embedded::PORT_TAKEN);
            return ExitCode::FAILURE;
        }
        Err(_) => {
            super::tell_of_missing_prefix(paths);
            return ExitCode::FAILURE;
        }
    };
    greet(&site.log, descriptors);
    let settings = &site.configuration.settings;
    let mut launcher = None;
    // One that takes another's place is where that one is.
    if settings.daemon && inherited.is_none() {
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
    match Master::start(paths, globals, site, launcher, inherited) {
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

/// The first lines of a start; tools look for the version in them.
fn greet(log: &ErrorLog, descriptors: Option<Limit>) {
    let notice = |message: std::fmt::Arguments<'_>| log.event(Level::Notice, message);
    notice(format_args!("using the \"epoll\" event method"));
    notice(format_args!(
        "nginx/{NGINX_VERSION} (turnpike/{TURNPIKE_VERSION})"
    ));
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
