//! Studies: files with published results, the comparison here, and its method.
//!
//! The built-in ones are in the binary; another is given by its path. An error is reported with
//! FILE:LINE before any process is started.

mod check;
mod climb;
mod library;
pub(crate) mod model;

use std::ops::Range;
use std::path::Path;

use crate::error::LabError;
pub(crate) use climb::climb_words;
pub(crate) use library::{NAMES, program};
pub(crate) use model::Study;
use toml::Spanned;

/// A study that holds together, with its text.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) study: Study,
    pub(crate) source: Source,
}

/// A study's text and where it is from.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) text: String,
}

impl Source {
    /// FILE:LINE of a place in the text.
    pub(crate) fn place(&self, span: &Range<usize>) -> String {
        let end = span.start.min(self.text.len());
        let line = self.text.as_bytes()[..end]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        format!("{}:{}", self.file, line + 1)
    }

    /// An error at a part of the file.
    pub(crate) fn mistake<T>(&self, at: &Spanned<T>, text: impl Into<String>) -> LabError {
        LabError::Study {
            place: self.place(&at.span()),
            text: text.into(),
        }
    }

    /// A missing capability of the machine for a part of the file.
    pub(crate) fn lacking<T>(&self, at: &Spanned<T>, text: impl Into<String>) -> LabError {
        LabError::Machine {
            place: self.place(&at.span()),
            text: text.into(),
        }
    }
}

/// Loads a study that ships by its name, another by its path.
///
/// # Errors
/// There is none, or it does not hold together.
pub(crate) fn load(name: &str) -> Result<Loaded, LabError> {
    if name.contains('/') || name.ends_with(".toml") {
        let path = Path::new(name);
        let text = std::fs::read_to_string(path).map_err(|error| LabError::file(path, &error))?;
        return parse(name, &text);
    }
    match library::text(name) {
        Some(text) => parse(&format!("studies/{name}.toml"), text),
        None => Err(LabError::Unknown(library::unknown(name))),
    }
}

/// A step of a published ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    pub text: String,
    pub connections_per_s: f64,
    /// Whether the publication kept the step.
    pub kept: bool,
    /// The tuner's names of what it changed; none where the tuner does not change that.
    pub knobs: Vec<String>,
}

/// The ladder of a study that ships; empty where it has none.
pub fn ladder(name: &str) -> Vec<Rung> {
    let study = load(name).map(|loaded| loaded.study);
    let steps = study.map(|study| study.ladder).unwrap_or_default();
    let rungs = steps.into_iter().map(|step| Rung {
        text: step.text,
        connections_per_s: step.connections_per_s,
        kept: step.kept,
        knobs: step.knobs,
    });
    rungs.collect()
}

/// Reads and checks a study's text.
///
/// # Errors
/// With FILE:LINE.
pub(crate) fn parse(file: &str, text: &str) -> Result<Loaded, LabError> {
    let source = Source {
        file: file.to_owned(),
        text: text.to_owned(),
    };
    let study: Study = toml::from_str(text).map_err(|error| LabError::Study {
        place: source.place(&error.span().unwrap_or(0..0)),
        text: error.message().replace('\n', " "),
    })?;
    check::check(&study, &source)?;
    Ok(Loaded { study, source })
}

#[cfg(test)]
mod tests;
