//! The error log: nginx's line format, several targets, one level filter per target.
//!
//! The log is in `lane` because both the request code and the process code write to it. It must not
//! know directives, requests or processes: callers pass it text, and the descriptors from the
//! master. A line is formatted once on the stack and written to each target with one `write(2)` or
//! `send(2)`, so that lines of several threads and processes never mix.

mod clock;
mod error;
mod file;
mod filter;
mod json;
mod level;
mod line;
mod rate;
mod spec;
mod subject;
mod syslog;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

pub use clock::{local_stamp, syslog_stamp};
pub use error::{AddressFault, SpecError, SyslogError};
pub use file::{LogFile, LogSet};
pub use filter::Filter;
pub use level::Level;
pub use line::LINE_BYTES_MAX;
pub use spec::{Destination, Form, Spec};
pub use subject::{Member, Subject};
pub use syslog::{Syslog, SyslogAddress, SyslogSpec};

use line::Line;
use rate::{Limit, Verdict};

use crate::sys::process::monotonic_ns;

/// The sink of a target.
#[derive(Clone, Debug)]
pub enum Sink {
    /// A file, opened with O_APPEND.
    File(Arc<LogFile>),
    /// The process's standard error.
    Stderr,
    /// Standard error in the short form `NAME: [level] message` with the program's name, for a user
    /// at a terminal.
    Console(&'static str),
    /// A syslog server, by RFC 3164.
    Syslog(Arc<Syslog>),
    /// Memory, for a caller that reports the messages itself.
    Kept(Arc<Kept>),
    /// Another sink, which gets each line as a JSON object.
    Json(Box<Sink>),
}

impl Sink {
    fn is_shown(&self) -> bool {
        match self {
            Sink::Stderr | Sink::Console(_) => true,
            Sink::Json(sink) => sink.is_shown(),
            Sink::File(_) | Sink::Syslog(_) | Sink::Kept(_) => false,
        }
    }
}

/// Lines in memory.
#[derive(Debug, Default)]
pub struct Kept(Mutex<Vec<KeptLine>>);

#[derive(Debug)]
struct KeptLine {
    whole: String,
    message: String,
}

/// The most lines that are kept: a user reads the first few.
const KEPT_LINES_MAX: usize = 100;

impl Kept {
    /// The lines so far, without the text before the message.
    pub fn lines(&self) -> Vec<String> {
        self.map(|line| line.message.clone())
    }

    /// The lines so far as a file of them has them, without line feeds.
    pub fn whole_lines(&self) -> Vec<String> {
        self.map(|line| line.whole.clone())
    }

    fn map(&self, part: impl Fn(&KeptLine) -> String) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(part).collect()
    }

    fn add(&self, whole: &[u8], message: &[u8]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < KEPT_LINES_MAX {
            let text = |bytes| String::from_utf8_lossy(bytes).trim_end().to_owned();
            lines.push(KeptLine {
                whole: text(whole),
                message: text(message),
            });
        }
    }
}

/// One `error_log`: a sink, and the lines that it takes.
#[derive(Clone, Debug)]
pub struct Target {
    level: Level,
    sink: Sink,
    filters: Vec<Filter>,
    limit: Option<Arc<Limit>>,
}

impl Target {
    /// A sink for all lines of this level and the more severe ones.
    pub fn new(level: Level, sink: Sink) -> Target {
        Target {
            level,
            sink,
            filters: Vec::new(),
            limit: None,
        }
    }

    /// Whether the filters and the rate let a line pass.
    fn passes(&self, level: Level, line: &Line, subject: Option<&dyn Subject>) -> bool {
        self.filters
            .iter()
            .all(|filter| filter.passes(line, subject))
            && self
                .limit
                .as_ref()
                .is_none_or(|limit| self.counts(level, limit))
    }

    /// Whether the rate lets a line pass; the first one that it does not is replaced by another
    /// line.
    fn counts(&self, level: Level, limit: &Limit) -> bool {
        match limit.count(level, self.level, monotonic_ns() / 1_000_000) {
            Verdict::Written => return true,
            Verdict::Lost => return false,
            Verdict::FirstLost => {}
        }
        let message = format_args!("too many log messages, limiting");
        let mut line = Line::start(level, None);
        line.push_message(message);
        line.finish();
        match &self.sink {
            Sink::Json(sink) => {
                deliver_object(sink, level, &json::line(level, None, message, None))
            }
            sink => deliver(sink, level, &line),
        }
        false
    }
}

#[derive(Debug)]
struct Inner {
    targets: Vec<Target>,
    least_severe: Option<Level>,
}

/// A set of targets that share each line. It is cheap to clone, and safe to use from every thread.
#[derive(Clone, Debug)]
pub struct ErrorLog(Arc<Inner>);

impl ErrorLog {
    /// A log that writes to these targets.
    pub fn new(targets: Vec<Target>) -> ErrorLog {
        let least_severe = targets.iter().map(|target| target.level).max();
        ErrorLog(Arc::new(Inner {
            targets,
            least_severe,
        }))
    }

    /// A log without targets.
    pub fn none() -> ErrorLog {
        ErrorLog::new(Vec::new())
    }

    /// A log that shows lines of `warn` and above at the terminal, under the program's name.
    pub fn console(name: &'static str) -> ErrorLog {
        ErrorLog::none().with_console(name)
    }

    /// The same targets, with another program's name at the terminal.
    pub fn named(&self, name: &'static str) -> ErrorLog {
        let mut targets = self.0.targets.clone();
        for target in &mut targets {
            if let Sink::Console(shown) = &mut target.sink {
                *shown = name;
            }
        }
        ErrorLog::new(targets)
    }

    /// The same targets and the console, unless a target is standard error already: used until the
    /// server has started.
    pub fn with_console(&self, name: &'static str) -> ErrorLog {
        let mut targets = self.0.targets.clone();
        if !targets.iter().any(|target| target.sink.is_shown()) {
            targets.push(Target::new(Level::Warn, Sink::Console(name)));
        }
        ErrorLog::new(targets)
    }

    /// The same targets and one more.
    pub fn with(&self, target: Target) -> ErrorLog {
        let mut targets = self.0.targets.clone();
        targets.push(target);
        ErrorLog::new(targets)
    }

    /// Builds the log of `specs`; `files` holds the open file of each path. A file that is missing
    /// in `files` is left out: the caller has opened or received all of them.
    pub fn from_specs(specs: &[Spec], files: &LogSet) -> ErrorLog {
        let target = |spec: &Spec| {
            let sink = match &spec.destination {
                Destination::File(path) => Sink::File(files.file(path)?),
                Destination::Stderr => Sink::Stderr,
                Destination::Syslog(syslog) => Sink::Syslog(Arc::new(Syslog::new(syslog.clone()))),
            };
            let lines_per_second = spec.lines_per_second;
            Some(Target {
                level: spec.level,
                sink: match spec.form {
                    Form::Nginx => sink,
                    Form::Json => Sink::Json(Box::new(sink)),
                },
                filters: spec.filters.clone(),
                limit: lines_per_second.map(|rate| Arc::new(Limit::new(rate.get()))),
            })
        };
        ErrorLog::new(specs.iter().filter_map(target).collect())
    }

    /// Whether any target takes lines of this level; used before costly formatting.
    pub fn enabled(&self, level: Level) -> bool {
        self.0.least_severe.is_some_and(|least| level <= least)
    }

    /// Whether two handles are the same log.
    pub fn same(&self, other: &ErrorLog) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Writes one line; `connection` is the connection's number. A message longer than
    /// [`LINE_BYTES_MAX`] is cut. Write errors are dropped, because a log has no place to report
    /// them.
    pub fn write(&self, level: Level, connection: Option<u64>, message: fmt::Arguments<'_>) {
        self.write_about(level, connection, message, None);
    }

    /// Writes one line, with what belongs to it after its message.
    pub fn write_about(
        &self,
        level: Level,
        connection: Option<u64>,
        message: fmt::Arguments<'_>,
        subject: Option<&dyn Subject>,
    ) {
        if self.enabled(level) {
            let takes = |target: &Target, line: &Line| {
                level <= target.level && target.passes(level, line, subject)
            };
            self.write_where(takes, level, connection, message, subject);
        }
    }

    /// As [`ErrorLog::write_about`], to every target whose filters let the line pass, whatever its
    /// level and rate.
    pub fn write_everywhere(
        &self,
        level: Level,
        connection: Option<u64>,
        message: fmt::Arguments<'_>,
        subject: Option<&dyn Subject>,
    ) {
        let takes = |target: &Target, line: &Line| {
            target
                .filters
                .iter()
                .all(|filter| filter.passes(line, subject))
        };
        self.write_where(takes, level, connection, message, subject);
    }

    fn write_where(
        &self,
        takes: impl Fn(&Target, &Line) -> bool,
        level: Level,
        connection: Option<u64>,
        message: fmt::Arguments<'_>,
        subject: Option<&dyn Subject>,
    ) {
        let mut line = Line::start(level, connection);
        line.push_message(message);
        if let Some(subject) = subject {
            line.push_arguments(format_args!("{subject}"));
        }
        line.finish();
        let mut object = None;
        for target in self.0.targets.iter().filter(|target| takes(target, &line)) {
            match &target.sink {
                Sink::Json(sink) => {
                    let object = object
                        .get_or_insert_with(|| json::line(level, connection, message, subject));
                    deliver_object(sink, level, object);
                }
                sink => deliver(sink, level, &line),
            }
        }
    }

    /// Writes one line that belongs to no connection.
    pub fn event(&self, level: Level, message: fmt::Arguments<'_>) {
        self.write(level, None, message);
    }
}

fn deliver(sink: &Sink, level: Level, line: &Line) {
    match sink {
        Sink::File(file) => file.write_line(line.whole()),
        Sink::Stderr => to_stderr(&[line.whole()]),
        Sink::Console(name) => {
            let begin = format!("{name}: [{}] ", level.name());
            to_stderr(&[begin.as_bytes(), line.message()]);
        }
        Sink::Syslog(syslog) => syslog.send(level, line.text()),
        Sink::Kept(kept) => kept.add(line.text(), line.message()),
        // `write_about` has taken these.
        Sink::Json(_) => {}
    }
}

fn deliver_object(sink: &Sink, level: Level, object: &str) {
    match sink {
        Sink::File(file) => file.write_line(object.as_bytes()),
        Sink::Stderr | Sink::Console(_) => to_stderr(&[object.as_bytes()]),
        Sink::Syslog(syslog) => syslog.send(level, object.trim_end().as_bytes()),
        Sink::Kept(kept) => kept.add(object.as_bytes(), object.as_bytes()),
        Sink::Json(sink) => deliver_object(sink, level, object),
    }
}

/// Writes the parts with one `write(2)`.
fn to_stderr(parts: &[&[u8]]) {
    // There is no remedy for a closed standard error.
    let _ = io::stderr().write_all(&parts.concat());
}

/// A system error in nginx's format: `(13: Permission denied)`.
pub struct Errno<'a>(pub &'a io::Error);

impl fmt::Display for Errno<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(code) = self.0.raw_os_error() else {
            return write!(formatter, "({})", self.0);
        };
        let text = self.0.to_string();
        let words = text
            .rsplit_once(" (os error")
            .map_or(text.as_str(), |(words, _)| words);
        write!(formatter, "({code}: {words})")
    }
}
