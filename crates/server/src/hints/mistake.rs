//! A mistake as the rules for hints see it, with the directives that it is about.

use turnpike_conf::{ConfError, Context, Directive, FileId, Registry, Row, Sources, Value};

use crate::configuration::Configuration;

/// A message with what it is about.
pub(super) struct Mistake<'a> {
    pub(super) message: &'a str,
    /// The directives of the message's place, outer ones first.
    pub(super) directives: Vec<&'a Found<'a>>,
    /// Every directive of the configuration.
    pub(super) all: &'a [Found<'a>],
    pub(super) configuration: &'a Configuration,
    pub(super) registry: &'a Registry,
}

/// A directive with where it stands.
pub(super) struct Found<'a> {
    pub(super) directive: &'a Directive,
    context: Context,
    /// The name of the outermost block around it.
    outermost: Option<&'a str>,
}

impl<'a> Mistake<'a> {
    /// The first quoted text of the message.
    pub(super) fn quoted(&self) -> Option<&'a str> {
        self.message.split('"').nth(1)
    }

    /// The directive of the message's place that has this text as a whole argument, or the first.
    pub(super) fn with_argument(&self, text: &str) -> Option<&'a Found<'a>> {
        let mut directives = self.directives.iter().copied();
        directives.rfind(|found| {
            let mut words = found.directive.arguments.iter();
            words.any(|word| word.text == text)
        })
    }

    /// The directive of the message's place that has this name.
    pub(super) fn named(&self, name: &str) -> Option<&'a Found<'a>> {
        let mut directives = self.directives.iter().copied();
        directives.rfind(|found| found.name() == name)
    }
}

impl<'a> Found<'a> {
    pub(super) fn name(&self) -> &'a str {
        &self.directive.name.text
    }

    pub(super) fn argument(&self, index: usize) -> &'a str {
        let word = self.directive.arguments.get(index);
        word.map_or("", |word| word.text.as_str())
    }

    pub(super) fn row(&self, registry: &Registry) -> Option<&'static Row> {
        registry.row(self.name(), self.context)
    }

    pub(super) fn is_in_stream(&self) -> bool {
        self.outermost == Some("stream")
    }
}

/// The directives that an error's place is in.
pub(super) fn at_place<'a>(
    error: &ConfError,
    sources: &Sources,
    all: &'a [Found<'a>],
) -> Vec<&'a Found<'a>> {
    let Some((name, line)) = &error.place else {
        return Vec::new();
    };
    let is_there = |found: &&Found<'_>| {
        let directive = found.directive;
        let is_file = |file: FileId| sources.name(file) == Some(name.as_str());
        let is_within = (directive.name.span.line..=directive.span.line).contains(line);
        let is_end = directive.end.line == *line && is_file(directive.end.file);
        is_file(directive.span.file) && is_within || is_end
    };
    all.iter().filter(is_there).collect()
}

/// Every directive of a configuration, in reading order.
pub(super) fn all<'a>(configuration: &'a Configuration, registry: &Registry) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    let directives = &configuration.tree.directives;
    collect(directives, Context::Main, None, registry, &mut found);
    found
}

fn collect<'a>(
    directives: &'a [Directive],
    context: Context,
    outermost: Option<&'a str>,
    registry: &Registry,
    found: &mut Vec<Found<'a>>,
) {
    for directive in directives {
        found.push(Found {
            directive,
            context,
            outermost,
        });
        if let Some(inside) = &directive.block {
            let name = directive.name.text.as_str();
            let row = registry.row(name, context);
            let inner = match row.map(|row| row.value) {
                Some(Value::Block(inner)) => inner,
                _ => Context::Entries,
            };
            collect(inside, inner, outermost.or(Some(name)), registry, found);
        }
    }
}
