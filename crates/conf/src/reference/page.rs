//! One page of the reference: a family's directives as Markdown.

use std::fmt::Write;

use crate::registry::{Merge, Repeat, Row, Value};

/// The directives of a family.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) name: &'static str,
    pub(super) introduction: String,
    pub(super) entries: Vec<Entry>,
}

/// A directive of a page.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// The rows, those that differ in contexts and origin only as one.
    forms: Vec<Form>,
    pub(super) text: Option<String>,
}

/// Rows that say the same.
#[derive(Clone, Debug)]
struct Form {
    rows: Vec<&'static Row>,
    origins: Vec<String>,
}

impl Page {
    pub(super) fn new(name: &'static str) -> Page {
        Page {
            name,
            introduction: String::new(),
            entries: Vec::new(),
        }
    }

    /// Adds a row to its directive.
    pub(super) fn add(&mut self, row: &'static Row, origin: Option<String>) {
        let index = match self.entries.iter().position(|one| one.name == row.name) {
            Some(index) => index,
            None => {
                self.entries.push(Entry {
                    name: row.name,
                    forms: Vec::new(),
                    text: None,
                });
                self.entries.len() - 1
            }
        };
        let forms = &mut self.entries[index].forms;
        match forms
            .iter_mut()
            .find(|form| says_the_same(form.rows[0], row))
        {
            Some(form) => {
                form.rows.push(row);
                form.origins.extend(origin);
            }
            None => forms.push(Form {
                rows: vec![row],
                origins: origin.into_iter().collect(),
            }),
        }
    }

    /// The name of the page's file.
    pub(super) fn file(&self) -> String {
        format!("{}.md", self.name.replace(' ', "-"))
    }

    pub(super) fn markdown(&self) -> String {
        let mut out = format!(
            "# {}\n\nWritten by `cargo xtask docs` from the rows and from `reference.md` beside \
             them; do not edit.\n",
            self.name
        );
        if !self.introduction.is_empty() {
            // A write to a string cannot fail.
            let _ = write!(out, "\n{}\n", self.introduction);
        }
        for entry in &self.entries {
            let _ = entry.write(&mut out, entry.name);
        }
        out
    }

    /// The page and its directives as a row of a table.
    pub(super) fn index_line(&self, folder: &str) -> String {
        let file = self.file();
        let entries = self.entries.iter();
        let entries = entries.map(|entry| {
            let name = entry.name;
            format!("[`{name}`]({folder}{file}#{name})")
        });
        let entries: Vec<String> = entries.collect();
        let (name, entries) = (self.name, entries.join(", "));
        format!("| [{name}]({folder}{file}) | {entries} |\n")
    }

    /// The part about a directive.
    pub(super) fn entry(&self, name: &str) -> Option<String> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        let mut out = String::new();
        // A write to a string cannot fail.
        let _ = entry.write(&mut out, &format!("{name} ({})", self.name));
        Some(out)
    }
}

impl Entry {
    pub(super) fn rows(&self) -> impl Iterator<Item = &'static Row> {
        self.forms.iter().flat_map(|form| form.rows.iter().copied())
    }

    /// The parameters with a value, `NAME=...`, that the syntax has.
    pub(super) fn parameters(&self) -> Vec<&'static str> {
        let words = self.rows().flat_map(|row| {
            let words = row.syntax.split([' ', '[', ']', '|', ',']);
            words.filter_map(|word| word.split_once('='))
        });
        let names = words.map(|(name, _)| name);
        let is_name = |name: &&str| {
            let mut letters = name.chars();
            !name.is_empty() && letters.all(|one| one.is_ascii_alphanumeric() || one == '_')
        };
        let mut names: Vec<&str> = names.filter(is_name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn write(&self, out: &mut String, title: &str) -> std::fmt::Result {
        write!(out, "\n## {title}\n")?;
        for form in &self.forms {
            form.write(out)?;
        }
        match &self.text {
            Some(text) => write!(out, "\n{text}\n"),
            None => Ok(()),
        }
    }
}

impl Form {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        let row = self.rows[0];
        let ending = if row.value.is_block() {
            " { ... }"
        } else {
            ";"
        };
        let gap = if row.syntax.is_empty() { "" } else { " " };
        let (name, syntax) = (row.name, row.syntax);
        write!(out, "\n- Syntax: `{name}{gap}{syntax}{ending}`\n")?;
        match row.default {
            "" => writeln!(out, "- Default: none")?,
            default => writeln!(out, "- Default: `{name} {default};`")?,
        }
        let contexts = self.rows.iter().flat_map(|row| row.contexts);
        let contexts: Vec<&str> = contexts.map(|context| context.text()).collect();
        writeln!(out, "- Context: {}", contexts.join(", "))?;
        if let Some(value) = value(row.value) {
            writeln!(out, "- Value: {value}")?;
        }
        if let Some(inheritance) = inheritance(row) {
            writeln!(out, "- Inheritance: {inheritance}")?;
        }
        if row.variables.is_some() {
            writeln!(out, "- Variables: allowed")?;
        }
        let mut origins = self.origins.clone();
        origins.dedup();
        if !origins.is_empty() {
            writeln!(out, "- Origin: {}", origins.join("; in stream: "))?;
        }
        write!(out, "\n{}\n", row.summary)
    }
}

/// Whether two rows of a name differ in contexts and origin only.
fn says_the_same(one: &Row, other: &Row) -> bool {
    let texts = |row: &Row| [row.syntax, row.default, row.summary];
    texts(one) == texts(other) && one.value.is_block() == other.value.is_block()
}

/// What a value of a type looks like, where the syntax alone does not say it.
fn value(value: Value) -> Option<String> {
    let text = match value {
        Value::Size => "a number of bytes; `k` and `m` stand for KiB and MiB, as in `64k`",
        Value::Offset => "a number of bytes; `k`, `m` and `g` stand for KiB, MiB and GiB",
        Value::Milliseconds => {
            "a time such as `500ms`, `30s`, `5m` or `1h`; without a unit it is in seconds"
        }
        Value::Seconds => {
            "a time such as `30s`, `5m`, `1h` or `7d`; without a unit it is in seconds"
        }
        Value::Number => "a number from 0",
        Value::Between(least, most) => return Some(format!("a number from {least} to {most}")),
        Value::AtLeast(least) => return Some(format!("a number from {least}")),
        Value::Buffers => "a number of buffers, and the size of each; `k` and `m` are KiB and MiB",
        _ => return None,
    };
    Some(text.to_owned())
}

/// How a directive that may stand in nested blocks is inherited, where that is not as usual.
fn inheritance(row: &Row) -> Option<&'static str> {
    if row.contexts.len() < 2 {
        return None;
    }
    match (row.merge, row.repeat) {
        (Merge::Own, _) => Some("none; it applies to its own block"),
        (Merge::Nearest, Repeat::Many) => {
            Some("all or none: a block that has one of its own takes none from outside")
        }
        (Merge::Nearest, Repeat::Once) => None,
    }
}

/// A part of the reference for a terminal: without comments and the targets of links.
pub fn plain(markdown: &str) -> String {
    let mut out = String::new();
    let mut is_code = false;
    for line in markdown.lines() {
        is_code ^= line.starts_with("```");
        if is_code {
            out.push_str(line);
        } else if line.starts_with("<!--") {
            continue;
        } else {
            without_targets(line, &mut out);
        }
        out.push('\n');
    }
    out
}

/// Adds a line, of whose links only the words are left.
fn without_targets(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let (Some((text, words)), Some((_, next))) =
            (before.rsplit_once('['), after.split_once(')'))
        else {
            break;
        };
        out.push_str(text);
        out.push_str(words);
        rest = next;
    }
    out.push_str(rest);
}
