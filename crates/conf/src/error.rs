//! Configuration errors: nginx's words, then ` in FILE:LINE`. Every one is fatal to a start.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::source::Sources;
use crate::tree::{FileId, Span};

/// How many errors are kept: beyond that they are echoes of one mistake, not help.
pub(crate) const ERRORS_MAX: usize = 100;

/// The longest message, without its place: nginx cuts its own there.
const MESSAGE_BYTES_MAX: usize = 1024;

/// One mistake in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConfError {
    /// What is wrong, in nginx's words where nginx has some.
    pub message: String,
    /// The file and the line; `None` for the main file itself and for the command line.
    pub place: Option<(String, u32)>,
}

impl ConfError {
    /// An error at a place, whose file is named by `sources`.
    pub(crate) fn at(sources: &Sources, span: Span, message: String) -> ConfError {
        ConfError::named(sources.name(span.file), span, message)
    }

    /// An error in a file of this name; a `-g` text has no name but says so.
    pub(crate) fn named(file: Option<&str>, span: Span, mut message: String) -> ConfError {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        if span.file == FileId::COMMAND_LINE {
            return ConfError {
                message: format!("{message} in command line"),
                place: None,
            };
        }
        ConfError {
            message,
            place: file.map(|file| (file.to_owned(), span.line)),
        }
    }
}

impl fmt::Display for ConfError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match &self.place {
            Some((file, line)) => write!(formatter, " in {file}:{line}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfError {}

/// All the mistakes that were found, in reading order; never empty when returned as an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub Vec<ConfError>);

impl fmt::Display for Errors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

impl From<ConfError> for Errors {
    fn from(error: ConfError) -> Errors {
        Errors(vec![error])
    }
}

/// Errors on their way, each with its place in reading order; limited to [`ERRORS_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Collector {
    errors: Vec<(u32, ConfError)>,
}

impl Collector {
    pub(crate) fn push(&mut self, sequence: u32, error: ConfError) {
        if !self.is_full() {
            self.errors.push((sequence, error));
        }
    }

    /// Takes an error however many there are: for those that are not echoes of one mistake.
    pub(crate) fn add(&mut self, sequence: u32, error: ConfError) {
        self.errors.push((sequence, error));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() >= ERRORS_MAX
    }

    /// The places in reading order of what is wrong so far.
    pub(crate) fn sequences(&self) -> HashSet<u32> {
        self.errors.iter().map(|(sequence, _)| *sequence).collect()
    }

    /// Adds what to look for to errors that have a hint.
    pub(crate) fn append_hints(&mut self, hints: &HashMap<u32, String>) {
        for (sequence, error) in &mut self.errors {
            if let Some(hint) = hints.get(sequence) {
                error.message.push_str(hint);
            }
        }
    }

    /// Drops errors that do not pass.
    pub(crate) fn retain(&mut self, passes: impl Fn(u32, &ConfError) -> bool) {
        self.errors
            .retain(|(sequence, error)| passes(*sequence, error));
    }

    /// Takes in another stage's errors.
    pub(crate) fn append(&mut self, other: Collector) {
        self.errors.extend(other.errors);
    }

    /// `Ok` when nothing was collected, else the errors in reading order.
    pub(crate) fn finish(mut self) -> Result<(), Errors> {
        if self.errors.is_empty() {
            return Ok(());
        }
        self.errors.sort_by_key(|(sequence, _)| *sequence);
        // A file that is included twice has each of its mistakes once, as has a directive that
        // several blocks inherit.
        let mut seen = HashSet::new();
        self.errors.retain(|(_, error)| seen.insert(error.clone()));
        self.errors.truncate(ERRORS_MAX);
        Err(Errors(
            self.errors.into_iter().map(|(_, error)| error).collect(),
        ))
    }
}
