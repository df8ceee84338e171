//! Variables: the names that a configuration may use, and their values in a request.
//!
//! A name is turned into an index when the configuration is read, so that a request looks nothing
//! up by name. A value is appended to a buffer that the caller owns; only values that are stored
//! (`set`, named groups) or asked to be computed once (`map`) are kept with the request.

mod builtin;
mod proxy;
mod socket;
mod template;
mod time;
mod upstream;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

pub use builtin::{BUILTIN, append_number};
pub use socket::SOCKET;
pub use template::Template;
pub use time::{DATES, prepare as prepare_time};

use turnpike_lane::log::Level;

use crate::exchange::Exchange;

/// Appends a variable's value to a buffer; `false` when the request has none.
pub type Getter = fn(&Exchange, &mut Vec<u8>) -> bool;

/// Changes what a variable stands for (`set $args ...`).
pub type Setter = fn(&mut Exchange, &[u8]);

/// A variable that a directive family offers.
#[derive(Clone, Copy)]
pub struct VariableRow {
    /// The name without its dollar sign.
    pub name: &'static str,
    /// How its value is found.
    pub get: Getter,
    /// How it is changed, for those that `set` may change.
    pub set: Option<Setter>,
    /// What it says, in one sentence, for the reference.
    pub summary: &'static str,
}

/// A value that depends on more than a function can see, such as a `map`.
pub trait Evaluate: Send + Sync {
    /// Appends the value to `out`; `false` when there is none.
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool;
}

/// Index of a variable in the plan's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableId(u32);

/// Where a variable's value comes from.
#[derive(Clone)]
enum Source {
    /// Named by a template, defined nowhere yet: an error if it stays so.
    Undefined,
    Builtin(VariableRow),
    /// `$http_NAME`: a request header field, underscores for hyphens.
    RequestField(Box<[u8]>),
    /// `$sent_http_NAME`.
    ResponseField(Box<[u8]>),
    /// `$sent_trailer_NAME`.
    ResponseTrailer(Box<[u8]>),
    /// `$arg_NAME`.
    Argument(Box<[u8]>),
    /// `$cookie_NAME`.
    Cookie(Box<[u8]>),
    /// `$proxy_protocol_tlv_NAME`.
    ProxyAddition(Box<[u8]>),
    /// `$upstream_http_NAME`.
    UpstreamField(Box<[u8]>),
    /// `$upstream_trailer_NAME`.
    UpstreamTrailer(Box<[u8]>),
    /// `$upstream_cookie_NAME`.
    UpstreamCookie(Box<[u8]>),
    /// Only what was stored by `set` or by a named group.
    Stored,
    /// Computed, then kept with the request.
    Computed(Arc<dyn Evaluate>),
    /// Computed each time.
    Volatile(Arc<dyn Evaluate>),
}

struct Variable {
    name: String,
    source: Source,
}

/// The variables of a plan.
#[derive(Default)]
pub struct VariableTable {
    variables: Vec<Variable>,
    by_name: HashMap<String, VariableId>,
    rows: HashMap<&'static str, VariableRow>,
}

/// How deep evaluations may ask for one another; nginx's number. More is a cycle in the
/// configuration.
const EVALUATIONS_MAX: u8 = 100;

/// Values kept with a request, by index.
#[derive(Clone, Default)]
pub struct Values {
    slots: Vec<Slot>,
    used: bool,
    /// Variables that are being evaluated, each for the one before it.
    depth: u8,
}

#[derive(Clone, Default)]
enum Slot {
    #[default]
    Unknown,
    Missing,
    Known(Vec<u8>),
}

impl VariableTable {
    /// A table that knows the built-in variables and those of the families.
    pub fn new(rows: impl IntoIterator<Item = VariableRow>) -> Self {
        let rows = BUILTIN
            .iter()
            .chain(socket::SOCKET)
            .chain(time::DATES)
            .copied()
            .chain(rows)
            .map(|row| (row.name, row))
            .collect();
        Self {
            rows,
            ..Self::default()
        }
    }

    /// The index of a name that a template uses; it may be defined later.
    pub fn reference(&mut self, name: &str) -> VariableId {
        let lower = name.to_ascii_lowercase();
        if let Some(&id) = self.by_name.get(&lower) {
            return id;
        }
        let source = match self.rows.get(lower.as_str()) {
            Some(row) => Source::Builtin(*row),
            None => prefixed(&lower).unwrap_or(Source::Undefined),
        };
        self.insert(lower, source)
    }

    /// Defines a variable that is stored by `set` or a named group. A built-in one that can be
    /// changed stays what it is; another is refused with nginx's words.
    pub fn define_stored(&mut self, name: &str) -> Result<VariableId, String> {
        let id = self.reference(name);
        let variable = &mut self.variables[id.0 as usize];
        match &variable.source {
            Source::Undefined => variable.source = Source::Stored,
            Source::Builtin(row) if row.set.is_none() => {
                return Err(format!("the duplicate \"{name}\" variable"));
            }
            _ => {}
        }
        Ok(id)
    }

    /// Defines a variable that `set` changes. One that is nothing else yet gets the value of
    /// `unset` where nothing was stored; any other stays what it is.
    ///
    /// # Errors
    /// nginx's words for a built-in variable that cannot be changed.
    pub fn define_settable(
        &mut self,
        name: &str,
        unset: Arc<dyn Evaluate>,
    ) -> Result<VariableId, String> {
        let id = self.reference(name);
        let variable = &mut self.variables[id.0 as usize];
        match &variable.source {
            Source::Undefined => variable.source = Source::Computed(unset),
            Source::Builtin(row) if row.set.is_none() => {
                return Err(format!("the duplicate \"{name}\" variable"));
            }
            _ => {}
        }
        Ok(id)
    }

    /// Defines a variable that is computed, once a request or (volatile) at each use.
    pub fn define_computed(
        &mut self,
        name: &str,
        evaluate: Arc<dyn Evaluate>,
        volatile: bool,
    ) -> Result<VariableId, String> {
        let id = self.reference(name);
        let variable = &mut self.variables[id.0 as usize];
        if let Source::Builtin(_) = variable.source {
            return Err(format!("the duplicate \"{name}\" variable"));
        }
        variable.source = if volatile {
            Source::Volatile(evaluate)
        } else {
            Source::Computed(evaluate)
        };
        Ok(id)
    }

    /// Names that are used and defined nowhere.
    pub fn undefined(&self) -> impl Iterator<Item = &str> {
        self.variables
            .iter()
            .filter(|variable| matches!(variable.source, Source::Undefined))
            .map(|variable| variable.name.as_str())
    }

    fn insert(&mut self, name: String, source: Source) -> VariableId {
        let id = VariableId(self.variables.len() as u32);
        self.by_name.insert(name.clone(), id);
        self.variables.push(Variable { name, source });
        id
    }
}

impl Exchange {
    /// Appends a variable's value to `out`; `false` when the request has none.
    pub fn variable(&self, id: VariableId, out: &mut Vec<u8>) -> bool {
        match self.values.borrow().slot(id) {
            Slot::Known(value) => {
                out.extend_from_slice(value);
                return true;
            }
            Slot::Missing => return false,
            Slot::Unknown => {}
        }
        let Some(variable) = self.plan.variables.variables.get(id.0 as usize) else {
            return false;
        };
        match &variable.source {
            Source::Undefined | Source::Stored => false,
            Source::Builtin(row) => (row.get)(self, out),
            Source::RequestField(name) => builtin::request_field(self, name, out),
            Source::ResponseField(name) => builtin::values(&self.response.fields, name, out),
            Source::ResponseTrailer(name) => builtin::values(&self.response.trailers, name, out),
            Source::Argument(name) => builtin::argument(self, name, out),
            Source::Cookie(name) => builtin::cookie(self, name, out),
            Source::Volatile(evaluate) => self.compute(variable, &**evaluate, out),
            Source::ProxyAddition(name) => proxy::addition(self, name, out),
            Source::UpstreamField(name) => upstream::field(self, name, out),
            Source::UpstreamTrailer(name) => builtin::values(&self.upstream.trailers, name, out),
            Source::UpstreamCookie(name) => upstream::cookie(self, name, out),
            Source::Computed(evaluate) => {
                let mut value = Vec::new();
                let found = self.compute(variable, &**evaluate, &mut value);
                if self.is_undecided() {
                    return false;
                }
                out.extend_from_slice(&value);
                let slot = if found {
                    Slot::Known(value)
                } else {
                    Slot::Missing
                };
                self.values.borrow_mut().put(id, slot);
                found
            }
        }
    }

    /// Evaluates a variable, unless that would never end.
    fn compute(&self, variable: &Variable, evaluate: &dyn Evaluate, out: &mut Vec<u8>) -> bool {
        let depth = self.values.borrow().depth;
        if depth == EVALUATIONS_MAX {
            let name = &variable.name;
            self.log(
                Level::Error,
                format_args!("cycle while evaluating variable \"{name}\""),
            );
            return false;
        }
        self.values.borrow_mut().depth = depth + 1;
        let (start, failures) = (out.len(), self.match_failures());
        let found = evaluate.evaluate(self, out);
        self.values.borrow_mut().depth = depth;
        if self.match_failures() != failures {
            out.truncate(start);
            return false;
        }
        found
    }

    /// Stores a value, as `set` does: through the setter of a variable that has one.
    pub fn set_variable(&mut self, id: VariableId, value: &[u8]) {
        let setter = match self.plan.variables.variables.get(id.0 as usize) {
            Some(Variable {
                source: Source::Builtin(row),
                ..
            }) => row.set,
            _ => None,
        };
        match setter {
            Some(set) => set(self, value),
            None => self.values.get_mut().put(id, Slot::Known(value.to_vec())),
        }
    }

    /// Stores a value while the exchange is only borrowed: for groups named in a pattern that was
    /// matched during an evaluation.
    pub fn store_variable(&self, id: VariableId, value: Option<&[u8]>) {
        let slot = value.map_or(Slot::Missing, |value| Slot::Known(value.to_vec()));
        self.values.borrow_mut().put(id, slot);
    }
}

impl Values {
    /// Forgets every value; the room for slots is kept.
    pub fn clear(&mut self) {
        if self.used {
            self.slots.clear();
            self.used = false;
        }
    }

    fn slot(&self, id: VariableId) -> &Slot {
        self.slots.get(id.0 as usize).unwrap_or(&Slot::Unknown)
    }

    fn put(&mut self, id: VariableId, slot: Slot) {
        let index = id.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        self.slots[index] = slot;
        self.used = true;
    }
}

impl fmt::Debug for VariableTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_list()
            .entries(self.variables.iter().map(|one| &one.name))
            .finish()
    }
}

/// The families of names that stand for any field, argument or cookie.
fn prefixed(name: &str) -> Option<Source> {
    let boxed = |rest: &str| rest.as_bytes().to_vec().into_boxed_slice();
    if let Some(rest) = name.strip_prefix("http_") {
        return Some(Source::RequestField(boxed(rest)));
    }
    if let Some(rest) = name.strip_prefix("sent_http_") {
        return Some(Source::ResponseField(boxed(rest)));
    }
    if let Some(rest) = name.strip_prefix("sent_trailer_") {
        return Some(Source::ResponseTrailer(boxed(rest)));
    }
    if let Some(rest) = name.strip_prefix("arg_") {
        return Some(Source::Argument(boxed(rest)));
    }
    if let Some(rest) = name.strip_prefix("upstream_http_") {
        return Some(Source::UpstreamField(boxed(rest)));
    }
    if let Some(rest) = name.strip_prefix("upstream_trailer_") {
        return Some(Source::UpstreamTrailer(boxed(rest)));
    }
    if let Some(rest) = name.strip_prefix("upstream_cookie_") {
        return Some(Source::UpstreamCookie(boxed(rest)));
    }
    if let Some(rest) = name.strip_prefix("proxy_protocol_tlv_") {
        return Some(Source::ProxyAddition(boxed(rest)));
    }
    name.strip_prefix("cookie_")
        .map(|rest| Source::Cookie(boxed(rest)))
}
