//! Look-ups in a checked configuration, by nginx's inheritance.
//!
//! A view is a block with its ancestors. Typed look-ups cannot fail on user input, since the
//! checker has accepted it; a name without a row is an error of the caller, which debug builds
//! assert.

use crate::check::{Block, Entry, Scope};
use crate::error::{Complaint, ConfError};
use crate::registry::{Context, Merge, Named, Row, Value};
use crate::tree::{Directive, Span, Word};
use crate::value;

/// A block of a [`Scope`].
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    scope: &'a Scope,
    id: usize,
}

impl<'a> View<'a> {
    /// The main context.
    pub fn root(scope: &'a Scope) -> View<'a> {
        View { scope, id: 0 }
    }

    /// The kind of block.
    pub fn context(&self) -> Context {
        self.block().context
    }

    /// The arguments of the directive that opened the block.
    pub fn arguments(&self) -> &'a [Word] {
        &self.block().arguments
    }

    /// The text of one of these arguments; "" if there are fewer.
    pub fn argument(&self, index: usize) -> &'a str {
        self.arguments()
            .get(index)
            .map_or("", |word| word.text.as_str())
    }

    /// The place of its `{`.
    pub fn span(&self) -> Span {
        self.block().span
    }

    /// The place of its `}`: nginx reports this line for an error of a whole block.
    pub fn end(&self) -> Span {
        self.block().end
    }

    /// The enclosing block.
    pub fn parent(&self) -> Option<View<'a>> {
        self.block().parent.map(|id| View {
            scope: self.scope,
            id,
        })
    }

    /// The nearest block of a kind: this one or an ancestor.
    pub fn enclosing(&self, context: Context) -> Option<View<'a>> {
        self.levels().find(|view| view.context() == context)
    }

    /// The directives of this block in their order.
    pub fn entries(&self) -> &'a [Entry] {
        &self.block().entries
    }

    /// The content of a free-form block (`types`, `map` ...): one directive per line, whose name is
    /// the first word. Empty for other blocks.
    pub fn data(&self) -> &'a [Directive] {
        &self.block().data
    }

    /// The first directive with this name in this block itself.
    pub fn own(&self, name: &str) -> Option<&'a Entry> {
        self.own_all(name).next()
    }

    /// The first directive with this name in this block itself or, where this is a block of one of
    /// these contexts without it, in the block around it; and the block that has it.
    pub fn own_through(&self, name: &str, contexts: &[Context]) -> Option<(View<'a>, &'a Entry)> {
        let mut level = *self;
        loop {
            if let Some(entry) = level.own(name) {
                return Some((level, entry));
            }
            if !contexts.contains(&level.context()) {
                return None;
            }
            level = level.parent()?;
        }
    }

    /// The directives with this name in this block itself.
    pub fn own_all(&self, name: &str) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let block = self.block();
        let indexes = block.by_name.get(name).map_or(&[][..], Vec::as_slice);
        indexes.iter().map(|index| &block.entries[*index])
    }

    /// The directives with any of these names in this block itself, in their order.
    pub fn own_of(&self, names: &[&str]) -> Vec<&'a Entry> {
        let mut entries: Vec<&Entry> = names.iter().flat_map(|name| self.own_all(name)).collect();
        entries.sort_by_key(|entry| entry.sequence);
        entries
    }

    /// The first directive with this name that applies here: from this block or the nearest
    /// ancestor that has it. For a row that is not inherited, the search ends in every block in
    /// which it could have been written.
    pub fn nearest(&self, name: &str) -> Option<&'a Entry> {
        self.nearest_level(name)?.own(name)
    }

    /// All directives with this name at the nearest level that has any, as with [`View::nearest`].
    pub fn nearest_all(&self, name: &str) -> Vec<&'a Entry> {
        self.nearest_level(name)
            .map_or(Vec::new(), |view| view.own_all(name).collect())
    }

    /// The nearest level with a directive of any of these names: this block or an ancestor; the
    /// main context if there is none. What such directives say is inherited from it unchanged.
    pub fn level_of_any(&self, names: &[&str]) -> View<'a> {
        let has_any = |level: &View<'_>| names.iter().any(|name| level.own(name).is_some());
        self.levels()
            .find(has_any)
            .unwrap_or(View::root(self.scope))
    }

    /// The number of the block in its configuration.
    pub fn block_number(&self) -> usize {
        self.id
    }

    /// The blocks of this name in this block.
    pub fn children(&self, name: &str) -> impl Iterator<Item = View<'a>> + use<'a> {
        let view = *self;
        self.own_all(name)
            .filter_map(move |entry| view.child(entry))
    }

    /// The block of a directive of this scope.
    pub fn child(&self, entry: &'a Entry) -> Option<View<'a>> {
        entry.block.map(|id| View {
            scope: self.scope,
            id,
        })
    }

    /// An error at a place of this configuration.
    pub fn error(&self, span: Span, message: impl Into<Complaint>) -> ConfError {
        let file = self.scope.files.get(span.file.0 as usize);
        ConfError::named(file.map(String::as_str), span, message.into().into())
    }

    /// The place in the format of messages: ` in FILE:LINE`.
    pub fn place(&self, span: Span) -> String {
        self.error(span, "").to_string()
    }

    /// Whether a directive with this name is anywhere in the configuration.
    pub fn is_written(&self, name: &str) -> bool {
        self.named(name).is_some_and(|named| self.is_used(named))
    }

    fn block(&self) -> &'a Block {
        &self.scope.blocks[self.id]
    }

    /// This block and its ancestors.
    fn levels(&self) -> impl Iterator<Item = View<'a>> + use<'a> {
        std::iter::successors(Some(*self), View::parent)
    }

    /// What is known of a name. Every block asks for some hundred names, so this is the one place
    /// where a name that is written nowhere is hashed.
    fn named(&self, name: &str) -> Option<&'a Named> {
        self.scope.index.names.get(name)
    }

    fn is_used(&self, named: &Named) -> bool {
        self.scope.written[named.number]
    }

    fn nearest_level(&self, name: &str) -> Option<View<'a>> {
        self.level_of(name, self.named(name)?)
    }

    /// As [`View::nearest_level`], of a name that was found.
    fn level_of(&self, name: &str, named: &Named) -> Option<View<'a>> {
        if !self.is_used(named) {
            return None;
        }
        for view in self.levels() {
            if view.block().by_name.contains_key(name) {
                return Some(view);
            }
            let context = view.context();
            let rows = named.rows.iter();
            let mut rows = rows.filter(|row| row.contexts.contains(&context));
            if rows.next().is_some_and(|row| row.merge == Merge::Own) {
                return None;
            }
        }
        None
    }

    /// Whether any directive has this name.
    pub fn has_row(&self, name: &str) -> bool {
        self.named(name).is_some()
    }

    /// The row of a name here: of this context, or of the nearest ancestor's, or else the first
    /// one.
    fn row_of(&self, named: &Named) -> Option<&'static Row> {
        let rows = named.rows.as_slice();
        if let [row] = rows {
            return Some(row);
        }
        let near = self.levels().find_map(|view| {
            let context = view.context();
            rows.iter().find(|row| row.contexts.contains(&context))
        });
        near.or(rows.first()).copied()
    }
}

/// Typed look-ups: the value that applies here, or the row's default. Those named `try_` return
/// `None` for a missing default; the others return 0, `false` or "".
impl<'a> View<'a> {
    /// A flag.
    pub fn flag(&self, name: &str) -> bool {
        self.try_flag(name).unwrap_or_default()
    }

    /// A flag, if it is written or has a default.
    pub fn try_flag(&self, name: &str) -> Option<bool> {
        value::flag(self.try_text(name)?)
    }

    /// A size in bytes.
    pub fn size(&self, name: &str) -> u64 {
        self.try_size(name).unwrap_or_default()
    }

    /// A size in bytes, if it is written or has a default.
    pub fn try_size(&self, name: &str) -> Option<u64> {
        value::size(self.try_text(name)?)
    }

    /// An offset in bytes.
    pub fn offset(&self, name: &str) -> u64 {
        self.try_offset(name).unwrap_or_default()
    }

    /// An offset in bytes, if it is written or has a default.
    pub fn try_offset(&self, name: &str) -> Option<u64> {
        value::offset(self.try_text(name)?)
    }

    /// A time in milliseconds.
    pub fn milliseconds(&self, name: &str) -> u64 {
        self.try_milliseconds(name).unwrap_or_default()
    }

    /// A time in milliseconds, if it is written or has a default.
    pub fn try_milliseconds(&self, name: &str) -> Option<u64> {
        value::milliseconds(self.try_text(name)?)
    }

    /// A time in seconds.
    pub fn seconds(&self, name: &str) -> u64 {
        self.try_seconds(name).unwrap_or_default()
    }

    /// A time in seconds, if it is written or has a default.
    pub fn try_seconds(&self, name: &str) -> Option<u64> {
        value::seconds(self.try_text(name)?)
    }

    /// A number.
    pub fn number(&self, name: &str) -> i64 {
        self.try_number(name).unwrap_or_default()
    }

    /// A number, if it is written or has a default.
    pub fn try_number(&self, name: &str) -> Option<i64> {
        value::number(self.try_text(name)?)
    }

    /// A count and a size of buffers.
    pub fn buffers(&self, name: &str) -> (u64, u64) {
        self.try_buffers(name).unwrap_or_default()
    }

    /// A count and a size of buffers, if they are written or have a default.
    pub fn try_buffers(&self, name: &str) -> Option<(u64, u64)> {
        match self.in_force(name)? {
            InForce::Written(entry) => value::buffers(entry.argument(0), entry.argument(1)),
            InForce::Default(row) => {
                let (count, size) = row.default.split_once(' ')?;
                value::buffers(count, size.trim_start())
            }
        }
    }

    /// The first argument of a row of [`Value::OneOf`], spelt as in the row.
    pub fn choice(&self, name: &str) -> &'a str {
        self.try_choice(name).unwrap_or_default()
    }

    /// As [`View::choice`], if it is written or has a default.
    pub fn try_choice(&self, name: &str) -> Option<&'a str> {
        let in_force = self.in_force(name)?;
        let text = in_force.text();
        let Value::OneOf(words) = in_force.row().value else {
            return Some(text);
        };
        let spelt = words.iter().find(|word| word.eq_ignore_ascii_case(text));
        Some(spelt.copied().unwrap_or(text))
    }

    /// The first argument; of a default that has several words, all of them.
    pub fn text(&self, name: &str) -> &'a str {
        self.try_text(name).unwrap_or_default()
    }

    /// As [`View::text`], if it is written or has a default.
    pub fn try_text(&self, name: &str) -> Option<&'a str> {
        self.in_force(name).map(InForce::text)
    }

    /// What applies here: what is written, or the row's default.
    fn in_force(&self, name: &str) -> Option<InForce<'a>> {
        let named = self.named(name);
        debug_assert!(named.is_some(), "no row has the name {name}");
        let named = named?;
        let level = self.level_of(name, named);
        match level.and_then(|view| view.own(name)) {
            Some(entry) => Some(InForce::Written(entry)),
            None => {
                let row = self.row_of(named).filter(|row| !row.default.is_empty());
                row.map(InForce::Default)
            }
        }
    }
}

/// What applies to a block.
#[derive(Clone, Copy)]
enum InForce<'a> {
    Written(&'a Entry),
    /// The row has a default.
    Default(&'static Row),
}

impl<'a> InForce<'a> {
    fn row(self) -> &'static Row {
        match self {
            InForce::Written(entry) => entry.row,
            InForce::Default(row) => row,
        }
    }

    fn text(self) -> &'a str {
        match self {
            InForce::Written(entry) => entry.argument(0),
            InForce::Default(row) => row.default,
        }
    }
}
