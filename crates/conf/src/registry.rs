//! Directive rows and their table.
//!
//! A row is the only definition of a directive's name, contexts, arguments, type, default and
//! documentation; the checker, the views and the reference use it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::error::Complaint;
use crate::value;

/// The kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// Outside of any block.
    Main,
    /// `events { }`
    Events,
    /// `http { }`
    Http,
    /// `server { }` in `http`.
    Server,
    /// `location { }`
    Location,
    /// `if { }` in a server.
    IfInServer,
    /// `if { }` in a location.
    IfInLocation,
    /// `limit_except { }`
    LimitExcept,
    /// `upstream { }` in `http`.
    Upstream,
    /// `stream { }`
    Stream,
    /// `server { }` in `stream`.
    StreamServer,
    /// `upstream { }` in `stream`.
    StreamUpstream,
    /// `mail { }`
    Mail,
    /// `server { }` in `mail`.
    MailServer,
    /// Inside a block of free-form data (`types`, `map`, `geo` ...); no row is allowed here.
    Entries,
}

impl Context {
    /// The context's name in the reference.
    pub const fn text(self) -> &'static str {
        match self {
            Context::Main => "main",
            Context::Events => "events",
            Context::Http => "http",
            Context::Server => "server",
            Context::Location => "location",
            Context::IfInServer => "if in server",
            Context::IfInLocation => "if in location",
            Context::LimitExcept => "limit_except",
            Context::Upstream => "upstream",
            Context::Stream => "stream",
            Context::StreamServer => "server in stream",
            Context::StreamUpstream => "upstream in stream",
            Context::Mail => "mail",
            Context::MailServer => "server in mail",
            Context::Entries => "data",
        }
    }
}

/// The number of arguments of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arguments {
    count_min: u16,
    count_max: u16,
}

impl Arguments {
    /// No arguments.
    pub const fn none() -> Arguments {
        Arguments::exactly(0)
    }

    /// Exactly `count`.
    pub const fn exactly(count: u16) -> Arguments {
        Arguments {
            count_min: count,
            count_max: count,
        }
    }

    /// From `count_min` to `count_max`, both included.
    pub const fn between(count_min: u16, count_max: u16) -> Arguments {
        Arguments {
            count_min,
            count_max,
        }
    }

    /// `count` or more.
    pub const fn at_least(count: u16) -> Arguments {
        Arguments {
            count_min: count,
            count_max: u16::MAX,
        }
    }

    /// Whether a count is allowed.
    pub const fn allows(self, count: usize) -> bool {
        let open = self.count_max == u16::MAX;
        count >= self.count_min as usize && (open || count <= self.count_max as usize)
    }

    /// The minimum.
    pub const fn min(self) -> usize {
        self.count_min as usize
    }

    /// The maximum; `None` without a limit.
    pub const fn max(self) -> Option<usize> {
        match self.count_max {
            u16::MAX => None,
            count => Some(count as usize),
        }
    }
}

/// A check of a directive's arguments by the row's owner; the error is the message.
pub type Check = fn(&str, &[&str]) -> Result<(), Complaint>;

/// The type of the arguments. Typed values check the first argument, except `OneOf` and `Buffers`.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// `on` or `off`.
    Flag,
    /// Bytes of memory, see [`value::size`].
    Size,
    /// Bytes of files, see [`value::offset`].
    Offset,
    /// A time, see [`value::milliseconds`].
    Milliseconds,
    /// A time, see [`value::seconds`].
    Seconds,
    /// A number from 0.
    Number,
    /// A number in this range, both ends included.
    Between(i64, i64),
    /// A number with this minimum.
    AtLeast(i64),
    /// Each argument is one of these words, in any case.
    OneOf(&'static [&'static str]),
    /// A count and a size of buffers, see [`value::buffers`].
    Buffers,
    /// Any text.
    Text,
    /// Text that this function of the owner accepts.
    Checked(Check),
    /// A value that the owner checks when it applies the directive.
    Custom,
    /// A block, in which the rows of this context are allowed.
    Block(Context),
    /// A block of free-form data, see [`crate::View::data`].
    Entries,
}

impl Value {
    /// Whether a `{` must follow.
    pub const fn is_block(self) -> bool {
        matches!(self, Value::Block(_) | Value::Entries)
    }

    /// nginx's message about arguments of this type; `None` if they are valid. `name` is the
    /// directive's; the count was checked before.
    pub(crate) fn complaint(self, name: &str, arguments: &[&str]) -> Option<String> {
        let first = arguments.first().copied().unwrap_or("");
        let invalid = || format!("\"{name}\" directive invalid value");
        match self {
            Value::Flag => value::flag(first).is_none().then(|| {
                format!(
                    "invalid value \"{first}\" in \"{name}\" directive, \
                     it must be \"on\" or \"off\""
                )
            }),
            Value::Size => value::size(first).is_none().then(invalid),
            Value::Offset => value::offset(first).is_none().then(invalid),
            Value::Milliseconds => value::milliseconds(first).is_none().then(invalid),
            Value::Seconds => value::seconds(first).is_none().then(invalid),
            Value::Number => bounded(name, first, |_| None),
            Value::Between(least, most) => bounded(name, first, |number| {
                (!(least..=most).contains(&number))
                    .then(|| format!("value must be between {least} and {most}"))
            }),
            Value::AtLeast(least) => bounded(name, first, |number| {
                (number < least).then(|| format!("value must be equal to or greater than {least}"))
            }),
            Value::Checked(check) => check(name, arguments).err().map(String::from),
            Value::Buffers => {
                let second = arguments.get(1).copied().unwrap_or("");
                value::buffers(first, second).is_none().then(invalid)
            }
            Value::OneOf(words) => {
                let known = |text: &str| words.iter().any(|word| word.eq_ignore_ascii_case(text));
                let unknown = arguments.iter().find(|text| !known(text));
                unknown.map(|text| format!("invalid value \"{text}\""))
            }
            Value::Text | Value::Custom | Value::Block(_) | Value::Entries => None,
        }
    }
}

/// The error of a number; `complaint` checks one that could be parsed.
fn bounded(name: &str, text: &str, complaint: impl Fn(i64) -> Option<String>) -> Option<String> {
    match value::number(text) {
        None => Some(format!("\"{name}\" directive invalid number")),
        Some(number) => complaint(number),
    }
}

/// Whether a directive may be written twice in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// A second one is refused: `"NAME" directive is duplicate`.
    Once,
    /// Any number.
    Many,
}

/// The value in a block without the directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// That of the nearest enclosing block with the directive.
    Nearest,
    /// None: a directive applies only to its own block.
    Own,
}

/// One directive, in the contexts in which it has one meaning.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name; rows are found by name and context.
    pub name: &'static str,
    /// The contexts in which it is allowed.
    pub contexts: &'static [Context],
    /// The number of arguments.
    pub arguments: Arguments,
    /// The type of the arguments.
    pub value: Value,
    /// Whether it may be repeated in one block.
    pub repeat: Repeat,
    /// The inheritance.
    pub merge: Merge,
    /// The first argument in which a dollar sign begins a variable's name; `None` if there is none.
    pub variables: Option<usize>,
    /// The arguments in the reference: `on | off`; without a block's braces.
    pub syntax: &'static str,
    /// The default arguments; "" for none.
    pub default: &'static str,
    /// The effect, in one or two sentences.
    pub summary: &'static str,
}

impl Row {
    /// The defaults of a row: one argument, allowed once at any level of http, and inherited from
    /// the nearest block.
    pub const PLAIN: Row = Row {
        name: "",
        contexts: &[Context::Http, Context::Server, Context::Location],
        arguments: Arguments::exactly(1),
        value: Value::Custom,
        repeat: Repeat::Once,
        merge: Merge::Nearest,
        variables: None,
        syntax: "",
        default: "",
        summary: "",
    };
}

/// All rows, by family, and the known names that are not supported yet.
#[derive(Clone, Debug)]
pub struct Registry {
    pub(crate) index: Arc<Index>,
}

/// A map by names of rows. They are ours, so that the hash needs no secret, and a fast one halves
/// the time in which a large configuration is read.
pub(crate) type NameMap<T> = HashMap<&'static str, T, FixedState>;

/// The rows of a name.
#[derive(Debug)]
pub(crate) struct Named {
    /// The place of the name among all names.
    pub(crate) number: usize,
    pub(crate) rows: Vec<&'static Row>,
}

/// The rows by name.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) families: Vec<(&'static str, &'static [Row])>,
    pub(crate) names: NameMap<Named>,
    pub(crate) not_yet: &'static [&'static str],
}

impl Index {
    /// All rows of a name.
    pub(crate) fn rows(&self, name: &str) -> &[&'static Row] {
        self.names.get(name).map_or(&[], |named| &named.rows)
    }

    /// Whether a name is one of nginx's or ours, in any context.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        name == "include" || !self.rows(name).is_empty() || self.not_yet.contains(&name)
    }

    /// The row of a name in a context.
    pub(crate) fn row(&self, name: &str, context: Context) -> Option<&'static Row> {
        self.rows(name)
            .iter()
            .copied()
            .find(|row| row.contexts.contains(&context))
    }
}

impl Registry {
    /// A registry of families of rows.
    pub fn new(
        families: &[(&'static str, &'static [Row])],
        not_yet: &'static [&'static str],
    ) -> Registry {
        let mut names: NameMap<Named> = NameMap::default();
        for row in families.iter().flat_map(|(_, rows)| rows.iter()) {
            let number = names.len();
            let rows = Vec::new();
            let named = names.entry(row.name).or_insert(Named { number, rows });
            named.rows.push(row);
        }
        Registry {
            index: Arc::new(Index {
                families: families.to_vec(),
                names,
                not_yet,
            }),
        }
    }

    /// Every row with its family, in the given order.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, &'static Row)> {
        let families = self.index.families.iter();
        families.flat_map(|(family, rows)| rows.iter().map(move |row| (*family, row)))
    }

    /// The row of a name in a context.
    pub fn row(&self, name: &str, context: Context) -> Option<&'static Row> {
        self.index.row(name, context)
    }

    /// The errors in the table itself, for a test; empty if there are none.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut places = HashSet::new();
        for (family, row) in self.rows() {
            let mut note = |what: String| problems.push(format!("{family}: {}: {what}", row.name));
            for context in row.contexts {
                if !places.insert((row.name, *context)) {
                    note(format!("has two rows in context {}", context.text()));
                }
            }
            if self.index.not_yet.contains(&row.name) {
                note("has a row, but is listed as not supported yet".to_owned());
            }
            row_problems(row, &mut note);
        }
        problems
    }
}

/// The errors of a row on its own.
fn row_problems(row: &Row, note: &mut dyn FnMut(String)) {
    if row.contexts.is_empty() || row.contexts.contains(&Context::Entries) {
        note("has no context in which it could be written".to_owned());
    }
    if row.summary.trim().is_empty() || !row.summary.ends_with('.') {
        note("has no summary that ends with a full stop".to_owned());
    }
    if row.syntax.trim().is_empty() && row.arguments != Arguments::none() {
        note("takes arguments, but has no syntax".to_owned());
    }
    if row.value.is_block() && row.syntax.contains('{') {
        note("shows braces, which a block has anyway".to_owned());
    }
    let needs = match row.value {
        Value::Buffers => 2,
        Value::Text | Value::Checked(_) | Value::Custom | Value::Block(_) | Value::Entries => 0,
        _ => 1,
    };
    if row.arguments.min() < needs {
        note(format!(
            "needs {needs} arguments for its type, but may be written with fewer"
        ));
    }
    if row.default.is_empty() {
        return;
    }
    let words: Vec<&str> = row.default.split_ascii_whitespace().collect();
    if let Some(complaint) = row.value.complaint(row.name, &words) {
        note(format!("its default does not parse: {complaint}"));
    }
    if row.value.is_block() {
        note("is a block, which has no default".to_owned());
    }
}
