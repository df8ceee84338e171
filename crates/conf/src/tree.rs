//! What was written: directives with their words and places. Nothing here is judged yet.

use crate::error::ConfError;
use crate::source::Sources;
use crate::text::bytes_of;

/// A file's index in [`Sources`], or [`FileId::COMMAND_LINE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

impl FileId {
    /// The text of the `-g` option, which is no file.
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
    /// The text; bytes that are not UTF-8 are mapped as [`crate::text_of`] says.
    pub text: String,
    /// Whether it was written in quotes.
    pub quoted: bool,
    /// Where it starts.
    pub span: Span,
}

impl Word {
    /// The word's bytes as they were in the file, escapes resolved.
    pub fn bytes(&self) -> Vec<u8> {
        bytes_of(&self.text)
    }
}

/// One directive, with everything inside its block when it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The first word.
    pub name: Word,
    /// The other words.
    pub arguments: Vec<Word>,
    /// The directives between `{` and `}`, includes resolved.
    pub block: Option<Vec<Directive>>,
    /// Where its `;` or `{` stands: the line that nginx reports for it.
    pub span: Span,
    /// Where its `}` stands; equal to `span` without a block. nginx reports this line for what
    /// is wrong with a whole block.
    pub end: Span,
    /// The place in reading order over all files, by which errors are sorted.
    pub(crate) sequence: u32,
}

/// Everything that was read: the directives of `-g` first, then those of the main file.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The directives of the main context.
    pub directives: Vec<Directive>,
    /// Every file, each once, in the order of first reading.
    pub sources: Sources,
}

impl Tree {
    /// An error at a place of this tree.
    pub fn error(&self, span: Span, message: impl Into<String>) -> ConfError {
        ConfError::at(&self.sources, span, message.into())
    }
}
