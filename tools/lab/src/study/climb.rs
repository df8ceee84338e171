//! The words of the command that climbs a ladder. Nothing is started here.

use std::path::Path;

use crate::template::{self, TemplateError, Values};

/// A command's words, in which `{turnpike}` is this program and `{folder}` that of its result.
///
/// # Errors
/// A value that a climb does not have.
pub(crate) fn climb_words<'a>(
    words: impl Iterator<Item = &'a String>,
    program: &Path,
    folder: &Path,
) -> Result<Vec<String>, TemplateError> {
    let pairs = [("turnpike", program), ("folder", folder)];
    let pairs = pairs.map(|(name, path)| (name.to_owned(), path.display().to_string()));
    let values: Values = pairs.into_iter().collect();
    words.map(|word| template::fill(word, &values)).collect()
}
