//! `env_subst`: values of environment variables in a configuration. A value takes the place of
//! `${NAME}` inside one word after the text was read, so that it is never syntax: it cannot end a
//! directive, nor begin a variable.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::source::Loader;
use crate::text::{bytes_of, text_of};
use crate::tree::{Directive, Span};

/// The directive that allows names.
const NAME: &str = "env_subst";

/// What stands before a name.
pub(crate) const BEGINNING: &str = "${";

/// Begins the paths under which values are handed on with texts: no file has such a name.
const PREFIX: &str = "\0environment/";

/// Shorter values are not taken out of messages: any text has them by chance.
const HIDDEN_BYTES_MIN: usize = 3;

/// What opens a named group of a regular expression, which is a variable too.
const GROUPS: &[(&str, char)] = &[("(?<", '>'), ("(?P<", '>'), ("(?'", '\'')];

/// The values that were put in, by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Values(BTreeMap<String, String>);

/// Names only: values may be secrets.
impl fmt::Debug for Values {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// An `include` directive.
pub(crate) struct Include {
    /// The position in reading order.
    pub(crate) sequence: u32,
    pub(crate) span: Span,
    pub(crate) argument: String,
}

/// What came of a configuration's environment variables.
pub(crate) struct Expanded {
    pub(crate) values: Values,
    /// What is wrong, with the position of its directive in reading order, and its place.
    pub(crate) errors: Vec<(u32, Span, String)>,
}

/// The path under which the value of a name is handed on.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(format!("{PREFIX}{name}"))
}

/// Puts the values of the names that the main context allows into arguments. A name elsewhere
/// is refused: files are included before any value is known, and a value is no directive.
pub(crate) fn expand(
    directives: &mut [Directive],
    includes: &[Include],
    loader: &dyn Loader,
) -> Expanded {
    let mut values = BTreeMap::new();
    let mut errors = Vec::new();
    for directive in directives.iter().filter(|one| one.name.text == NAME) {
        for word in directive.arguments.iter() {
            match value(&word.text, directives, loader) {
                Ok(value) => drop(values.insert(word.text.clone(), value)),
                Err(message) => errors.push((directive.sequence, directive.span, message)),
            }
        }
    }
    if !values.is_empty() {
        for include in includes {
            if let Some(name) = first_name(&include.argument, &values) {
                let message = format!(
                    "environment variable \"{name}\" has no effect in \"include\": files are read \
                     before values are known"
                );
                errors.push((include.sequence, include.span, message));
            }
        }
        put_in(directives, &values, &mut errors);
    }
    Expanded {
        values: Values(values),
        errors,
    }
}

/// The value of a name, if it can stand in a word.
fn value(name: &str, directives: &[Directive], loader: &dyn Loader) -> Result<String, String> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !name.bytes().all(is_letter) || name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
        return Err(format!(
            "\"{name}\" is not a name that an environment variable can have: use letters, digits \
             and underscores"
        ));
    }
    if uses_variable(directives, name) {
        return Err(format!(
            "\"{name}\" is also a variable of this configuration, in upper or lower case: give \
             the environment variable another name"
        ));
    }
    let value = loader.environment(name);
    let value = value.ok_or_else(|| format!("environment variable \"{name}\" is not set"))?;
    if value
        .iter()
        .any(|byte| *byte == b'$' || byte.is_ascii_control())
    {
        return Err(format!(
            "the value of environment variable \"{name}\" has a \"$\" or a control character, \
             which cannot be put into a configuration"
        ));
    }
    Ok(text_of(&value))
}

/// Whether a word is the variable of this name, or names a group so, in any case of letters.
fn uses_variable(directives: &[Directive], name: &str) -> bool {
    directives.iter().any(|directive| {
        let mut words = directive.arguments.iter().chain([&directive.name]);
        words.any(|word| is_variable(&word.text, name))
            || uses_variable(directive.block.as_deref().unwrap_or_default(), name)
    })
}

fn is_variable(word: &str, name: &str) -> bool {
    if let Some(variable) = word.strip_prefix('$')
        && variable.eq_ignore_ascii_case(name)
    {
        return true;
    }
    GROUPS.iter().any(|(opening, end)| {
        let mut groups = word.split(opening).skip(1);
        groups.any(|rest| {
            let group = rest.split(*end).next().unwrap_or_default();
            group.eq_ignore_ascii_case(name)
        })
    })
}

fn put_in(
    directives: &mut [Directive],
    values: &BTreeMap<String, String>,
    errors: &mut Vec<(u32, Span, String)>,
) {
    for directive in directives {
        if let Some(name) = first_name(&directive.name.text, values) {
            let message = format!(
                "environment variable \"{name}\" has no effect at the beginning of a directive: \
                 values are put into arguments"
            );
            errors.push((directive.sequence, directive.span, message));
        }
        for word in Arc::make_mut(&mut directive.arguments) {
            if word.text.contains(BEGINNING) {
                word.text = expanded(&word.text, values);
            }
        }
        let block = directive.block.as_deref_mut().unwrap_or_default();
        put_in(block, values, errors);
    }
}

/// The first allowed name in a text.
fn first_name<'a>(text: &'a str, values: &BTreeMap<String, String>) -> Option<&'a str> {
    let parts = text.split(BEGINNING).skip(1);
    let mut names = parts.filter_map(|part| part.split_once('}').map(|(name, _)| name));
    names.find(|name| values.contains_key(*name))
}

/// A text with the values; what is not an allowed name stays as it is, since it may be a variable.
fn expanded(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGINNING) {
        out.push_str(before);
        let named = after.split_once('}');
        match named.and_then(|(name, behind)| Some((values.get(name)?, behind))) {
            Some((value, behind)) => {
                out.push_str(value);
                rest = behind;
            }
            None => {
                out.push_str(BEGINNING);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

impl Values {
    /// The values as texts, to parse the same configuration in another process.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
        self.0
            .iter()
            .map(|(name, value)| (path(name), bytes_of(value)))
    }

    /// Takes the values out of a message.
    pub(crate) fn hide(&self, message: &mut String) {
        for (name, value) in &self.0 {
            if value.len() >= HIDDEN_BYTES_MIN && message.contains(value.as_str()) {
                *message = message.replace(value.as_str(), &format!("{BEGINNING}{name}}}"));
            }
        }
    }
}
