//! What a message about a mistake goes on with: what was meant, or what to write instead.
//!
//! nginx's sentence comes first, word for word. A hint is found by that sentence and by the
//! directive that it is about, so that no family has to know that there are hints; what a directive
//! takes is read from the syntax in its row. A message that has a hint already keeps it.

mod braces;
mod files;
mod foreign;
mod places;
mod refused;
mod syntax;
mod upstreams;
mod values;
mod warnings;
mod words;

use turnpike_conf::{ConfError, Context, Directive, Errors, FileId, Registry, Row, Value};

use crate::configuration::Configuration;
use crate::families;

pub(crate) use warnings::{of_files, of_letters};

/// A message with what it is about.
struct Mistake<'a> {
    message: &'a str,
    /// The directives of the message's place, outer ones first.
    directives: Vec<Found<'a>>,
    configuration: &'a Configuration,
    registry: &'a Registry,
}

/// A directive with the blocks around it.
#[derive(Clone)]
struct Found<'a> {
    directive: &'a Directive,
    context: Context,
    /// The names of the blocks around it, outermost first.
    around: Vec<&'a str>,
}

/// The rules, in the order in which they are asked.
const RULES: &[fn(&Mistake<'_>) -> Option<String>] = &[
    refused::hint,
    braces::hint,
    places::hint,
    upstreams::hint,
    values::hint,
    files::hint,
    words::hint,
];

/// Adds hints to errors.
pub(crate) fn add(mut errors: Errors, configuration: &Configuration) -> Errors {
    let registry = families::registry();
    for error in &mut errors.0 {
        if !error.hint.is_empty() {
            continue;
        }
        let mistake = Mistake {
            message: &error.message,
            directives: at_place(error, configuration, &registry),
            configuration,
            registry: &registry,
        };
        error.hint = RULES
            .iter()
            .find_map(|rule| rule(&mistake))
            .unwrap_or_default();
    }
    if let Some(first) = errors.0.first_mut()
        && let Some(hint) = foreign::hint(configuration)
    {
        first.hint = hint;
    }
    braces::drop_consequences(&mut errors);
    errors
}

impl<'a> Mistake<'a> {
    /// The first quoted text of the message.
    fn quoted(&self) -> Option<&'a str> {
        self.message.split('"').nth(1)
    }

    /// The directive of the message's place that has this text as a whole argument, or the first.
    fn with_argument(&self, text: &str) -> Option<&Found<'a>> {
        let has = |found: &&Found<'_>| {
            let mut words = found.directive.arguments.iter();
            words.any(|word| word.text == text)
        };
        self.directives.iter().rfind(has)
    }

    /// The directive of the message's place that has this name.
    fn named(&self, name: &str) -> Option<&Found<'a>> {
        let mut directives = self.directives.iter();
        directives.rfind(|found| found.directive.name.text == name)
    }
}

impl<'a> Found<'a> {
    fn name(&self) -> &'a str {
        &self.directive.name.text
    }

    fn argument(&self, index: usize) -> &'a str {
        let word = self.directive.arguments.get(index);
        word.map_or("", |word| word.text.as_str())
    }

    fn row(&self, registry: &Registry) -> Option<&'static Row> {
        registry.row(self.name(), self.context)
    }

    fn is_in_stream(&self) -> bool {
        self.around.first() == Some(&"stream")
    }
}

/// The directives that an error's place is in.
fn at_place<'a>(
    error: &ConfError,
    configuration: &'a Configuration,
    registry: &Registry,
) -> Vec<Found<'a>> {
    let Some((name, line)) = &error.place else {
        return Vec::new();
    };
    let sources = &configuration.tree.sources;
    let mut found = all(configuration, registry);
    found.retain(|found| {
        let directive = found.directive;
        let is_file = |file: FileId| sources.name(file) == Some(name.as_str());
        let is_within = (directive.name.span.line..=directive.span.line).contains(line);
        let is_end = directive.end.line == *line && is_file(directive.end.file);
        is_file(directive.span.file) && is_within || is_end
    });
    found
}

/// Every directive of a configuration, in reading order.
fn all<'a>(configuration: &'a Configuration, registry: &Registry) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    let directives = &configuration.tree.directives;
    collect(
        directives,
        Context::Main,
        &mut Vec::new(),
        registry,
        &mut found,
    );
    found
}

fn collect<'a>(
    directives: &'a [Directive],
    context: Context,
    around: &mut Vec<&'a str>,
    registry: &Registry,
    found: &mut Vec<Found<'a>>,
) {
    for directive in directives {
        found.push(Found {
            directive,
            context,
            around: around.clone(),
        });
        if let Some(inside) = &directive.block {
            let name = directive.name.text.as_str();
            let row = registry.row(name, context);
            let inner = match row.map(|row| row.value) {
                Some(Value::Block(inner)) => inner,
                _ => Context::Entries,
            };
            around.push(name);
            collect(inside, inner, around, registry, found);
            around.pop();
        }
    }
}

/// `, did you mean "x"?`, where a candidate is near.
fn did_you_mean<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<String> {
    let meant = turnpike_conf::nearest(word, candidates)?;
    Some(format!(", did you mean \"{meant}\"?"))
}
