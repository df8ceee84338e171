//! The syntax tree: directives with their words and places, before any check.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::environment::Values;
use crate::error::{Complaint, ConfError};
use crate::source::Sources;
use crate::text::bytes_of;

/// A file's index in [`Sources`], or [`FileId::COMMAND_LINE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

impl FileId {
    /// The text of the `-g` option.
    pub const COMMAND_LINE: FileId = FileId(u32::MAX);
}

/// A place: a file and a line, the first line being 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    pub file: FileId,
    pub line: u32,
}

/// One word of a directive, without its quotes and escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The text; bytes that are not UTF-8 are mapped by [`crate::text_of`].
    pub text: String,
    /// Whether it was written in quotes.
    pub quoted: bool,
    /// The start of the word.
    pub span: Span,
}

impl Word {
    /// The word's bytes in the file, with escapes resolved.
    pub fn bytes(&self) -> Vec<u8> {
        bytes_of(&self.text)
    }
}

/// One directive, with the content of its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The first word.
    pub name: Word,
    /// The other words, shared with the entry that is made of it.
    pub arguments: Arc<[Word]>,
    /// The directives between `{` and `}`, includes resolved.
    pub block: Option<Vec<Directive>>,
    /// The place of its `;` or `{`: the line that nginx reports for it.
    pub span: Span,
    /// The place of its `}`; equal to `span` without a block. nginx reports this line for an error
    /// of a whole block.
    pub end: Span,
    /// The directive's bytes in its file or text: from its name, with a quote before it, up to and
    /// including its `;` or `{`.
    pub bytes: Range<u32>,
    /// The position in reading order over all files; errors are sorted by it.
    pub(crate) sequence: u32,
}

/// The parsed configuration: the directives of `-g` first, then those of the main file.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The directives of the main context.
    pub directives: Vec<Directive>,
    /// The files, each once, in the order of their first reading.
    pub sources: Sources,
    /// The values of environment variables that were put in.
    pub(crate) values: Values,
}

impl Tree {
    /// All that was read, by path, to parse the same configuration in another process: the files,
    /// and the values of environment variables that were put in.
    pub fn texts(&self) -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
        let files = self.sources.iter();
        let files = files.map(|source| (source.path.clone(), source.bytes.to_vec()));
        files.chain(self.values.texts())
    }

    /// Puts `${NAME}` in place of the values of environment variables that a message shows.
    pub fn hide_values(&self, message: &mut String) {
        self.values.hide(message);
    }

    /// Every directive in reading order, those inside of blocks behind the one that opens them.
    pub fn walk(&self) -> impl Iterator<Item = &Directive> {
        let mut open = vec![self.directives.iter()];
        std::iter::from_fn(move || {
            loop {
                if let Some(directive) = open.last_mut()?.next() {
                    open.extend(directive.block.as_ref().map(|inside| inside.iter()));
                    return Some(directive);
                }
                open.pop();
            }
        })
    }

    /// An error at a place of this tree.
    pub fn error(&self, span: Span, message: impl Into<Complaint>) -> ConfError {
        ConfError::at(&self.sources, span, message.into().into())
    }
}
