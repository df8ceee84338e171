//! Paths that something else than the client names: an application, or a template.

use turnpike_wire::hex;

/// The path with its escapes decoded; `None` where it could lead above the root.
pub(crate) fn safe_path(path: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(path.len());
    append_safe_path(path, &mut decoded).then_some(decoded)
}

/// Appends the path with its escapes decoded; `false` where it could lead above the root.
pub(crate) fn append_safe_path(path: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        match hex::byte(after).filter(|_| byte == b'%') {
            Some(value) => {
                out.push(value);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    let decoded = out.get(start..).unwrap_or_default();
    let above = decoded
        .split(|byte| *byte == b'/')
        .any(|part| part == b"..");
    let plain = !decoded.is_empty() && !decoded.contains(&0);
    plain && !above
}

#[cfg(test)]
mod tests;
