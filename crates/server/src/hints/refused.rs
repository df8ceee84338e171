//! Directives and parameters that do not work here: what to do instead.

use super::mistake::Mistake;
use crate::families::advice;

pub(super) fn hint(mistake: &Mistake<'_>) -> Option<String> {
    let message = mistake.message;
    let unknown = message.strip_prefix("unknown directive \"");
    if let Some(name) = unknown.and_then(|rest| rest.strip_suffix('"')) {
        let advice = advice::find(name)?;
        let (module, instead) = (advice.module, clause(advice.instead));
        return Some(format!(" of the module \"{module}\"; {instead}"));
    }
    let advice = advice::find(&refused(message)?)?;
    Some(format!(" ({}); {}", advice.module, clause(advice.instead)))
}

/// A sentence as a part of another one.
fn clause(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// The directive that a message refuses, with the parameter if it refuses only that.
fn refused(message: &str) -> Option<String> {
    let known = message.strip_suffix(" is not supported yet")?;
    if let Some(parameter) = known.strip_prefix("the \"") {
        let (parameter, directive) = parameter.split_once("\" parameter of \"")?;
        return Some(format!("{} {parameter}", directive.strip_suffix('"')?));
    }
    let name = known.strip_prefix('"')?;
    name.strip_suffix("\" directive").map(str::to_owned)
}
