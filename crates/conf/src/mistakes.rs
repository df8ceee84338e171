//! The errors of a configuration, collected over several passes: syntax, rows, and the meaning of
//! directives.
//!
//! A later pass does not see directives that an earlier one refused, so it may miss their
//! definitions. Such consequential errors are left out: they would lead the user to a correct line.

use std::collections::{HashMap, HashSet};

use crate::environment::Values;
use crate::error::{Collector, ConfError, Errors};
use crate::registry::Index;
use crate::tree::{Directive, Span, Tree};

/// Errors in reading order.
#[derive(Debug)]
pub struct Mistakes {
    errors: Collector,
    /// The words of refused directives, which may be names that they would have defined.
    refused_words: HashSet<String>,
    /// Hints, by the position of a directive that continues in the next line.
    hints: HashMap<u32, String>,
    /// Whether some text could not be read, which may have defined any name.
    is_partial: bool,
    /// What messages must not show.
    values: Values,
}

impl Mistakes {
    pub(crate) fn new(tree: &Tree, index: &Index, errors: Collector, is_partial: bool) -> Mistakes {
        let mut mistakes = Mistakes {
            errors,
            refused_words: HashSet::new(),
            hints: HashMap::new(),
            is_partial,
            values: tree.values.clone(),
        };
        mistakes.forget_inside_unknown(tree, &tree.directives, index);
        look_for_lost_ends(&tree.directives, index, &mut mistakes.hints);
        mistakes.errors.append_hints(&mistakes.hints);
        if !mistakes.errors.is_empty() {
            let refused = mistakes.errors.sequences();
            mistakes.remember(&tree.directives, &refused);
        }
        mistakes
    }

    /// Whether there is no error so far.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds the errors of another pass over the same tree, without consequential ones.
    pub fn add(&mut self, tree: &Tree, errors: Vec<ConfError>) {
        if errors.is_empty() {
            return;
        }
        let places = places(tree);
        let sequence = |error: &ConfError| {
            let place = error.place.as_ref().and_then(|place| places.get(place));
            place.copied().unwrap_or(u32::MAX)
        };
        // A directive that was refused for its own reason defines no names either.
        let reasons = errors.iter().filter(|error| !misses_a_name(error));
        let refused: HashSet<u32> = reasons.map(sequence).collect();
        self.remember(&tree.directives, &refused);
        for mut error in errors {
            if self.is_echo(&error) {
                continue;
            }
            let sequence = sequence(&error);
            if let Some(hint) = self.hints.get(&sequence) {
                error.hint.push_str(hint);
            }
            self.errors.add(sequence, error);
        }
    }

    /// `Ok` if there is no error.
    ///
    /// # Errors
    /// All errors, in reading order.
    pub fn finish(self) -> Result<(), Errors> {
        self.errors.finish().map_err(|mut errors| {
            for error in &mut errors.0 {
                self.values.hide(&mut error.message);
            }
            errors
        })
    }

    /// Drops errors inside of blocks without a row: their content may be another language.
    fn forget_inside_unknown(&mut self, tree: &Tree, directives: &[Directive], index: &Index) {
        for directive in directives {
            let Some(inside) = &directive.block else {
                continue;
            };
            if index.is_known(&directive.name.text) {
                self.forget_inside_unknown(tree, inside, index);
                continue;
            }
            let name = tree.sources.name(directive.span.file);
            let lines = directive.span.line..=directive.end.line;
            self.errors.retain(|sequence, error| {
                let place = error.place.as_ref();
                let is_inside = place.is_some_and(|(file, line)| {
                    Some(file.as_str()) == name && lines.contains(line)
                });
                sequence <= directive.sequence || !is_inside
            });
        }
    }

    fn remember(&mut self, directives: &[Directive], refused: &HashSet<u32>) {
        for directive in directives {
            if refused.contains(&directive.sequence) {
                // What it is, and what it has swallowed, is missed as well.
                self.refused_words.insert(directive.name.text.clone());
                let words = directive.arguments.iter();
                self.refused_words
                    .extend(words.flat_map(|word| names_in(&word.text)));
            }
            if let Some(inside) = &directive.block {
                self.remember(inside, refused);
            }
        }
    }

    /// Whether an error only reports an unknown name that a refused directive has, or may have,
    /// defined.
    fn is_echo(&self, error: &ConfError) -> bool {
        let mut quoted = error.message.split('"').skip(1).step_by(2);
        misses_a_name(error)
            && (self.is_partial || quoted.any(|name| self.refused_words.contains(name)))
    }
}

/// Whether an error is about an undefined name, or a missing directive.
fn misses_a_name(error: &ConfError) -> bool {
    let message = error.message.as_str();
    ["unknown", "zero size", "not found"]
        .iter()
        .any(|words| message.contains(words))
        || message.starts_with("no \"") && message.contains("\" is defined for ")
}

/// The names that a word may define: itself, a variable, a zone in `zone=name:size`.
fn names_in(text: &str) -> [String; 3] {
    let variable = text.strip_prefix('$').unwrap_or(text);
    let parameter = text.split_once('=').map_or(text, |(_, value)| value);
    let zone = parameter.split(':').next().unwrap_or_default();
    [text, variable, zone].map(str::to_owned)
}

/// Finds directives whose words continue in the next line with the name of another directive: a
/// semicolon is probably missing. The hint is used only if there is an error.
fn look_for_lost_ends(directives: &[Directive], index: &Index, hints: &mut HashMap<u32, String>) {
    for directive in directives {
        let mut line = directive.name.span.line;
        for word in directive.arguments.iter() {
            let goes_on = word.span.line > line && !word.quoted;
            if goes_on && !index.rows(&word.text).is_empty() {
                let hint = format!(", is a \";\" missing in line {line}?");
                hints.insert(directive.sequence, hint);
                break;
            }
            line = word.span.line;
        }
        if let Some(inside) = &directive.block {
            look_for_lost_ends(inside, index, hints);
        }
    }
}

type Place = (String, u32);

/// The position of each place in reading order.
fn places(tree: &Tree) -> HashMap<Place, u32> {
    let mut places = HashMap::new();
    collect(tree, &tree.directives, &mut places);
    places
}

fn collect(tree: &Tree, directives: &[Directive], places: &mut HashMap<Place, u32>) {
    for directive in directives {
        let mut note = |span: Span, sequence: u32| {
            if let Some(name) = tree.sources.name(span.file) {
                let place = (name.to_owned(), span.line);
                places.entry(place).or_insert(sequence);
            }
        };
        note(directive.span, directive.sequence);
        let words = directive.arguments.iter();
        words.for_each(|word| note(word.span, directive.sequence));
        if let Some(inside) = &directive.block {
            collect(tree, inside, places);
            let last = last_sequence(directive);
            if let Some(name) = tree.sources.name(directive.end.file) {
                let place = (name.to_owned(), directive.end.line);
                places.entry(place).or_insert(last);
            }
        }
    }
}

/// The position of the last directive inside a block, at any depth.
fn last_sequence(directive: &Directive) -> u32 {
    let inside = directive.block.as_ref().and_then(|inside| inside.last());
    inside.map_or(directive.sequence, last_sequence)
}
