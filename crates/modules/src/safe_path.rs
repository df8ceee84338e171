//! Paths that something else than the client names: an application, or a template.

use turnpike_wire::hex;

/// The path with its escapes decoded; `None` where it could lead above the root.
pub(crate) fn safe_path(path: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        match hex::byte(after).filter(|_| byte == b'%') {
            Some(value) => {
                decoded.push(value);
                rest = &after[2..];
            }
            None => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    let above = decoded
        .split(|byte| *byte == b'/')
        .any(|part| part == b"..");
    let plain = !decoded.is_empty() && !decoded.contains(&0);
    (plain && !above).then_some(decoded)
}

#[cfg(test)]
mod tests;
