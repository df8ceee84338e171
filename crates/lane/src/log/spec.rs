//! The arguments of an `error_log` directive.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use super::error::SpecError;
use super::filter::Filter;
use super::level::Level;
use super::syslog::SyslogSpec;

/// nginx's switches for parts of its debug log: they are accepted, and read as `debug`.
const DEBUG_PARTS: [&str; 7] = [
    "debug_core",
    "debug_alloc",
    "debug_mutex",
    "debug_event",
    "debug_http",
    "debug_mail",
    "debug_stream",
];

/// The destination of an `error_log`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// A file, with its full path.
    File(PathBuf),
    /// Standard error.
    Stderr,
    /// A syslog server.
    Syslog(SyslogSpec),
}

/// The form of a destination's lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// nginx's.
    #[default]
    Nginx,
    /// A JSON object a line.
    Json,
}

/// One `error_log` directive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// The destination of the lines.
    pub destination: Destination,
    /// The least severe level that is written.
    pub level: Level,
    /// The form of the lines.
    pub form: Form,
    /// Conditions that a line must meet, all of them.
    pub filters: Vec<Filter>,
    /// The greatest rate of lines; none if it has no limit.
    pub lines_per_second: Option<NonZeroU32>,
}

impl Spec {
    /// A destination for all lines of this level and the more severe ones.
    pub fn new(destination: Destination, level: Level) -> Spec {
        Spec {
            destination,
            level,
            form: Form::Nginx,
            filters: Vec::new(),
            lines_per_second: None,
        }
    }

    /// Reads a directive's arguments; relative paths are under `prefix`.
    ///
    /// # Errors
    /// nginx's message, without file and line.
    pub fn parse(arguments: &[&str], prefix: &Path) -> Result<Spec, SpecError> {
        let Some((target, words)) = arguments.split_first() else {
            return Err(SpecError::NoTarget);
        };
        // A file without a name is standard error, as in nginx.
        let destination = if matches!(*target, "stderr" | "") {
            Destination::Stderr
        } else if target.starts_with("memory:") {
            return Err(SpecError::Memory);
        } else if let Some(text) = target.strip_prefix("syslog:") {
            Destination::Syslog(SyslogSpec::parse(text)?)
        } else {
            Destination::File(prefix.join(target))
        };
        let mut spec = Spec::new(destination, Level::Error);
        let (mut forms, mut plain) = (Vec::new(), Vec::new());
        for word in words {
            if let Some(form) = word.strip_prefix("format=") {
                forms.push(form);
            } else if let Some(filter) = word.strip_prefix("filter=") {
                spec.filters.push(Filter::parse(filter)?);
            } else if let Some(rate) = word.strip_prefix("rate=") {
                let invalid = |_| SpecError::InvalidRate((*word).to_owned());
                let rate = rate.strip_suffix("m/s").unwrap_or(rate);
                spec.lines_per_second = NonZeroU32::new(rate.parse().map_err(invalid)?);
            } else {
                plain.push(*word);
            }
        }
        spec.form = parse_form(&forms)?;
        spec.level = parse_levels(&plain)?;
        if spec.level == Level::Debug {
            // As in Angie: what is written to find an error is to be whole.
            spec.lines_per_second = None;
        }
        Ok(spec)
    }

    /// The file that must be open, if the destination is a file.
    pub fn file(&self) -> Option<&Path> {
        match &self.destination {
            Destination::File(path) => Some(path),
            Destination::Stderr | Destination::Syslog(_) => None,
        }
    }
}

fn parse_form(words: &[&str]) -> Result<Form, SpecError> {
    match words {
        [] | ["default"] => Ok(Form::Nginx),
        ["json"] => Ok(Form::Json),
        [word] => Err(SpecError::UnknownForm((*word).to_owned())),
        _ => Err(SpecError::DuplicateForm),
    }
}

fn parse_levels(words: &[&str]) -> Result<Level, SpecError> {
    let mut level = None;
    for word in words {
        if let Some(named) = Level::from_name(word) {
            if level.is_some() {
                return Err(SpecError::DuplicateLevel((*word).to_owned()));
            }
            level = Some(named);
        } else if DEBUG_PARTS.contains(word) && level.is_none_or(|level| level == Level::Debug) {
            level = Some(Level::Debug);
        } else {
            return Err(SpecError::UnknownLevel((*word).to_owned()));
        }
    }
    Ok(level.unwrap_or(Level::Error))
}
