//! The directives of one block as a program.

use std::sync::{Arc, PoisonError, RwLock};

use turnpike_conf::{Complaint, ConfError, Context, Entry, View, Word, bytes_of};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::{Builder, LocationIndex, Pattern};
use turnpike_http::regex::Case;
use turnpike_http::variables::{Evaluate, Sources, Template, VariableId, VariableTable};
use turnpike_lane::log::Level;

use super::functions::{Function, Surroundings};
use super::upstream_lists::UpstreamLists;
use crate::common::files::Files;

/// What a server or location does while rewriting.
pub(super) struct Program {
    pub(super) steps: Box<[Step]>,
    /// `rewrite_log`.
    pub(super) log: bool,
    /// For `-f` and the like.
    pub(super) files: Files,
}

/// One directive.
pub(super) enum Step {
    Set(VariableId, Template),
    /// A function's value for these arguments.
    Compute(VariableId, Function, Vec<Template>),
    Return(Return),
    Rewrite(Box<Rule>),
    Break,
    /// Goes on in this named location, as the request is.
    Goto(String),
    If {
        condition: Condition,
        steps: Box<[Step]>,
        /// The block's own location; a server's `if` has none.
        location: Option<LocationIndex>,
    },
}

/// `return`.
pub(super) struct Return {
    pub(super) status: u16,
    pub(super) text: Option<Template>,
    /// The text where it is the same for every request, which may be kept compressed.
    pub(super) constant: Option<Arc<[u8]>>,
}

/// `rewrite`.
pub(super) struct Rule {
    pub(super) pattern: Pattern,
    pub(super) written: Written,
    pub(super) replacement: Replacement,
    /// Whether the request's query goes behind the new one.
    pub(super) keeps_query: bool,
    pub(super) after: After,
}

/// A pattern as written, for the log.
pub(super) struct Written(pub(super) Box<[u8]>);

/// What a matched path becomes.
pub(super) enum Replacement {
    /// A path, and a query if a question mark is in it.
    Path(Template, Option<Template>),
    /// A URL to redirect to; whether a question mark is in it.
    Redirect {
        status: u16,
        url: Template,
        has_query: bool,
    },
}

/// How a program goes on after a rewrite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    Next,
    Last,
    Break,
}

/// What an `if` asks.
pub(super) enum Condition {
    True(VariableId),
    Equal(VariableId, Template, bool),
    Match(VariableId, Pattern, Written, bool),
    File(FileTest, Template, bool),
}

/// What is asked of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileTest {
    Plain,
    Directory,
    Exists,
    Executable,
}

impl Program {
    /// Reads the directives of a block in the order they are written.
    pub(super) fn compile(view: View<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        let steps = steps(view, builder)?;
        let log = view.flag("rewrite_log");
        let files = Files::of(view, builder)?;
        Ok(Self { steps, log, files })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// Reads what stands at the http level: the variables of functions are defined there, and nothing
/// runs.
///
/// # Errors
/// What is wrong with the surroundings of the functions.
pub(super) fn define_only(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    let lists = builder.store::<UpstreamLists>().clone();
    let around = Surroundings::read(view, lists.clone())?;
    for entry in view.entries() {
        if entry.row.name == "upstream_list" {
            if let Err(message) = lists.define(entry) {
                builder.report(view.error(entry.span, message));
            }
            continue;
        }
        let Some(function) = Function::of(entry.row.name, &around) else {
            continue;
        };
        match compute(entry, function, builder) {
            Ok(_) => {
                let name = entry.row.name;
                let message =
                    format!("\"{name}\" has no effect here: it runs in servers and locations only");
                builder.warn(view, entry, message);
            }
            Err(message) => builder.report(view.error(entry.span, message)),
        }
    }
    Ok(())
}

/// `goto`. Whether the server has the location is found out by the request, as in Angie.
fn goto(entry: &Entry) -> Result<Step, Complaint> {
    let name = entry.argument(0);
    if name.len() < 2 || !name.starts_with('@') {
        return Err(format!("invalid named location \"{name}\"").into());
    }
    Ok(Step::Goto(name.to_owned()))
}

fn steps(view: View<'_>, builder: &mut Builder<'_>) -> Result<Box<[Step]>, ConfError> {
    let lists = builder.store::<UpstreamLists>().clone();
    let around = Surroundings::read(view, lists.clone())?;
    let mut steps = Vec::new();
    for entry in view.entries() {
        let step = match entry.row.name {
            "set" => set(entry, builder),
            "return" => answer(entry, builder),
            "rewrite" => rule(entry, &view.place(entry.span), builder),
            "break" => Ok(Step::Break),
            "goto" => goto(entry),
            "if" => {
                steps.extend(branch(view, entry, builder)?);
                continue;
            }
            "upstream_list" => match lists.define(entry) {
                Ok(()) => continue,
                Err(message) => Err(message),
            },
            name => match Function::of(name, &around) {
                Some(function) => compute(entry, function, builder),
                None => continue,
            },
        };
        match step {
            Ok(step) => steps.push(step),
            Err(message) => builder.report(view.error(entry.span, message)),
        }
    }
    Ok(steps.into())
}

fn branch(
    view: View<'_>,
    entry: &Entry,
    builder: &mut Builder<'_>,
) -> Result<Option<Step>, ConfError> {
    let place = view.place(entry.span);
    let condition = match condition(&entry.arguments, &place, &mut builder.variables) {
        Ok(condition) => condition,
        Err(message) => {
            builder.report(view.error(entry.span, message));
            return Ok(None);
        }
    };
    let Some(inside) = view.own_all("if").find(|own| std::ptr::eq(*own, entry)) else {
        return Ok(None);
    };
    let Some(inside) = view.child(inside) else {
        return Ok(None);
    };
    let location = match inside.context() {
        Context::IfInLocation => Some(builder.unnamed_location(inside)?),
        _ => None,
    };
    Ok(Some(Step::If {
        condition,
        steps: steps(inside, builder)?,
        location,
    }))
}

fn set(entry: &Entry, builder: &mut Builder<'_>) -> Result<Step, Complaint> {
    let variable = settable(entry, builder)?;
    let value = Template::compile(&bytes_of(entry.argument(1)), &mut builder.variables)?;
    builder.variables.stores(variable, Sources::of([&value]));
    Ok(Step::Set(variable, value))
}

fn compute(
    entry: &Entry,
    function: Function,
    builder: &mut Builder<'_>,
) -> Result<Step, Complaint> {
    let variable = settable(entry, builder)?;
    let given = entry.arguments.get(1..).unwrap_or_default();
    let own = entry.arguments.first();
    let own = own.filter(|_| function.takes_own_value(given.len()));
    let words = own.into_iter().chain(given);
    let templates = words.map(|word| Template::compile(&word.bytes(), &mut builder.variables));
    let templates: Vec<Template> = templates.collect::<Result<_, _>>()?;
    function.check(templates.first().and_then(Template::constant))?;
    builder.variables.stores(variable, Sources::of(&templates));
    Ok(Step::Compute(variable, function, templates))
}

/// The variable that a directive names, which it may set.
fn settable(entry: &Entry, builder: &mut Builder<'_>) -> Result<VariableId, Complaint> {
    let written = entry.argument(0);
    let Some(name) = written.strip_prefix('$') else {
        return Err(format!("invalid variable name \"{written}\"").into());
    };
    if name.is_empty() {
        return Err("invalid variable name \"$\"".into());
    }
    let unset = builder.store::<Unset>().value(name);
    Ok(builder.variables.define_settable(name, unset)?)
}

/// Whether a word without a status is a URL to redirect to.
fn is_url(text: &str) -> bool {
    ["http://", "https://", "$scheme"]
        .iter()
        .any(|start| text.starts_with(start))
}

fn answer(entry: &Entry, builder: &mut Builder<'_>) -> Result<Step, Complaint> {
    let code = entry.argument(0);
    let invalid = || format!("invalid return code \"{code}\"");
    let digits = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_digit());
    let (status, text) = match (digits, entry.arguments.get(1)) {
        (false, None) if is_url(code) => (302, Some(code)),
        (false, _) => return Err(invalid().into()),
        (true, text) => {
            let status: u16 = code.parse().map_err(|_| invalid())?;
            let text = text.map(|word| word.text.as_str());
            (status, text)
        }
    };
    if status > 999 {
        return Err(invalid().into());
    }
    let text = text
        .map(|text| Template::compile(&bytes_of(text), &mut builder.variables))
        .transpose()?;
    let constant = text.as_ref().and_then(Template::constant).map(Arc::from);
    Ok(Step::Return(Return {
        status,
        text,
        constant,
    }))
}

fn rule(entry: &Entry, place: &str, builder: &mut Builder<'_>) -> Result<Step, Complaint> {
    let written = entry.argument(0);
    let text = entry.argument(1);
    if text.is_empty() {
        return Err("empty replacement".into());
    }
    let pattern = Pattern::compile(written, Case::Sensitive, place, &mut builder.variables)?;
    let (text, keeps_query) = match text.strip_suffix('?') {
        Some(text) => (text, false),
        None => (text, true),
    };
    let mut status = is_url(text).then_some(302);
    let mut after = match status {
        Some(_) => After::Last,
        None => After::Next,
    };
    match entry.arguments.get(2).map(|word| word.text.as_str()) {
        None => {}
        Some("last") => after = After::Last,
        Some("break") => after = After::Break,
        Some("redirect") => status = Some(302),
        Some("permanent") => status = Some(301),
        Some(other) => return Err(format!("invalid parameter \"{other}\"").into()),
    }
    let mut compile = |text: &str| Template::compile(&bytes_of(text), &mut builder.variables);
    let replacement = match (status, text.split_once('?')) {
        (Some(status), query) => Replacement::Redirect {
            status,
            url: compile(text)?,
            has_query: query.is_some(),
        },
        (None, Some((path, query))) => Replacement::Path(compile(path)?, Some(compile(query)?)),
        (None, None) => Replacement::Path(compile(text)?, None),
    };
    Ok(Step::Rewrite(Box::new(Rule {
        pattern,
        written: Written(bytes_of(written).into()),
        replacement,
        keeps_query,
        after,
    })))
}

/// The words between the parentheses, which may stand alone or touch the words.
pub(super) fn condition_words(words: &[Word]) -> Result<Vec<&str>, Complaint> {
    let invalid = |word: &str| Err(format!("invalid condition \"{word}\"").into());
    let mut words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let Some(first) = words.first_mut() else {
        return invalid("");
    };
    match first.strip_prefix('(') {
        Some(rest) => *first = rest,
        None => return invalid(first),
    }
    if words[0].is_empty() {
        words.remove(0);
    }
    let Some(last) = words.last_mut() else {
        return invalid("");
    };
    match last.strip_suffix(')') {
        Some(rest) => *last = rest,
        None => return invalid(last),
    }
    if words.last().is_some_and(|last| last.is_empty()) {
        words.pop();
    }
    if words.is_empty() {
        invalid("")
    } else {
        Ok(words)
    }
}

fn condition(
    words: &[Word],
    place: &str,
    variables: &mut VariableTable,
) -> Result<Condition, Complaint> {
    let words = condition_words(words)?;
    let first = words[0];
    let invalid = || Err(format!("invalid condition \"{first}\"").into());
    if let Some(name) = first.strip_prefix('$').filter(|name| !name.is_empty()) {
        let variable = variables.reference(name);
        return match words.as_slice() {
            [_] => Ok(Condition::True(variable)),
            [_, operator, value] => comparison(variable, operator, value, place, variables),
            _ => invalid(),
        };
    }
    let [_, path] = words.as_slice() else {
        return invalid();
    };
    let (negated, test) = match first.strip_prefix('!') {
        Some(test) => (true, test),
        None => (false, first),
    };
    let test = match test {
        "-f" => FileTest::Plain,
        "-d" => FileTest::Directory,
        "-e" => FileTest::Exists,
        "-x" => FileTest::Executable,
        _ => return invalid(),
    };
    let path = Template::compile(&bytes_of(path), variables)?;
    Ok(Condition::File(test, path, negated))
}

fn comparison(
    variable: VariableId,
    operator: &str,
    value: &str,
    place: &str,
    variables: &mut VariableTable,
) -> Result<Condition, Complaint> {
    let (negated, kind) = match operator.strip_prefix('!') {
        Some(kind) => (true, kind),
        None => (false, operator),
    };
    match kind {
        "=" => {
            let value = Template::compile(&bytes_of(value), variables)?;
            Ok(Condition::Equal(variable, value, negated))
        }
        "~" | "~*" => {
            let case = match kind {
                "~*" => Case::Ignored,
                _ => Case::Sensitive,
            };
            let pattern = Pattern::compile(value, case, place, variables)?;
            let written = Written(bytes_of(value).into());
            Ok(Condition::Match(variable, pattern, written, negated))
        }
        _ => Err(format!("unexpected \"{operator}\" in condition").into()),
    }
}

/// Values of variables that `set` names and nothing was stored in.
#[derive(Default)]
pub(super) struct Unset {
    /// Locations with `uninitialized_variable_warn off`, in ascending order.
    quiet: Arc<RwLock<Vec<u32>>>,
}

struct UnsetValue {
    name: Box<str>,
    quiet: Arc<RwLock<Vec<u32>>>,
}

impl Unset {
    /// No warnings from this location.
    pub(super) fn add_quiet(&mut self, location: LocationIndex) {
        let mut quiet = self.quiet.write().unwrap_or_else(PoisonError::into_inner);
        if let Err(at) = quiet.binary_search(&location.0) {
            quiet.insert(at, location.0);
        }
    }

    fn value(&mut self, name: &str) -> Arc<dyn Evaluate<Exchange>> {
        Arc::new(UnsetValue {
            name: name.to_ascii_lowercase().into(),
            quiet: Arc::clone(&self.quiet),
        })
    }
}

impl Evaluate<Exchange> for UnsetValue {
    fn evaluate(&self, exchange: &Exchange, _: &mut Vec<u8>) -> bool {
        let quiet = self.quiet.read().unwrap_or_else(PoisonError::into_inner);
        if quiet.binary_search(&exchange.walk.location().0).is_err() {
            exchange.log(
                Level::Warn,
                format_args!("using uninitialized \"{}\" variable", self.name),
            );
        }
        true
    }

    fn sources(&self) -> Sources {
        Sources::Named(Vec::new())
    }
}
