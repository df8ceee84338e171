//! What nginx checks of arguments beyond their type.

use turnpike_conf::{Complaint, value};

/// `off` only: what `on` asks for is not there yet.
pub(super) fn off(name: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        ["off"] => Ok(()),
        _ => Err(format!("\"{name}\" directive is not supported yet").into()),
    }
}

/// `off | on | threads[=pool]`.
pub(super) fn aio(_: &str, words: &[&str]) -> Result<(), Complaint> {
    let word = words.first().copied().unwrap_or_default();
    match word {
        "off" | "on" | "threads" => Ok(()),
        _ if word.starts_with("threads=") && word.len() > "threads=".len() => Ok(()),
        _ => Err("invalid value".into()),
    }
}

/// `off | size`.
pub(super) fn off_or_size(name: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        ["off"] => Ok(()),
        [text] if value::offset(text).is_some() => Ok(()),
        _ => Err(format!("\"{name}\" directive invalid value").into()),
    }
}
