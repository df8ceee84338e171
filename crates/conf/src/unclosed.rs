//! Which block lacks its closing brace.
//!
//! A block without one takes the brace of the block around it, so that the text ends in a block
//! that is right. The indentation tells which one is meant: its line and the line of the brace
//! that it took begin at different columns.

use crate::tree::{Directive, FileId, Word};

/// Where a block begins.
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

/// What to look for when the text of a file ends inside a block, `inside` being what that block
/// holds. Empty where nothing is known.
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

/// How a line begins.
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

/// The first block, innermost first, that a brace closes which stands further left.
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
