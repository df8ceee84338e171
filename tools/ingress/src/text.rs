//! Writing of configuration text: indentation, quoting, and whose lines are whose.

use std::fmt::Write as _;
use std::ops::Range;

use crate::findings::Subject;

/// A configuration that is being written.
#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    /// The number of lines written.
    lines: usize,
    depth: usize,
    /// Lines (the first is 1) and the object whose values they are.
    owners: Vec<(Range<usize>, Subject)>,
}

impl Text {
    /// A part of a configuration whose lines are indented as inside of a block.
    pub(crate) fn inside() -> Text {
        Text::inside_of(1)
    }

    /// As [`Text::inside`], of several blocks.
    pub(crate) fn inside_of(depth: usize) -> Text {
        Text {
            depth,
            ..Text::default()
        }
    }

    /// Writes a part that was written apart.
    pub(crate) fn append(&mut self, part: Text) {
        let offset = self.lines;
        self.text.push_str(&part.text);
        self.lines += part.lines;
        let owners = part.owners.into_iter();
        self.owners
            .extend(owners.map(|(lines, owner)| (lines.start + offset..lines.end + offset, owner)));
    }

    /// Writes a directive; `;` is added.
    pub(crate) fn directive(&mut self, text: impl AsRef<str>) {
        self.line(&format!("{};", text.as_ref()));
    }

    /// Writes a block: its head, and what is in it.
    pub(crate) fn block(&mut self, head: impl AsRef<str>, inside: impl FnOnce(&mut Text)) {
        self.line(&format!("{} {{", head.as_ref()));
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.line("}");
    }

    /// Writes a block around a part that was written with its indentation.
    pub(crate) fn around(&mut self, head: &str, part: Text) {
        self.line(&format!("{head} {{"));
        self.append(part);
        self.line("}");
    }

    /// Writes a comment.
    pub(crate) fn comment(&mut self, text: &str) {
        self.line(&format!("# {text}"));
    }

    /// Writes a text of several lines as it is: it has been parsed before.
    pub(crate) fn verbatim(&mut self, text: &str) {
        for line in text.lines() {
            let _ = writeln!(self.text, "{line}"); // a String takes every write
            self.lines += 1;
        }
    }

    /// Writes lines that are an object's own: an error in them is that object's.
    pub(crate) fn owned(&mut self, owner: &Subject, inside: impl FnOnce(&mut Text)) {
        let first = self.lines + 1;
        inside(self);
        self.owners.push((first..self.lines + 1, owner.clone()));
    }

    /// The text, and whose lines are whose.
    pub(crate) fn finish(self) -> (String, Vec<(Range<usize>, Subject)>) {
        (self.text, self.owners)
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
        self.lines += 1 + text.matches('\n').count();
    }
}

/// A word in quotes. `$` keeps its meaning.
pub(crate) fn quoted(word: &str) -> String {
    let mut text = String::with_capacity(word.len() + 2);
    text.push('"');
    for character in word.chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
    text
}

/// A word in quotes whose `$` is a letter as any other: the variable that holds one stands for it.
pub(crate) fn literal(word: &str) -> String {
    quoted(word).replace('$', "${literal_dollar}")
}
