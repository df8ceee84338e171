//! `Cache-Status` (RFC 9211): a field that shows what the cache had to do with a response.

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::variables::append_number;

use super::note::{CacheNote, noted};

/// Adds the field, behind those of caches nearer to the origin.
pub(super) struct StatusField {
    /// The name of this cache, as it is written.
    pub(super) name: Box<[u8]>,
}

/// A name as the field has it: a token or a string (RFC 9211 section 2). `None`: it can be neither.
pub(super) fn identifier(name: &str) -> Option<Vec<u8>> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '*');
    if begins && name.bytes().all(is_token) {
        return Some(name.as_bytes().to_vec());
    }
    if name.is_empty() || !name.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return None;
    }
    let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
    Some(format!("\"{escaped}\"").into_bytes())
}

impl Filter for StatusField {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let note = noted(exchange)?;
        if note.status.is_empty() && note.forward.is_empty() {
            return None;
        }
        let mut value = exchange.lane.take_scratch();
        value.extend_from_slice(&self.name);
        describe(exchange, note, &mut value);
        exchange.response.fields_mut().add(b"Cache-Status", &value);
        exchange.lane.keep_scratch(value);
        None
    }
}

/// The parameters (RFC 9211 section 2).
fn describe(exchange: &Exchange, note: &CacheNote, out: &mut Vec<u8>) {
    match (note.forward, note.collapsed) {
        ("", false) => out.extend_from_slice(b"; hit"),
        ("", true) => out.extend_from_slice(b"; fwd=uri-miss; collapsed"),
        (forward, _) => {
            out.extend_from_slice(b"; fwd=");
            out.extend_from_slice(forward.as_bytes());
            let status = exchange.upstream.tries().last().map_or(0, |one| one.status);
            if status > 0 {
                out.extend_from_slice(b"; fwd-status=");
                append_number(out, u64::from(status));
            }
        }
    }
    if note.keeps {
        out.extend_from_slice(b"; stored");
    }
    if let Some(seconds) = note.fresh_for_s {
        out.extend_from_slice(if seconds < 0 { b"; ttl=-" } else { b"; ttl=" });
        append_number(out, seconds.unsigned_abs());
    }
    if !note.keeps && !note.not_stored.is_empty() {
        out.extend_from_slice(b"; detail=");
        out.extend_from_slice(note.not_stored.as_bytes());
    }
}
