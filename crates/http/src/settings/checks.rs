//! What nginx checks of the core's arguments beyond their type, in effect or not.

use turnpike_conf::{Complaint, value};

/// `timeout [header_timeout]`.
pub(super) fn keepalive_timeout(name: &str, words: &[&str]) -> Result<(), Complaint> {
    let first = words
        .first()
        .is_none_or(|text| value::milliseconds(text).is_some());
    let second = words
        .get(1)
        .is_none_or(|text| value::seconds(text).is_some());
    if first && second {
        Ok(())
    } else {
        Err(format!("\"{name}\" directive invalid value").into())
    }
}

/// A size, or text with variables.
pub(super) fn size_or_variable(name: &str, words: &[&str]) -> Result<(), Complaint> {
    let right = |text: &&str| text.contains('$') || value::size(text).is_some();
    if words.iter().all(right) {
        Ok(())
    } else {
        Err(format!("\"{name}\" directive invalid value").into())
    }
}

/// `code ... [=[response]] uri`.
pub(super) fn error_page(_: &str, words: &[&str]) -> Result<(), Complaint> {
    super::error_page::codes(words).map(|_| ())
}
