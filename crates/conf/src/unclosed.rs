//! The search for a block without its closing brace.
//!
//! Such a block takes the brace of the block around it, so the text ends inside another block. The
//! indentation shows the wrong one: its line and the line of its brace begin at different columns.

use crate::tree::{Directive, FileId, Word};

/// The start of a block.
#[derive(Debug)]
pub(crate) struct Opening {
    name: String,
    line: u32,
}

impl Opening {
    /// The block of a directive of this name.
    pub(crate) fn of(name: &Word) -> Opening {
        Opening {
            name: name.text.clone(),
            line: name.span.line,
        }
    }

    /// A block of which only the brace was read.
    pub(crate) fn nameless(line: u32) -> Opening {
        Opening {
            name: String::new(),
            line,
        }
    }

    fn question(&self) -> String {
        let Opening { name, line } = self;
        match name.as_str() {
            "" => format!(", is a \"}}\" missing for the \"{{\" in line {line}?"),
            name => format!(", is a \"}}\" missing for \"{name}\" in line {line}?"),
        }
    }
}

/// The hint for a text that ends inside a block; `inside` is the content of that block. Empty if
/// there is no candidate.
pub(crate) fn hint(
    bytes: &[u8],
    file: FileId,
    opening: Option<&Opening>,
    inside: &[Directive],
) -> String {
    let indents: Vec<Indent> = bytes.split(|byte| *byte == b'\n').map(Indent::of).collect();
    match first_shifted(&indents, file, inside) {
        Some(directive) => Opening::of(&directive.name).question(),
        None => opening.map(Opening::question).unwrap_or_default(),
    }
}

/// The indentation of a line.
struct Indent {
    columns: usize,
    is_brace: bool,
}

impl Indent {
    fn of(line: &[u8]) -> Indent {
        let is_blank = |byte: &&u8| matches!(**byte, b' ' | b'\t');
        let columns = line.iter().take_while(is_blank).count();
        Indent {
            columns,
            is_brace: line.get(columns) == Some(&b'}'),
        }
    }
}

/// The innermost block that is closed by a brace with a smaller indentation.
fn first_shifted<'a>(
    indents: &[Indent],
    file: FileId,
    directives: &'a [Directive],
) -> Option<&'a Directive> {
    directives.iter().find_map(|directive| {
        let inside = directive.block.as_ref()?;
        first_shifted(indents, file, inside).or_else(|| {
            let line = |line: u32| indents.get((line as usize).checked_sub(1)?);
            let (begin, end) = (line(directive.name.span.line)?, line(directive.end.line)?);
            let is_here = directive.end.file == file && directive.name.span.file == file;
            let is_shifted = end.is_brace && end.columns < begin.columns;
            (is_here && is_shifted).then_some(directive)
        })
    })
}
