//! Why the destination of a log, as written in a configuration, cannot be used.

use std::error::Error;
use std::fmt;

use super::syslog::TAG_BYTES_MAX;

/// Why the arguments of an `error_log` are refused. The messages are nginx's, and Angie's for what
/// nginx does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// There is no argument.
    NoTarget,
    /// The target is a buffer in memory, which debug builds of nginx have.
    Memory,
    /// The parameters of a syslog server.
    Syslog(SyslogError),
    /// The parameter for the form of the lines names no form.
    UnknownForm(String),
    /// The form is given twice.
    DuplicateForm,
    /// A filter does not say which part of a line it is about.
    NoFilterPart(String),
    /// A filter without a text.
    EmptyFilter(String),
    /// A filter of a part that lines do not have.
    UnknownProperty(String),
    /// A filter of source files, which debug builds of Angie have.
    FilterOfSources,
    /// A filter of tags, which lines do not have.
    FilterOfTags(String),
    /// The expression of a filter.
    Regex {
        /// The expression.
        pattern: String,
        /// The part of it that begins with the fault; empty if the fault is at its end.
        rest: String,
        /// PCRE2's words.
        reason: String,
    },
    /// The rate is no number.
    InvalidRate(String),
    /// A word is no level.
    UnknownLevel(String),
    /// A second level.
    DuplicateLevel(String),
}

/// Why the parameters of a syslog server are refused. The messages are nginx's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogError {
    /// No server is named.
    NoServer,
    /// The server's text has no address that can be used.
    Address(AddressFault, String),
    /// A parameter with this name is given twice.
    Duplicate(&'static str),
    /// The facility has no number in RFC 3164.
    UnknownFacility(String),
    /// The severity is no level.
    UnknownSeverity(String),
    /// The tag has more bytes than RFC 3164 allows.
    LongTag,
    /// The tag has other characters than letters, digits and underscores.
    InvalidTag,
    /// No parameter has this name.
    Unknown(String),
}

/// The part of a syslog server's address that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFault {
    /// A unix socket without a path.
    NoPath,
    /// No host.
    NoHost,
    /// The port is no number from 1 to 65535.
    InvalidPort,
    /// The host's name has no address.
    HostNotFound,
}

impl fmt::Display for SpecError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::NoTarget => {
                out.write_str("invalid number of arguments in \"error_log\" directive")
            }
            SpecError::Memory => out.write_str("buffers in memory are not supported"),
            SpecError::Syslog(error) => error.fmt(out),
            SpecError::UnknownForm(word) => write!(out, "unknown log format \"{word}\""),
            SpecError::NoFilterPart(word) => write!(out, "missing filter type in \"{word}\""),
            SpecError::EmptyFilter(word) => write!(out, "empty filter pattern \"{word}\""),
            SpecError::UnknownProperty(name) => {
                write!(out, "filter with unknown property \"{name}\"")
            }
            SpecError::FilterOfSources => {
                out.write_str("source file filtering requires debug build")
            }
            SpecError::FilterOfTags(word) => {
                write!(out, "filters of tags are not supported in \"{word}\"")
            }
            SpecError::Regex {
                pattern,
                rest,
                reason,
            } => {
                write!(out, "pcre2_compile() failed: {reason} in \"{pattern}\"")?;
                match rest.as_str() {
                    "" => Ok(()),
                    rest => write!(out, " at \"{rest}\""),
                }
            }
            SpecError::InvalidRate(word) => write!(out, "invalid rate \"{word}\""),
            SpecError::DuplicateForm => out.write_str("duplicate \"format\" parameter"),
            SpecError::UnknownLevel(word) => write!(out, "invalid log level \"{word}\""),
            SpecError::DuplicateLevel(word) => write!(out, "duplicate log level \"{word}\""),
        }
    }
}

impl Error for SpecError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SpecError::Syslog(error) => Some(error),
            _ => None,
        }
    }
}

impl From<SyslogError> for SpecError {
    fn from(error: SyslogError) -> SpecError {
        SpecError::Syslog(error)
    }
}

impl fmt::Display for SyslogError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyslogError::NoServer => out.write_str("no syslog server specified"),
            SyslogError::Address(fault, server) => {
                write!(out, "{fault} in syslog server \"{server}\"")
            }
            SyslogError::Duplicate(name) => write!(out, "duplicate syslog \"{name}\""),
            SyslogError::UnknownFacility(name) => write!(out, "unknown syslog facility \"{name}\""),
            SyslogError::UnknownSeverity(name) => write!(out, "unknown syslog severity \"{name}\""),
            SyslogError::LongTag => write!(out, "syslog tag length exceeds {TAG_BYTES_MAX}"),
            SyslogError::InvalidTag => {
                out.write_str("syslog \"tag\" only allows alphanumeric characters and underscore")
            }
            SyslogError::Unknown(parameter) => {
                write!(out, "unknown syslog parameter \"{parameter}\"")
            }
        }
    }
}

impl Error for SyslogError {}

impl fmt::Display for AddressFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            AddressFault::NoPath => "no path in the unix domain socket",
            AddressFault::NoHost => "no host",
            AddressFault::InvalidPort => "invalid port",
            AddressFault::HostNotFound => "host not found",
        })
    }
}

impl From<SpecError> for String {
    fn from(error: SpecError) -> String {
        error.to_string()
    }
}

impl From<SyslogError> for String {
    fn from(error: SyslogError) -> String {
        error.to_string()
    }
}
