//! Shell patterns of `include`, as in glob(3) without flags.
//!
//! `*`, `?` and `[...]` match inside one part of a path; a leading dot must be written; results are
//! sorted by bytes. The module lists no folder: a loader does.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether `include` treats this path as a pattern.
pub fn is_pattern(path: &[u8]) -> bool {
    path.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Whether a whole path matches a whole pattern.
pub fn matches_path(pattern: &Path, path: &Path) -> bool {
    let slash = |byte: &u8| *byte == b'/';
    let mut patterns = pattern.as_os_str().as_bytes().split(slash);
    let mut parts = path.as_os_str().as_bytes().split(slash);
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return true,
            (Some(pattern), Some(part)) if matches(pattern, part) => {}
            _ => return false,
        }
    }
}

/// Whether one part of a path matches one part of a pattern.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    let (mut at, mut position) = (0, 0);
    // The place to continue after a mismatch: the last `*`, with one byte more.
    let mut retry: Option<(usize, usize)> = None;
    while position < name.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            retry = Some((at, position));
            continue;
        }
        if let Some(after) = matches_one(pattern, at, name[position]) {
            at = after;
            position += 1;
            continue;
        }
        let Some((star, taken)) = retry else {
            return false;
        };
        at = star;
        position = taken + 1;
        retry = Some((star, taken + 1));
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// The pattern's position after matching one byte; `None` if it does not match.
fn matches_one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match *pattern.get(at)? {
        b'?' => Some(at + 1),
        b'[' => match class(pattern, at, byte) {
            Some((inside, after)) => inside.then_some(after),
            None => (byte == b'[').then_some(at + 1),
        },
        b'\\' if at + 1 < pattern.len() => (pattern[at + 1] == byte).then_some(at + 2),
        literal => (literal == byte).then_some(at + 1),
    }
}

/// Reads `[...]` at `at`: whether it contains the byte, and its end; `None` if it has no end.
fn class(pattern: &[u8], at: usize, byte: u8) -> Option<(bool, usize)> {
    let mut index = at + 1;
    let negated = matches!(pattern.get(index), Some(b'!' | b'^'));
    if negated {
        index += 1;
    }
    let first = index;
    let mut inside = false;
    loop {
        let mut low = *pattern.get(index)?;
        if low == b']' && index > first {
            return Some((inside != negated, index + 1));
        }
        if low == b'\\' {
            index += 1;
            low = *pattern.get(index)?;
        }
        let mut high = low;
        let next = pattern.get(index + 2).copied();
        if pattern.get(index + 1) == Some(&b'-') && next.is_some_and(|next| next != b']') {
            high = next?;
            index += 2;
        }
        inside |= (low..=high).contains(&byte);
        index += 1;
    }
}
