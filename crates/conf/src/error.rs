//! Configuration errors: nginx's message, our hint, then ` in FILE:LINE`. Each prevents a start.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::source::Sources;
use crate::tree::{FileId, Span};

/// The most errors that are kept: further ones are usually consequences of earlier ones.
pub(crate) const ERRORS_MAX: usize = 100;

/// The longest message, without its place: nginx cuts its messages there.
const MESSAGE_BYTES_MAX: usize = 1024;

/// One error in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConfError {
    /// The message, in nginx's words if it has some.
    pub message: String,
    /// What was meant, or what to write instead: it goes on with the message. Empty if nothing is
    /// known.
    pub hint: String,
    /// The file and the line; `None` for the main file itself and for the command line.
    pub place: Option<(String, u32)>,
}

/// What is wrong with what a directive says, in nginx's words if it has some, for whoever knows the
/// place: that one makes a [`ConfError`] of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint(String);

impl From<String> for Complaint {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Complaint {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<Complaint> for String {
    fn from(complaint: Complaint) -> Self {
        complaint.0
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl ConfError {
    /// An error of the configuration as a whole.
    pub fn unplaced(message: impl Into<Complaint>) -> ConfError {
        ConfError {
            message: message.into().0,
            hint: String::new(),
            place: None,
        }
    }

    /// The message with its place, as nginx has it, without the hint.
    pub fn plain(&self) -> String {
        let plain = ConfError {
            hint: String::new(),
            ..self.clone()
        };
        plain.to_string()
    }

    /// An error at a place; `sources` gives the file's name.
    pub(crate) fn at(sources: &Sources, span: Span, message: String) -> ConfError {
        ConfError::named(sources.name(span.file), span, message)
    }

    /// An error in a file with this name; a `-g` text has no name, and its message shows that.
    pub(crate) fn named(file: Option<&str>, span: Span, mut message: String) -> ConfError {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        if span.file == FileId::COMMAND_LINE {
            return ConfError::unplaced(format!("{message} in command line"));
        }
        ConfError {
            message,
            hint: String::new(),
            place: file.map(|file| (file.to_owned(), span.line)),
        }
    }
}

impl fmt::Display for ConfError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        formatter.write_str(&self.hint)?;
        match &self.place {
            Some((file, line)) => write!(formatter, " in {file}:{line}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfError {}

/// All errors, in reading order; never empty when returned as an error.
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

/// The errors so far, each with its position in reading order; limited to [`ERRORS_MAX`].
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

    /// Adds an error even beyond the limit: for errors that are not consequences of others.
    pub(crate) fn add(&mut self, sequence: u32, error: ConfError) {
        self.errors.push((sequence, error));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() >= ERRORS_MAX
    }

    /// The positions of the errors so far.
    pub(crate) fn sequences(&self) -> HashSet<u32> {
        self.errors.iter().map(|(sequence, _)| *sequence).collect()
    }

    /// Adds the hints to their errors.
    pub(crate) fn append_hints(&mut self, hints: &HashMap<u32, String>) {
        for (sequence, error) in &mut self.errors {
            if let Some(hint) = hints.get(sequence) {
                error.hint.push_str(hint);
            }
        }
    }

    /// Keeps only the errors for which `passes` holds.
    pub(crate) fn retain(&mut self, passes: impl Fn(u32, &ConfError) -> bool) {
        self.errors
            .retain(|(sequence, error)| passes(*sequence, error));
    }

    /// Adds the errors of another stage.
    pub(crate) fn append(&mut self, other: Collector) {
        self.errors.extend(other.errors);
    }

    /// `Ok` if there is no error, otherwise the errors in reading order.
    pub(crate) fn finish(mut self) -> Result<(), Errors> {
        if self.errors.is_empty() {
            return Ok(());
        }
        self.errors.sort_by_key(|(sequence, _)| *sequence);
        // A file that is included twice shows each of its errors once, and so does a directive that
        // several blocks inherit.
        let mut seen = HashSet::new();
        self.errors.retain(|(_, error)| seen.insert(error.clone()));
        self.errors.truncate(ERRORS_MAX);
        Err(Errors(
            self.errors.into_iter().map(|(_, error)| error).collect(),
        ))
    }
}
