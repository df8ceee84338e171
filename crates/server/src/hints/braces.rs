//! A pattern with braces and without quotes: its `{` opens a block.

use turnpike_conf::{Directive, Errors};

use super::mistake::Mistake;

const ADVICE: &str = "; a pattern with braces must be quoted: ";

pub(super) fn hint(mistake: &Mistake<'_>) -> Option<String> {
    let outer = mistake.directives.iter();
    outer.rev().find_map(|found| pattern(found.directive))
}

/// The pattern whose brace opened the block of this directive.
fn pattern(directive: &Directive) -> Option<String> {
    let inner = directive.block.as_ref()?.first()?;
    let (count, _) = inner.name.text.split_once('}')?;
    let is_count = !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit() || b == b',');
    if !is_count {
        return None;
    }
    let begin = directive.arguments.last().unwrap_or(&directive.name);
    let rest = match directive.name.text.as_str() {
        "if" => inner.name.text.trim_end_matches(')'),
        _ => inner.name.text.as_str(),
    };
    let begin = begin.text.as_str();
    Some(format!("{ADVICE}\"{begin}{{{rest}\""))
}

/// Leaves out what follows from such a brace: the block that is not closed, in the same file.
pub(super) fn drop_consequences(errors: &mut Errors) {
    let is_pattern = |hint: &str| hint.starts_with(ADVICE);
    let file = |place: &Option<(String, u32)>| place.as_ref().map(|(file, _)| file.clone());
    let cause = errors.0.iter().find(|error| is_pattern(&error.hint));
    let Some(cause) = cause.map(|error| file(&error.place)) else {
        return;
    };
    errors.0.retain(|error| {
        let is_end = error
            .message
            .starts_with("unexpected end of file, expecting \"}\"");
        !is_end || file(&error.place) != cause
    });
}
