//! The master: reads and checks the configuration, opens sockets and log files, starts the
//! serving process and keeps it running, and obeys signals.
//!
//! The master is one thread that waits for signals and for the serving process's replies. It must
//! never read a request, and never wait for a client.

mod child;
mod control;
mod daemon;
mod express;
mod failure;
mod folders;
pub(crate) mod gates;
mod inherit;
mod kept;
mod loaded;
mod orphan;
mod pid_file;
mod run;
mod signals;
mod supervise;
mod systemd;
pub(crate) mod trial;
mod watch;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;

use turnpike_conf::text_of;
use turnpike_lane::log::{Errno, ErrorLog, Level, LogFile, Sink, Target};

use crate::cli::Options;
use crate::control::api::ApiAddress;
use crate::paths::Paths;
use crate::standard_error::write_standard_error;
use loaded::Reading;

/// Everything that nginx's own command line does: check, command, or serve.
pub fn main(options: &Options) -> ExitCode {
    let mut paths = Paths::of(options);
    let log = first_log(options, &mut paths);
    let globals = options
        .globals
        .as_ref()
        .map(|text| text_of(text.as_encoded_bytes()));
    let globals = globals.as_deref();
    let api = match options.api.as_deref().map(ApiAddress::parse).transpose() {
        Ok(api) => api,
        Err(message) => {
            log.event(Level::Emerg, format_args!("{message}"));
            return ExitCode::FAILURE;
        }
    };
    if options.test {
        return check(options, &paths, globals, &log);
    }
    if let Some(command) = options.command {
        return control::send(command, &paths, globals, &log);
    }
    run::run(options, api, &paths, globals, &log)
}

/// Serves a configuration of the command line, at the terminal.
pub(crate) fn serve(paths: &Paths, globals: &str) -> ExitCode {
    let log = ErrorLog::console(paths.product.name());
    run::run(&Options::default(), None, paths, Some(globals), &log)
}

/// The log until the configuration has been read: `-e`, with a copy for the person who starts.
///
/// The default file is not insisted on: without an installation there is no folder for it.
fn first_log(options: &Options, paths: &mut Paths) -> ErrorLog {
    let level = if options.test {
        Level::Info
    } else {
        Level::Notice
    };
    let mut sink = Sink::Stderr;
    if let Some(path) = paths.error_log.clone() {
        let opened = if options.test && options.error_log.is_none() && !path.exists() {
            // A test leaves no file that nobody has named.
            trial::first_log(paths, &path).map(|()| None)
        } else {
            paths.open_with_folder(&path, LogFile::open).map(Some)
        };
        match opened {
            Ok(file) => sink = file.map_or(Sink::Stderr, |file| Sink::File(file.into())),
            Err(error) => {
                let named = options.error_log.is_some();
                if named || paths.prefix.exists() {
                    let name = paths.product.name();
                    write_standard_error(&format!(
                        "{name}: [alert] could not open error log file: open() \"{}\" failed {}\n",
                        path.display(),
                        Errno(&error)
                    ));
                }
                if !named {
                    paths.error_log = None;
                }
            }
        }
    }
    match sink {
        Sink::Stderr => ErrorLog::console(paths.product.name()),
        sink => ErrorLog::new(vec![Target::new(level, sink)]).with_console(paths.product.name()),
    }
}

/// `-t` and `-T`.
fn check(options: &Options, paths: &Paths, globals: Option<&str>, log: &ErrorLog) -> ExitCode {
    let name = paths.name();
    let Reading {
        checked,
        product,
        log,
    } = loaded::read(paths, globals, log);
    let product = product.name();
    let can_start = checked.as_ref().is_some_and(|checked| {
        if !options.quiet {
            write_standard_error(&format!(
                "{product}: the configuration file {name} syntax is ok\n"
            ));
        }
        let failures = trial::failures(checked);
        for failure in &failures {
            failure.log(&log, checked.configuration.settings.product);
        }
        for sentence in folders::unreachable(checked) {
            log.event(Level::Warn, format_args!("{sentence}"));
        }
        failures.is_empty()
    });
    let (Some(checked), true) = (checked, can_start) else {
        tell_of_places(options, paths);
        write_standard_error(&format!(
            "{product}: configuration file {name} test failed\n"
        ));
        return ExitCode::FAILURE;
    };
    if let Some(wish) = &checked.needs.express {
        express::tell(wish, &log);
    }
    if !options.quiet {
        write_standard_error(&format!(
            "{product}: configuration file {name} test is successful\n"
        ));
    }
    if options.dump {
        let dump = checked.configuration.tree.sources.dump();
        if let Err(error) = write_out(&dump) {
            write_standard_error(&format!("{product}: write() failed {}\n", Errno(&error)));
            return ExitCode::FAILURE;
        }
    }
    // The process ends: to free a large configuration piece by piece takes a tenth of its time.
    std::mem::forget(checked);
    ExitCode::SUCCESS
}

/// The likely reasons why a first start fails: the file is in the current folder and not below the
/// prefix, there is none beside `-g`, or nothing is installed where nginx's rules look.
fn tell_of_places(options: &Options, paths: &Paths) {
    let given = options.configuration.as_ref().map(Path::new);
    if let Some(file) = given.filter(|file| file.is_relative() && options.prefix.is_none())
        && !paths.configuration.exists()
        && file.exists()
    {
        let file = file.display();
        write_standard_error(&format!(
            "turnpike: \"{file}\" is in the current folder, and relative paths begin at \"{}\": \
             \"-p . -c {file}\" takes it from here\n",
            paths.prefix.display()
        ));
        return;
    }
    let has_block = |text: &OsString| text.as_bytes().contains(&b'{');
    if paths.embedded && options.globals.as_ref().is_some_and(has_block) {
        write_standard_error(
            "turnpike: there is no configuration file, and \"-g\" only adds directives to one: \
             write a file and name it with -c FILE\n",
        );
    }
    // A missing file with an absolute path has nothing to do with the prefix.
    let is_elsewhere = given.is_some_and(|file| file.is_absolute() && !file.exists());
    if !paths.embedded && !is_elsewhere && !paths.prefix.exists() {
        let prefix = paths.prefix.display();
        write_standard_error(&format!(
            "turnpike: relative paths begin at \"{prefix}\", which is not there: -p names another \
             folder\n"
        ));
    }
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
