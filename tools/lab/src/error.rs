//! All errors, sorted by their cause: the study, the machine, a contender. Each is one line, with
//! the file and line or the step.

use std::fmt;
use std::io;
use std::path::Path;

/// Why the lab stopped.
#[derive(Debug)]
pub(crate) enum LabError {
    /// The study has an error; `place` is FILE:LINE.
    Study { place: String, text: String },
    /// There is no such study.
    Unknown(String),
    /// The machine lacks something that the study needs.
    Machine { place: String, text: String },
    /// A contender did not start, died, or did not answer.
    Contender { name: String, text: String },
    /// The driver failed.
    Driver { step: String, text: String },
    /// Figures could not be written or read.
    File { name: String, text: String },
    /// A step of the lab itself failed.
    Step { step: &'static str, text: String },
    /// Ctrl-C.
    Interrupted,
}

impl LabError {
    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        LabError::File {
            name: path.display().to_string(),
            text: error.to_string(),
        }
    }

    /// A failed step of the lab itself.
    pub(crate) fn step(step: &'static str, error: impl fmt::Display) -> Self {
        LabError::Step {
            step,
            text: error.to_string(),
        }
    }

    /// An error of this contender.
    pub(crate) fn contender(name: &str, text: impl Into<String>) -> Self {
        LabError::Contender {
            name: name.to_owned(),
            text: text.into(),
        }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Study { place, text } | LabError::Machine { place, text } => {
                write!(formatter, "{text} in {place}")
            }
            LabError::Unknown(text) => formatter.write_str(text),
            LabError::Contender { name, text } => write!(formatter, "contender \"{name}\": {text}"),
            LabError::Driver { step, text } => write!(formatter, "driver: {step}: {text}"),
            LabError::File { name, text } => write!(formatter, "{name}: {text}"),
            LabError::Step { step, text } => write!(formatter, "{step}: {text}"),
            LabError::Interrupted => formatter.write_str("interrupted"),
        }
    }
}

impl std::error::Error for LabError {}
