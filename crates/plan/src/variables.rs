//! Variables: the names in a configuration, and their values for one subject: a request, or a
//! session of another protocol.
//!
//! A name becomes an index when the configuration is read, so that a subject needs no look-up by
//! name. A value is appended to the caller's buffer; only stored values (`set`, named groups) and
//! values that are computed once (`map`) are kept with the subject.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use turnpike_conf::Complaint;
use turnpike_lane::log::Level;

use crate::regex::{Allowance, Programs, Regex, Undecided};
use crate::template::Template;

/// An object with values of variables.
pub trait Subject: Sized + 'static {
    /// The variables of its plan.
    fn variables(&self) -> &VariableTable<Self>;

    /// The stored values.
    fn values(&self) -> &RefCell<Values>;

    /// Passes the text of a group of the last match to `take`, if there is one; 0 is the whole
    /// match.
    fn group(&self, number: usize, take: &mut dyn FnMut(&[u8]));

    /// Matches a pattern. A match stores its groups in the subject.
    ///
    /// # Errors
    /// The match had no result; the subject records that.
    fn capture(&self, regex: &Regex, text: &[u8]) -> Result<bool, Undecided>;

    /// Calls with the remaining allowance of the subject's matches. A subject without a record has
    /// the allowance of a request each time.
    fn with_allowance<T>(&self, call: impl FnOnce(&mut Allowance) -> T) -> T {
        call(&mut Allowance::LANE.clone())
    }

    /// The number of matches without a result so far: if it changes during an evaluation, there is
    /// no value.
    fn match_failures(&self) -> u32;

    /// Whether a match of the current step had no result: then no value may be kept.
    fn is_undecided(&self) -> bool;

    /// The number of uses so far of values that are not settled yet, such as the content of a
    /// request, which is read when a handler asks for it: a value made from one is not kept.
    fn unsettled_uses(&self) -> u32 {
        0
    }

    /// Writes a line to the subject's error log.
    fn log(&self, level: Level, message: fmt::Arguments<'_>);
}

/// Appends a variable's value to a buffer; `false` if the subject has none.
pub type Getter<S> = fn(&S, &mut Vec<u8>) -> bool;

/// As [`Getter`], for a variable whose name ends in the user's text.
pub type PrefixGetter<S> = fn(&S, &[u8], &mut Vec<u8>) -> bool;

/// Changes the value of a variable (`set $args ...`).
pub type Setter<S> = fn(&mut S, &[u8]);

/// A variable of a directive family.
pub struct VariableRow<S> {
    /// The name without its dollar sign.
    pub name: &'static str,
    /// The getter of its value.
    pub get: Getter<S>,
    /// The setter, if `set` may change it.
    pub set: Option<Setter<S>>,
    /// The meaning, in one sentence, for the reference.
    pub summary: &'static str,
}

impl<S> Clone for VariableRow<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for VariableRow<S> {}

/// Variables whose names have a prefix, such as `$http_NAME`.
pub struct PrefixRow<S: 'static> {
    /// The prefix of the names.
    pub prefix: &'static str,
    /// The getter of the value; it gets the rest of the name in lower case.
    pub get: PrefixGetter<S>,
}

/// A value that needs more data than a function has, such as a `map`.
pub trait Evaluate<S>: Send + Sync {
    /// Appends the value to `out`; `false` if there is none.
    fn evaluate(&self, subject: &S, out: &mut Vec<u8>) -> bool;

    /// The variables that the value may be made from.
    fn sources(&self) -> Sources {
        Sources::Unknown
    }
}

/// A variable whose value a family keeps in its own way, and that `set` changes.
pub trait Assign<S>: Evaluate<S> {
    /// Takes the value that `set` gives it.
    fn assign(&self, subject: &mut S, value: &[u8]);
}

/// The change of a variable whose value is not among those of the subject.
pub enum Assignment<S> {
    /// By the row of the variable.
    Row(Setter<S>),
    /// By what a family defined.
    Own(Arc<dyn Assign<S>>),
}

impl<S> Assignment<S> {
    /// Changes the value.
    pub fn make(self, subject: &mut S, value: &[u8]) {
        match self {
            Self::Row(set) => set(subject, value),
            Self::Own(variable) => variable.assign(subject, value),
        }
    }
}

/// The variables that a value may be made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// These only.
    Named(Vec<VariableId>),
    /// Any that the configuration names.
    Unknown,
}

impl Sources {
    /// The variables in these texts. Nobody knows what a group of the last match was matched in.
    pub fn of<'a>(templates: impl IntoIterator<Item = &'a Template>) -> Self {
        let mut ids = Vec::new();
        for template in templates {
            if template.has_groups() {
                return Self::Unknown;
            }
            ids.extend(template.variables());
        }
        Self::Named(ids)
    }
}

/// Index of a variable in the plan's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableId(u32);

/// The name of a variable that cannot be defined, since a built-in one has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateVariable(pub String);

impl fmt::Display for DuplicateVariable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the duplicate \"{}\" variable", self.0)
    }
}

impl std::error::Error for DuplicateVariable {}

impl From<DuplicateVariable> for Complaint {
    fn from(error: DuplicateVariable) -> Complaint {
        error.to_string().into()
    }
}

/// When a variable is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Computed {
    /// Once per subject, which keeps the value.
    #[default]
    Once,
    /// Each time it is used: `volatile`.
    AtEachUse,
}

/// The source of a variable's value.
enum Source<S> {
    /// Used by a template but not defined yet: an error if it stays so.
    Undefined,
    Builtin(VariableRow<S>),
    /// A variable with a prefix, and the rest of its name.
    Prefixed(PrefixGetter<S>, Box<[u8]>),
    /// Only values stored by `set` or by a named group.
    Stored,
    /// Computed, then kept with the subject.
    Computed(Arc<dyn Evaluate<S>>),
    /// Computed each time.
    Volatile(Arc<dyn Evaluate<S>>),
    /// Computed each time, and changed by who computes it.
    Assigned(Arc<dyn Assign<S>>),
}

struct Variable<S> {
    name: String,
    source: Source<S>,
    /// What directives such as `set` store in it is made from these.
    stored: Sources,
}

/// The variables of a plan.
pub struct VariableTable<S: 'static> {
    variables: Vec<Variable<S>>,
    by_name: HashMap<String, VariableId>,
    rows: HashMap<&'static str, VariableRow<S>>,
    prefixes: &'static [PrefixRow<S>],
    /// See [`VariableTable::names_come_later`].
    names_come_later: bool,
    /// See [`VariableTable::add_unsettled`].
    unsettled: Vec<&'static str>,
    /// The programs of the patterns whose groups may be variables, while the plan is built.
    pub programs: Programs,
}

/// The deepest nesting of evaluations; nginx's number. More means a cycle in the configuration.
const EVALUATIONS_MAX: u8 = 100;

/// The most bytes that the values of a request may leave as room for those of the next one: far
/// more than usual ones have.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// The most buffers that are kept for texts on the way: one for each nesting of evaluations that
/// usual configurations have.
const KEPT_TEXTS_MAX: usize = 4;

/// The values kept with a subject, by index.
#[derive(Default)]
pub struct Values {
    slots: Vec<Slot>,
    /// The bytes of all values, one after another.
    bytes: Vec<u8>,
    used: bool,
    /// The current nesting of evaluations.
    depth: u8,
    /// Whether an evaluation was given up since a variable depends on itself.
    has_cycle: bool,
    /// Empty buffers; see [`with_text`].
    texts: Vec<Vec<u8>>,
}

#[derive(Clone, Default)]
enum Slot {
    #[default]
    Unknown,
    Missing,
    /// These of the bytes.
    Known(Range<usize>),
}

impl<S> VariableTable<S> {
    /// A table with these variables. If two prefixes match a name, the first one counts.
    pub fn new(
        rows: impl IntoIterator<Item = VariableRow<S>>,
        prefixes: &'static [PrefixRow<S>],
    ) -> Self {
        Self {
            variables: Vec::new(),
            by_name: HashMap::new(),
            rows: rows.into_iter().map(|row| (row.name, row)).collect(),
            prefixes,
            names_come_later: false,
            unsettled: Vec::new(),
            programs: Programs::default(),
        }
    }

    /// Names built-in variables whose values are settled late; see [`Subject::unsettled_uses`].
    pub fn add_unsettled(&mut self, names: &[&'static str]) {
        self.unsettled.extend_from_slice(names);
    }

    /// Whether a value made from `sources` may be made, whichever way, from one of the variables of
    /// [`VariableTable::add_unsettled`].
    pub fn may_be_unsettled(&self, sources: &Sources) -> bool {
        let mut seen = vec![false; self.variables.len()];
        let mut left = vec![sources.clone()];
        while let Some(sources) = left.pop() {
            let Sources::Named(ids) = sources else {
                if self
                    .unsettled
                    .iter()
                    .any(|name| self.by_name.contains_key(*name))
                {
                    return true;
                }
                continue;
            };
            for id in ids {
                let index = id.0 as usize;
                let Some(variable) = self.variables.get(index) else {
                    continue;
                };
                if std::mem::replace(&mut seen[index], true) {
                    continue;
                }
                left.push(variable.stored.clone());
                match &variable.source {
                    Source::Builtin(row) if self.unsettled.contains(&row.name) => return true,
                    Source::Computed(value) | Source::Volatile(value) => left.push(value.sources()),
                    Source::Assigned(value) => left.push(value.sources()),
                    _ => {}
                }
            }
        }
        false
    }

    /// Notes that a directive stores a text made from `sources` in a variable.
    pub fn stores(&mut self, id: VariableId, sources: Sources) {
        if let Some(variable) = self.variables.get_mut(id.0 as usize) {
            variable.stored = match (
                std::mem::replace(&mut variable.stored, Sources::Unknown),
                sources,
            ) {
                (Sources::Named(mut ids), Sources::Named(more)) => {
                    ids.extend(more);
                    Sources::Named(ids)
                }
                _ => Sources::Unknown,
            };
        }
    }

    /// The index of a name in a template; it may be defined later.
    pub fn reference(&mut self, name: &str) -> VariableId {
        let lower = name.to_ascii_lowercase();
        if let Some(&id) = self.by_name.get(&lower) {
            return id;
        }
        let source = match self.rows.get(lower.as_str()) {
            Some(row) => Source::Builtin(*row),
            None => match self.prefixed(&lower) {
                Some((get, rest)) => Source::Prefixed(get, rest.into()),
                None => Source::Undefined,
            },
        };
        self.insert(lower, source)
    }

    /// Defines a variable that `set` or a named group stores. A built-in one that can be changed
    /// stays unchanged.
    ///
    /// # Errors
    /// A built-in variable with this name cannot be changed.
    pub fn define_stored(&mut self, name: &str) -> Result<VariableId, DuplicateVariable> {
        let id = self.define_or_keep(name, Source::Stored)?;
        self.stores(id, Sources::Unknown);
        Ok(id)
    }

    /// Defines a variable that `set` changes; [`VariableTable::stores`] says to what. A new one
    /// gets the value of `unset` until a value is stored; an existing one stays unchanged.
    ///
    /// # Errors
    /// As for [`VariableTable::define_stored`].
    pub fn define_settable(
        &mut self,
        name: &str,
        unset: Arc<dyn Evaluate<S>>,
    ) -> Result<VariableId, DuplicateVariable> {
        self.define_or_keep(name, Source::Computed(unset))
    }

    fn define_or_keep(
        &mut self,
        name: &str,
        source: Source<S>,
    ) -> Result<VariableId, DuplicateVariable> {
        let id = self.reference(name);
        let variable = &mut self.variables[id.0 as usize];
        match &variable.source {
            Source::Undefined => variable.source = source,
            Source::Builtin(row) if row.set.is_none() => {
                return Err(DuplicateVariable(name.to_owned()));
            }
            _ => {}
        }
        Ok(id)
    }

    /// Defines a variable that is computed once per subject.
    ///
    /// # Errors
    /// There is a built-in variable with this name.
    pub fn define_computed(
        &mut self,
        name: &str,
        evaluate: Arc<dyn Evaluate<S>>,
    ) -> Result<VariableId, DuplicateVariable> {
        self.define(name, Computed::Once, evaluate)
    }

    /// Defines a variable that is computed at each use.
    ///
    /// # Errors
    /// As for [`VariableTable::define_computed`].
    pub fn define_volatile(
        &mut self,
        name: &str,
        evaluate: Arc<dyn Evaluate<S>>,
    ) -> Result<VariableId, DuplicateVariable> {
        self.define(name, Computed::AtEachUse, evaluate)
    }

    /// Defines a variable that is computed at each use, and takes itself what `set` gives it.
    ///
    /// # Errors
    /// As for [`VariableTable::define_computed`].
    pub fn define_assigned(
        &mut self,
        name: &str,
        variable: Arc<dyn Assign<S>>,
    ) -> Result<VariableId, DuplicateVariable> {
        self.define_as(name, Source::Assigned(variable))
    }

    /// Defines a variable for which the configuration says when it is computed.
    ///
    /// # Errors
    /// As for [`VariableTable::define_computed`].
    pub fn define(
        &mut self,
        name: &str,
        computed: Computed,
        evaluate: Arc<dyn Evaluate<S>>,
    ) -> Result<VariableId, DuplicateVariable> {
        let source = match computed {
            Computed::Once => Source::Computed(evaluate),
            Computed::AtEachUse => Source::Volatile(evaluate),
        };
        self.define_as(name, source)
    }

    fn define_as(
        &mut self,
        name: &str,
        source: Source<S>,
    ) -> Result<VariableId, DuplicateVariable> {
        let id = self.reference(name);
        let variable = &mut self.variables[id.0 as usize];
        if let Source::Builtin(_) = variable.source {
            return Err(DuplicateVariable(name.to_owned()));
        }
        variable.source = source;
        Ok(id)
    }

    /// Texts that are read while serving, such as pages of SSI, may name any variable.
    pub fn names_come_later(&mut self) {
        self.names_come_later = true;
    }

    /// Whether the variable with this name, in lower case, may be evaluated: the configuration
    /// names it, or names come later.
    pub fn may_need(&self, name: &str) -> bool {
        self.names_come_later || self.by_name.contains_key(name)
    }

    /// Whether the variable with this name, in lower case, has the value that its prefix says: a
    /// `map` may have the name of another.
    pub fn is_prefixed(&self, name: &str) -> bool {
        let id = self.by_name.get(name);
        let variable = id.and_then(|id| self.variables.get(id.0 as usize));
        variable.is_some_and(|variable| matches!(variable.source, Source::Prefixed(..)))
    }

    /// The names that are used but not defined.
    pub fn undefined(&self) -> impl Iterator<Item = &str> {
        self.variables
            .iter()
            .filter(|variable| matches!(variable.source, Source::Undefined))
            .map(|variable| variable.name.as_str())
    }

    /// What changes a variable; `None` if its value is kept with the subject.
    pub fn assignment(&self, id: VariableId) -> Option<Assignment<S>> {
        match &self.variables.get(id.0 as usize)?.source {
            Source::Builtin(row) => row.set.map(Assignment::Row),
            Source::Assigned(variable) => Some(Assignment::Own(Arc::clone(variable))),
            _ => None,
        }
    }

    fn insert(&mut self, name: String, source: Source<S>) -> VariableId {
        let id = VariableId(self.variables.len() as u32);
        self.by_name.insert(name.clone(), id);
        self.variables.push(Variable {
            name,
            source,
            stored: Sources::Named(Vec::new()),
        });
        id
    }

    fn prefixed<'a>(&self, name: &'a str) -> Option<(PrefixGetter<S>, &'a [u8])> {
        let mut rows = self.prefixes.iter();
        rows.find_map(|row| {
            let rest = name.strip_prefix(row.prefix)?;
            Some((row.get, rest.as_bytes()))
        })
    }
}

/// Appends a variable's value for `subject` to `out`; `false` if it has none.
pub fn append<S: Subject>(subject: &S, id: VariableId, out: &mut Vec<u8>) -> bool {
    if let Some(is_known) = subject.values().borrow().append(id, out) {
        return is_known;
    }
    let Some(variable) = subject.variables().variables.get(id.0 as usize) else {
        return false;
    };
    match &variable.source {
        Source::Undefined | Source::Stored => false,
        Source::Builtin(row) => (row.get)(subject, out),
        Source::Prefixed(get, name) => get(subject, name, out),
        Source::Volatile(evaluate) => compute(subject, variable, &**evaluate, out),
        Source::Assigned(evaluate) => compute(subject, variable, &**evaluate, out),
        Source::Computed(evaluate) => {
            let (start, uses) = (out.len(), subject.unsettled_uses());
            let found = compute(subject, variable, &**evaluate, out);
            if subject.is_undecided() {
                out.truncate(start);
                return false;
            }
            if subject.unsettled_uses() != uses {
                return found;
            }
            let value = out.get(start..).filter(|_| found);
            subject.values().borrow_mut().store(id, value);
            found
        }
    }
}

/// Whether a variable's value is neither empty nor "0", as conditions take it.
///
/// # Errors
/// A match has no result, or the variable depends on itself: there is no value.
pub fn holds<S: Subject>(subject: &S, id: VariableId) -> Result<bool, Undecided> {
    subject.values().borrow_mut().has_cycle = false;
    let write = |text: &mut Vec<u8>| {
        append(subject, id, text);
    };
    let holds = with_text(subject, write, |text| !matches!(&text[..], b"" | b"0"));
    if subject.is_undecided() || subject.values().borrow().has_cycle {
        Err(Undecided)
    } else {
        Ok(holds)
    }
}

/// Calls with a text that `write` makes, in a buffer that is used again.
pub fn with_text<S: Subject, T>(
    subject: &S,
    write: impl FnOnce(&mut Vec<u8>),
    call: impl FnOnce(&mut Vec<u8>) -> T,
) -> T {
    let mut text = subject.values().borrow_mut().take_text();
    write(&mut text);
    let result = call(&mut text);
    subject.values().borrow_mut().keep_text(text);
    result
}

/// Appends the value of the variable with this name, which need not be in any template; `false` if
/// there is none.
pub fn append_named<S: Subject>(subject: &S, name: &str, out: &mut Vec<u8>) -> bool {
    let table = subject.variables();
    let lower = if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    };
    if let Some(id) = table.by_name.get(&*lower) {
        return append(subject, *id, out);
    }
    if let Some(row) = table.rows.get(&*lower) {
        return (row.get)(subject, out);
    }
    match table.prefixed(&lower) {
        Some((get, rest)) => get(subject, rest, out),
        None => false,
    }
}

/// Evaluates a variable, unless it depends on itself.
fn compute<S: Subject>(
    subject: &S,
    variable: &Variable<S>,
    evaluate: &dyn Evaluate<S>,
    out: &mut Vec<u8>,
) -> bool {
    let depth = subject.values().borrow().depth;
    if depth == EVALUATIONS_MAX {
        let name = &variable.name;
        subject.log(
            Level::Error,
            format_args!("cycle while evaluating variable \"{name}\""),
        );
        subject.values().borrow_mut().has_cycle = true;
        return false;
    }
    subject.values().borrow_mut().depth = depth + 1;
    let (start, failures) = (out.len(), subject.match_failures());
    let found = evaluate.evaluate(subject, out);
    subject.values().borrow_mut().depth = depth;
    if subject.match_failures() != failures {
        out.truncate(start);
        return false;
    }
    found
}

impl Values {
    /// Makes these the values that `other` has, in the memory that is there.
    pub fn copy(&mut self, other: &Self) {
        self.slots.clone_from(&other.slots);
        self.bytes.clone_from(&other.bytes);
        self.used = other.used;
        self.depth = other.depth;
    }

    /// Removes all values; keeps the memory.
    pub fn clear(&mut self) {
        if self.used {
            self.slots.clear();
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES_MAX);
            self.used = false;
        }
    }

    /// An empty buffer, to be given back by [`Values::keep_text`].
    pub fn take_text(&mut self) -> Vec<u8> {
        self.texts.pop().unwrap_or_default()
    }

    /// Takes a buffer back, to be used again.
    pub fn keep_text(&mut self, mut text: Vec<u8>) {
        if self.texts.len() < KEPT_TEXTS_MAX && text.capacity() <= KEPT_BYTES_MAX {
            text.clear();
            self.texts.push(text);
        }
    }

    /// Stores a value, or that there is none.
    pub fn store(&mut self, id: VariableId, value: Option<&[u8]>) {
        let slot = match value {
            None => Slot::Missing,
            Some(value) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(value);
                Slot::Known(start..self.bytes.len())
            }
        };
        let index = id.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        self.slots[index] = slot;
        self.used = true;
    }

    /// Appends a value that is known; `None`: nothing is known of it.
    fn append(&self, id: VariableId, out: &mut Vec<u8>) -> Option<bool> {
        match self.slots.get(id.0 as usize) {
            None | Some(Slot::Unknown) => None,
            Some(Slot::Missing) => Some(false),
            Some(Slot::Known(range)) => {
                out.extend_from_slice(self.bytes.get(range.clone()).unwrap_or_default());
                Some(true)
            }
        }
    }
}

impl<S> fmt::Debug for VariableTable<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_list()
            .entries(self.variables.iter().map(|variable| &variable.name))
            .finish()
    }
}

#[cfg(test)]
mod tests;
