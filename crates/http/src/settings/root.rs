//! `root` and `alias`: where a location's files are.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use turnpike_conf::{ConfError, Entry, View};

use crate::plan::location_words::location_words;
use turnpike_plan::template::Template;
use turnpike_plan::variables::{Subject, VariableTable};

/// Where files are.
#[derive(Debug, Clone)]
pub struct Root {
    template: Template,
    /// Put before a folder that is not absolute; ends with a slash.
    prefix: Box<[u8]>,
    alias: Alias,
}

#[derive(Debug, Clone, Copy)]
enum Alias {
    /// `root`: the whole path is looked up below the folder.
    No,
    /// `alias` of a prefix of so many bytes, which the folder stands for.
    Prefix(usize),
    /// `alias` of a regular expression: the folder is the whole file name.
    Whole,
}

impl Root {
    /// Reads `root` or `alias`; `html` below the prefix when neither is given.
    pub(super) fn read<S>(
        view: View<'_>,
        prefix: &Path,
        variables: &mut VariableTable<S>,
    ) -> Result<Self, ConfError> {
        let alias = view.own("alias");
        if let (Some(alias), Some(root)) = (alias, view.own("root")) {
            let (first, second) = if alias.sequence < root.sequence {
                (alias, root)
            } else {
                (root, alias)
            };
            let message = format!(
                "\"{}\" directive is duplicate, \"{}\" directive was specified earlier",
                second.row.name, first.row.name
            );
            return Err(view.error(second.span, message));
        }
        let folder = nearest_folder(view);
        let entry = folder.map(|(_, entry)| entry);
        let alias = folder
            .filter(|(_, entry)| entry.row.name == "alias")
            .map_or(Alias::No, |(level, _)| alias_kind(level));
        let is_alias = !matches!(alias, Alias::No);
        let span = entry.map_or(view.span(), |entry| entry.span);
        let text = entry.and_then(|entry| entry.arguments.first());
        let text = text.map_or_else(|| b"html".to_vec(), |word| word.bytes());
        let refused = [
            &b"$document_root"[..],
            b"${document_root}",
            b"$realpath_root",
        ];
        if refused
            .iter()
            .any(|name| memchr::memmem::find(&text, name).is_some())
        {
            let name = entry.map_or("root", |entry| entry.row.name);
            let message =
                format!("the $document_root variable cannot be used in the \"{name}\" directive");
            return Err(view.error(span, message));
        }
        let text = match text.as_slice() {
            [head @ .., b'/'] if !is_alias => head,
            whole => whole,
        };
        let template =
            Template::compile(text, variables).map_err(|message| view.error(span, message))?;
        Ok(Self {
            template,
            prefix: with_slash(prefix),
            alias,
        })
    }

    /// Appends the folder (`$document_root`).
    pub fn folder<S: Subject>(&self, subject: &S, out: &mut Vec<u8>) {
        let start = out.len();
        self.template.evaluate(subject, out);
        if out.get(start) != Some(&b'/') {
            out.splice(start..start, self.prefix.iter().copied());
        }
    }

    /// Appends the file or folder that `path` stands for (`$request_filename`). `below_alias`:
    /// whether the path was made to be looked up below the folder of a regular expression's alias.
    pub fn file<S: Subject>(&self, subject: &S, path: &[u8], below_alias: bool, out: &mut Vec<u8>) {
        self.folder(subject, out);
        match self.alias {
            Alias::No => out.extend_from_slice(path),
            Alias::Prefix(bytes) => out.extend_from_slice(path.get(bytes..).unwrap_or_default()),
            Alias::Whole if below_alias => out.extend_from_slice(path),
            Alias::Whole => {}
        }
    }

    /// Bytes at the start of a path that an alias stands for; 0 for a root.
    pub fn alias_bytes(&self) -> usize {
        match self.alias {
            Alias::Prefix(bytes) => bytes,
            Alias::No | Alias::Whole => 0,
        }
    }

    /// Whether it has no variables.
    pub fn is_constant(&self) -> bool {
        self.template.constant().is_some()
    }

    /// Whether it is an alias.
    pub fn is_alias(&self) -> bool {
        !matches!(self.alias, Alias::No)
    }
}

fn with_slash(prefix: &Path) -> Box<[u8]> {
    let mut bytes = prefix.as_os_str().as_bytes().to_vec();
    if !bytes.is_empty() && bytes.last() != Some(&b'/') {
        bytes.push(b'/');
    }
    bytes.into()
}

/// What the alias of a location stands for.
fn alias_kind(location: View<'_>) -> Alias {
    match location_words(location.arguments()) {
        Ok((kind, _)) if kind.is_apart_from_paths() => Alias::Whole,
        Ok((_, text)) => Alias::Prefix(turnpike_conf::bytes_of(text).len()),
        Err(_) => Alias::Prefix(0),
    }
}

/// The nearest level that has `root` or `alias`, with the directive: blocks inside a location with
/// an alias share it.
fn nearest_folder(view: View<'_>) -> Option<(View<'_>, &Entry)> {
    let mut level = view;
    loop {
        if let Some(entry) = level.own("alias").or_else(|| level.own("root")) {
            return Some((level, entry));
        }
        level = level.parent()?;
    }
}
