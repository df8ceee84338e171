//! Misspelt words: parameters, values, variables, formats, zones.

use turnpike_conf::{did_you_mean, nearest};

use super::mistake::Mistake;
use super::syntax::{self, Parameter};
use super::values;
use crate::variable_names;

/// The shortest word that is meant by a longer one that begins so: `warn` by `warning`.
const BEGIN_BYTES_MIN: usize = 3;

/// The most words that a message lists.
const LISTED_MAX: usize = 12;

pub(super) fn hint(mistake: &Mistake<'_>) -> Option<String> {
    let message = mistake.message;
    if let Some(rest) = message.strip_prefix("unknown \"")
        && let Some(name) = rest.strip_suffix("\" variable")
    {
        return variable(mistake, name);
    }
    if message.starts_with("unknown log format \"") {
        return log_format(mistake);
    }
    if message.ends_with("\" is unknown") || message.starts_with("zero size shared memory zone") {
        return zone(mistake);
    }
    if message.starts_with("host not found in resolver \"") {
        return parameter(mistake).filter(|hint| hint.contains("did you mean"));
    }
    let refusals = [
        "invalid parameter \"",
        "invalid value \"",
        "invalid log level \"",
        "invalid session cache \"",
    ];
    let is_refusal = refusals.iter().any(|begin| message.starts_with(begin));
    // A message that quotes more says what is right itself.
    let is_short = message.ends_with('"') && message.matches('"').count() == 2;
    // `invalid inactive value "inactive=3hours"`.
    let is_value = message.starts_with("invalid ") && message.contains(" value \"");
    (is_short && (is_refusal || is_value)).then(|| parameter(mistake))?
}

fn parameter(mistake: &Mistake<'_>) -> Option<String> {
    let text = mistake.quoted()?;
    let found = mistake.with_argument(text)?;
    let known = if mistake.message.starts_with("invalid log level") {
        syntax::levels()
    } else {
        syntax::parameters(found.row(mistake.registry)?)
    };
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text.split(':').next().unwrap_or(text), None),
    };
    let rest = &text[name.len()..];
    if let Some(value) = value
        && let Some(same) = known.iter().find(|one| one.name == name)
    {
        return values::of_parameter(name, same.value?, value);
    }
    let of_kind = |one: &&Parameter| one.value.is_some() == value.is_some();
    let alike: Vec<&str> = known.iter().filter(of_kind).map(|one| one.name).collect();
    let words: Vec<&str> = known.iter().map(|one| one.name).collect();
    let begun = words
        .iter()
        .find(|word| word.len() >= BEGIN_BYTES_MIN && name.starts_with(**word));
    let meant = nearest(name, alike.into_iter())
        .or(begun.copied())
        .or_else(|| nearest(name, words.iter().copied()));
    if let Some(meant) = meant {
        return Some(format!(", did you mean \"{meant}{rest}\"?"));
    }
    // Anything else may be no parameter at all, such as an address.
    let is_word = name
        .bytes()
        .all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let is_listed = is_word && (1..=LISTED_MAX).contains(&words.len());
    is_listed.then(|| format!("; known here: {}", words.join(", ")))
}

fn variable(mistake: &Mistake<'_>, name: &str) -> Option<String> {
    let is_in_stream = mistake
        .directives
        .last()
        .is_some_and(|found| found.is_in_stream());
    let defined = defined(mistake);
    let names: Vec<&str> = variable_names::names(is_in_stream).collect();
    let names = names.into_iter().chain(defined);
    let meant = nearest(name, names)?;
    Some(format!(", did you mean \"${meant}\"?"))
}

/// The variables that directives of the configuration define: their last argument, or that of `set`
/// its first.
fn defined<'a>(mistake: &Mistake<'a>) -> Vec<&'a str> {
    let words = mistake.all.iter().filter_map(|found| {
        let arguments = &found.directive.arguments;
        match found.name() {
            "set" | "auth_request_set" | "secure_link_set" => arguments.first(),
            "map" | "geo" | "split_clients" | "geoip2" => arguments.last(),
            _ => None,
        }
    });
    words
        .filter_map(|word| word.text.strip_prefix('$'))
        .collect()
}

fn log_format(mistake: &Mistake<'_>) -> Option<String> {
    let name = mistake.quoted()?;
    let all = mistake.all.iter();
    let formats = all.filter(|found| found.name() == "log_format");
    let formats = formats.map(|found| found.argument(0));
    did_you_mean(name, formats.chain(["combined", "json"]))
        .or_else(|| Some("; \"log_format\" defines one".to_owned()))
}

/// A zone that no directive makes, by the names of all that are made.
fn zone(mistake: &Mistake<'_>) -> Option<String> {
    let quoted: Vec<&str> = mistake.message.split('"').skip(1).step_by(2).collect();
    let name = quoted.last()?;
    let all = mistake.all.iter();
    let words = all.flat_map(|found| found.directive.arguments.iter());
    let zones = words.filter_map(|word| {
        let text = word.text.as_str();
        let made = text
            .strip_prefix("zone=")
            .or(text.strip_prefix("keys_zone="))?;
        made.split_once(':').map(|(zone, _)| zone)
    });
    let hint = did_you_mean(name, zones)?;
    // nginx's sentence may be a question already.
    Some(if mistake.message.ends_with('?') {
        hint.replace(", did", " Did")
    } else {
        hint
    })
}
