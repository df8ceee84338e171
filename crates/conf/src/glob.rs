//! Shell patterns of `include`, as in glob(3) without flags.
//!
//! `*`, `?` and `[...]` match inside one part of a path; a leading dot must be written; results are
//! sorted by bytes. The module only lists folders, and reads no file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Whether `include` treats this path as a pattern.
pub(crate) fn is_pattern(path: &[u8]) -> bool {
    path.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// The existing paths that match, sorted; folders that cannot be read match nothing.
pub(crate) fn expand(pattern: &Path) -> Vec<PathBuf> {
    let pattern = pattern.as_os_str().as_bytes();
    let mut found: Vec<Vec<u8>> = vec![Vec::new()];
    for (index, part) in pattern.split(|byte| *byte == b'/').enumerate() {
        let mut next = Vec::new();
        for base in found {
            let mut base = base;
            if index > 0 {
                base.push(b'/');
            }
            if is_pattern(part) {
                list(&base, part, &mut next);
            } else {
                base.extend_from_slice(part);
                next.push(base);
            }
        }
        found = next;
    }
    found.sort();
    let paths = found
        .into_iter()
        .map(|path| PathBuf::from(OsStr::from_bytes(&path)));
    paths
        .filter(|path| path.symlink_metadata().is_ok())
        .collect()
}

/// Whether a whole path matches a whole pattern.
pub(crate) fn matches_path(pattern: &Path, path: &Path) -> bool {
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
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
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

fn list(base: &[u8], part: &[u8], found: &mut Vec<Vec<u8>>) {
    let folder = if base.is_empty() {
        Path::new(".")
    } else {
        Path::new(OsStr::from_bytes(base))
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if matches(part, name.as_bytes()) {
            found.push([base, name.as_bytes()].concat());
        }
    }
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
