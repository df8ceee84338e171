//! What a message about a mistake goes on with: what was meant, or what to write instead.
//!
//! nginx's sentence comes first, word for word. A hint is found by that sentence and by the
//! directive that it is about, so that no family has to know that there are hints; what a directive
//! takes is read from the syntax in its row. A message that has a hint already keeps it.

mod braces;
mod files;
mod foreign;
mod mistake;
mod places;
mod refused;
mod syntax;
mod upstreams;
mod values;
mod warnings;
mod words;

use turnpike_conf::Errors;

use crate::configuration::Configuration;
use crate::families;
use mistake::{Mistake, all, at_place};

pub(crate) use warnings::{of_files, of_letters};

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
    let all = all(configuration, &registry);
    for error in &mut errors.0 {
        if !error.hint.is_empty() {
            continue;
        }
        let mistake = Mistake {
            message: &error.message,
            directives: at_place(error, &configuration.tree.sources, &all),
            all: &all,
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
