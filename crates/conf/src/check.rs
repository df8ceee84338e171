//! The check of a tree against the rows: names, contexts, blocks, counts, repetition and values.
//!
//! The checks are in nginx's order, so that the first error of a directive is the one that nginx
//! reports. All directives are checked, so that one run shows all errors. A value is checked only
//! by its type.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Collector, ConfError, Errors};
use crate::mistakes::Mistakes;
use crate::parse::parse_all;
use crate::registry::{Context, Index, NameMap, Registry, Repeat, Row, Value};
use crate::source::Loader;
use crate::suggest;
use crate::tree::{Directive, FileId, Span, Tree, Word};

/// A checked configuration; [`crate::View`] reads it.
#[derive(Clone, Debug)]
pub struct Scope {
    pub(crate) blocks: Vec<Block>,
    /// Whether any block has a directive of that name, by the name's number.
    pub(crate) written: Vec<bool>,
    pub(crate) files: Vec<String>,
    pub(crate) index: Arc<Index>,
}

/// One checked block; the first of a [`Scope`] is the main context.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) context: Context,
    pub(crate) parent: Option<usize>,
    pub(crate) span: Span,
    pub(crate) end: Span,
    pub(crate) arguments: Arc<[Word]>,
    pub(crate) entries: Vec<Entry>,
    /// The entries of each name: a block may have thousands, and every inner block searches them.
    pub(crate) by_name: NameMap<Vec<usize>>,
    pub(crate) data: Vec<Directive>,
}

/// One checked directive.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The row of the directive.
    pub row: &'static Row,
    /// The name as written.
    pub name: Word,
    pub arguments: Arc<[Word]>,
    /// The line that nginx reports for it: that of its `;` or `{`.
    pub span: Span,
    /// The end of its block; equal to `span` without a block.
    pub end: Span,
    /// The position in reading order over all files.
    pub sequence: u32,
    pub(crate) block: Option<usize>,
}

impl Entry {
    /// The text of an argument; "" if there are fewer.
    pub fn argument(&self, index: usize) -> &str {
        self.arguments
            .get(index)
            .map_or("", |word| word.text.as_str())
    }
}

impl Registry {
    /// Checks a tree against the rows.
    ///
    /// # Errors
    /// All errors, in reading order.
    pub fn check(&self, tree: &Tree) -> Result<Scope, Errors> {
        let (scope, errors) = self.check_all(tree);
        errors.finish().map(|()| scope)
    }

    /// Parses and checks at once, so that errors of both kinds are shown together.
    ///
    /// # Errors
    /// All errors, in reading order; the first is the one that nginx would report.
    pub fn load(
        &self,
        loader: &dyn Loader,
        main: &Path,
        globals: Option<&str>,
    ) -> Result<(Tree, Scope), Errors> {
        let (tree, scope, mistakes) = self.examine(loader, main, globals);
        mistakes.finish().map(|()| (tree, scope))
    }

    /// As [`Registry::load`], for a caller that continues after errors to find more of them: wrong
    /// directives are not in the scope.
    pub fn examine(
        &self,
        loader: &dyn Loader,
        main: &Path,
        globals: Option<&str>,
    ) -> (Tree, Scope, Mistakes) {
        let (tree, mut errors) = parse_all(loader, main, globals);
        let is_partial = !errors.is_empty();
        let (scope, found) = self.check_all(&tree);
        errors.append(found);
        let mistakes = Mistakes::new(&tree, &self.index, errors, is_partial);
        (tree, scope, mistakes)
    }

    fn check_all(&self, tree: &Tree) -> (Scope, Collector) {
        let files = tree.sources.iter().enumerate();
        let names = files.map(|(id, _)| tree.sources.name(FileId(id as u32)).unwrap_or(""));
        let top = Span {
            file: FileId(0),
            line: 1,
        };
        let root = Block::new(Context::Main, None, top, top);
        let mut checker = Checker {
            tree,
            errors: Collector::default(),
            scope: Scope {
                blocks: vec![root],
                written: vec![false; self.index.names.len()],
                files: names.map(str::to_owned).collect(),
                index: Arc::clone(&self.index),
            },
        };
        checker.block(0, &tree.directives);
        (checker.scope, checker.errors)
    }
}

impl Block {
    fn new(context: Context, parent: Option<usize>, span: Span, end: Span) -> Block {
        Block {
            context,
            parent,
            span,
            end,
            arguments: Arc::default(),
            entries: Vec::new(),
            by_name: NameMap::default(),
            data: Vec::new(),
        }
    }

    fn push(&mut self, entry: Entry) {
        self.by_name
            .entry(entry.row.name)
            .or_default()
            .push(self.entries.len());
        self.entries.push(entry);
    }
}

struct Checker<'a> {
    tree: &'a Tree,
    errors: Collector,
    scope: Scope,
}

impl Checker<'_> {
    /// Checks the directives of a block that is already in the scope.
    fn block(&mut self, id: usize, directives: &[Directive]) {
        let block = &mut self.scope.blocks[id];
        let context = block.context;
        block.entries.reserve_exact(directives.len());
        for directive in directives {
            let Some(row) = self.row(directive, context) else {
                continue;
            };
            let first = !self.scope.blocks[id].by_name.contains_key(row.name);
            let complaint = complaint(row, directive, first);
            let is_right = complaint.is_none();
            if let Some(complaint) = complaint {
                self.error(directive, complaint);
            }
            let block = self.inner(row.value, id, directive);
            if !is_right {
                continue;
            }
            if let Some(named) = self.scope.index.names.get(row.name) {
                self.scope.written[named.number] = true;
            }
            self.scope.blocks[id].push(Entry {
                row,
                name: directive.name.clone(),
                arguments: Arc::clone(&directive.arguments),
                span: directive.span,
                end: directive.end,
                sequence: directive.sequence,
                block,
            });
        }
    }

    /// The row of a directive here, or an error.
    fn row(&mut self, directive: &Directive, context: Context) -> Option<&'static Row> {
        let index = Arc::clone(&self.scope.index);
        let name = directive.name.text.as_str();
        if let Some(row) = index.row(name, context) {
            return Some(row);
        }
        let rows = index.rows(name);
        if !rows.is_empty() {
            self.error(
                directive,
                format!("\"{name}\" directive is not allowed here"),
            );
            self.misplaced(rows, directive);
        } else if index.not_yet.contains(&name) {
            self.error(
                directive,
                format!("\"{name}\" directive is not supported yet"),
            );
        } else {
            let meant = suggestion(&index, name, context);
            let hint = meant.map(|meant| format!(", did you mean \"{meant}\"?"));
            let message = format!("unknown directive \"{name}\"");
            self.error_with_hint(directive, message, hint.unwrap_or_default());
        }
        None
    }

    /// Checks the inside of a block in a wrong context too, if its kind is clear.
    fn misplaced(&mut self, rows: &[&'static Row], directive: &Directive) {
        if let [row] = rows {
            self.inner(row.value, 0, directive);
        }
    }

    /// Checks the inside of a directive's block and adds it to the scope.
    fn inner(&mut self, value: Value, parent: usize, directive: &Directive) -> Option<usize> {
        let directives = directive.block.as_ref()?;
        let context = match value {
            Value::Block(context) => context,
            Value::Entries => Context::Entries,
            _ => return None,
        };
        let mut block = Block::new(context, Some(parent), directive.span, directive.end);
        block.arguments = Arc::clone(&directive.arguments);
        let id = self.scope.blocks.len();
        if context == Context::Entries {
            for entry in directives.iter().filter(|entry| entry.block.is_some()) {
                self.error(entry, "unexpected \"{\"");
            }
            block.data = directives.clone();
            self.scope.blocks.push(block);
        } else {
            self.scope.blocks.push(block);
            self.block(id, directives);
        }
        Some(id)
    }

    fn error(&mut self, directive: &Directive, message: impl Into<String>) {
        self.error_with_hint(directive, message.into(), String::new());
    }

    fn error_with_hint(&mut self, directive: &Directive, message: String, hint: String) {
        let mut error = ConfError::at(&self.tree.sources, directive.span, message);
        error.hint = hint;
        self.errors.push(directive.sequence, error);
    }
}

/// The error of a directive on its own; `first` shows whether it is the first of its name in its
/// block.
fn complaint(row: &Row, directive: &Directive, first: bool) -> Option<String> {
    let name = row.name;
    if !row.value.is_block() && directive.block.is_some() {
        return Some(format!("directive \"{name}\" is not terminated by \";\""));
    }
    if row.value.is_block() && directive.block.is_none() {
        return Some(format!("directive \"{name}\" has no opening \"{{\""));
    }
    if !row.arguments.allows(directive.arguments.len()) {
        return Some(format!(
            "invalid number of arguments in \"{name}\" directive"
        ));
    }
    if row.repeat == Repeat::Once && !first {
        return Some(format!("\"{name}\" directive is duplicate"));
    }
    let words = directive.arguments.iter();
    let texts: Vec<&str> = words.map(|word| word.text.as_str()).collect();
    row.value.complaint(name, &texts)
}

/// The most similar name: one that is allowed in this context is preferred.
fn suggestion<'a>(index: &'a Index, name: &str, context: Context) -> Option<&'a str> {
    let rows = || index.families.iter().flat_map(|(_, rows)| rows.iter());
    let here = rows()
        .filter(|row| row.contexts.contains(&context))
        .map(|row| row.name);
    let included = std::iter::once("include");
    let anywhere = rows()
        .map(|row| row.name)
        .chain(index.not_yet.iter().copied());
    suggest::nearest(name, here.chain(included)).or_else(|| suggest::nearest(name, anywhere))
}
