//! What nginx checks of arguments beyond their type.

use turnpike_conf::{Complaint, value};

/// Pages of an SSL session cache, at least; nginx's.
const SESSION_CACHE_BYTES_MIN: u64 = 8 * 4096;

/// `off` only.
pub(super) fn off(name: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        ["off"] => Ok(()),
        _ => Err(format!(
            "the \"{name}\" directive is obsolete, use the \"listen ... ssl\" directive instead"
        )
        .into()),
    }
}

/// Bytes of a protocol's name, at most (RFC 7301 section 3.1).
const PROTOCOL_BYTES_MAX: usize = 255;

/// Names of protocols.
pub(super) fn protocols(_: &str, words: &[&str]) -> Result<(), Complaint> {
    match words.iter().find(|word| word.len() > PROTOCOL_BYTES_MAX) {
        Some(word) => Err(format!("protocol too long: \"{word}\"").into()),
        None => Ok(()),
    }
}

/// `off | none | [builtin[:size]] [shared:name:size]`.
pub(super) fn session_cache(_: &str, words: &[&str]) -> Result<(), Complaint> {
    for word in words {
        let invalid = || format!("invalid session cache \"{word}\"");
        match word.split(':').collect::<Vec<_>>().as_slice() {
            ["off" | "none" | "builtin"] => {}
            ["builtin", count] => {
                value::number(count).ok_or_else(invalid)?;
            }
            ["shared", name, size] if !name.is_empty() => {
                let size_bytes = value::size(size).ok_or_else(invalid)?;
                if size_bytes < SESSION_CACHE_BYTES_MIN {
                    return Err(format!("session cache \"{word}\" is too small").into());
                }
            }
            _ => return Err(invalid().into()),
        }
    }
    Ok(())
}

/// `off | shared:name:size`.
pub(super) fn ocsp_cache(_: &str, words: &[&str]) -> Result<(), Complaint> {
    let word = words.first().copied().unwrap_or_default();
    let invalid = || format!("invalid OCSP cache \"{word}\"");
    match word.split(':').collect::<Vec<_>>().as_slice() {
        ["off"] => Ok(()),
        ["shared", name, size] if !name.is_empty() => match value::size(size) {
            Some(size_bytes) if size_bytes >= SESSION_CACHE_BYTES_MIN => Ok(()),
            Some(_) => Err(format!("OCSP cache \"{word}\" is too small").into()),
            None => Err(invalid().into()),
        },
        _ => Err(invalid().into()),
    }
}
