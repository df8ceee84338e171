//! Request targets: the normal form of a path, and escaping for each context.

use crate::hex;

#[cfg(test)]
mod tests;

/// The result of a normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normal {
    /// The path is already in normal form; nothing was written.
    Clean,
    /// The normal form was appended to the vector.
    Rewritten,
}

/// Why a path has no normal form; nginx answers 400 and logs "client sent invalid request".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// A percent sign without two hexadecimal digits after it.
    InvalidEscape,
    /// An escaped NUL.
    Nul,
    /// `..` above the root.
    AboveRoot,
}

/// Brings the raw path of a request (no query, no fragment) into nginx's normal form: escapes are
/// decoded, `.` and `..` are resolved, and with `merge_slashes` several slashes become one.
///
/// An escaped slash or dot counts as a slash or dot; an escaped `%`, `#` or `?` has no special
/// meaning. A path that needs no change is reported as clean and not copied.
///
/// # Errors
/// [`TargetError`]; anything appended to `out` is removed again.
pub fn normalise(
    path: &[u8],
    merge_slashes: bool,
    out: &mut Vec<u8>,
) -> Result<Normal, TargetError> {
    if is_clean(path) {
        return Ok(Normal::Clean);
    }
    let base = out.len();
    out.reserve(path.len());
    let result = rewrite(path, merge_slashes, base, out);
    if result.is_err() {
        out.truncate(base);
    }
    result.map(|()| Normal::Rewritten)
}

/// Whether `normalise` would leave the path unchanged, by a quick check.
#[must_use]
pub fn is_clean(path: &[u8]) -> bool {
    let mut after_slash = false;
    for &byte in path {
        if byte == b'%' || (after_slash && (byte == b'/' || byte == b'.')) {
            return false;
        }
        after_slash = byte == b'/';
    }
    true
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Usual,
    Slash,
    Dot,
    DotDot,
}

fn rewrite(
    path: &[u8],
    merge_slashes: bool,
    base: usize,
    out: &mut Vec<u8>,
) -> Result<(), TargetError> {
    let mut state = State::Usual;
    let mut at = 0;
    while let Some(&raw) = path.get(at) {
        at += 1;
        let mut byte = raw;
        if raw == b'%' {
            byte = decode(path, at)?;
            at += 2;
            if matches!(byte, b'%' | b'#' | b'?') {
                out.push(byte);
                state = State::Usual;
                continue;
            }
        }
        state = match (state, byte) {
            (State::Slash, b'/') => {
                if !merge_slashes {
                    out.push(b'/');
                }
                State::Slash
            }
            (State::Dot, b'/') => {
                out.pop();
                State::Slash
            }
            (State::DotDot, b'/') => {
                leave_segment(base, out)?;
                State::Slash
            }
            (_, b'/') => {
                out.push(b'/');
                State::Slash
            }
            (State::Slash, b'.') => {
                out.push(b'.');
                State::Dot
            }
            (State::Dot, b'.') => {
                out.push(b'.');
                State::DotDot
            }
            _ => {
                out.push(byte);
                State::Usual
            }
        };
    }
    match state {
        State::Dot => {
            out.pop();
            Ok(())
        }
        State::DotDot => leave_segment(base, out),
        State::Usual | State::Slash => Ok(()),
    }
}

/// Removes `/..` and the segment before it, and leaves the slash before that.
fn leave_segment(base: usize, out: &mut Vec<u8>) -> Result<(), TargetError> {
    let parent_end = out.len().saturating_sub(3).max(base);
    let parent = &out[base..parent_end];
    let slash = memchr::memrchr(b'/', parent).ok_or(TargetError::AboveRoot)?;
    out.truncate(base + slash + 1);
    Ok(())
}

fn decode(path: &[u8], at: usize) -> Result<u8, TargetError> {
    match hex::byte(path.get(at..).unwrap_or_default()) {
        None => Err(TargetError::InvalidEscape),
        Some(0) => Err(TargetError::Nul),
        Some(byte) => Ok(byte),
    }
}

/// The context of escaped text; each has its own set of bytes that need no escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// A path: `?`, `#` and `%` are escaped, for redirects and proxied requests.
    Path,
    /// An argument of a query: also `&`, `+` and `;`.
    Args,
    /// One component: everything but letters, digits, `-`, `.`, `_` and `~`.
    Component,
    /// An attribute in HTML: `?` is allowed, quotes are not.
    Html,
    /// The value of `Refresh` or of a captured `Location`: only bytes that no URI may hold.
    Refresh,
    /// A memcached key: control bytes, space and `%`.
    Memcached,
    /// The value of a `Location` whose other parts are already escaped: control bytes.
    Controls,
    /// The target of a request: control bytes and spaces, which would end it early.
    Target,
}

/// Appends `text` with the forbidden bytes of the context written as `%XX`.
pub fn escape(text: &[u8], place: Escape, out: &mut Vec<u8>) {
    out.reserve(text.len());
    for &byte in text {
        if needs_escape(byte, place) {
            out.push(b'%');
            out.extend_from_slice(&hex::pair_upper(byte));
        } else {
            out.push(byte);
        }
    }
}

/// Whether `escape` would change the text.
#[must_use]
pub fn needs_escaping(text: &[u8], place: Escape) -> bool {
    text.iter().any(|&byte| needs_escape(byte, place))
}

fn needs_escape(byte: u8, place: Escape) -> bool {
    let bit = 1 << place as u8;
    ESCAPED[usize::from(byte)] & bit != 0
}

/// One bit for each `Escape`, in their order.
const ESCAPED: [u8; 256] = {
    let mut table = [0; 256];
    mark(&mut table, Escape::Path, b" \"#%?<>\\^`{|}\x7f");
    mark(&mut table, Escape::Args, b" \"#%&+;?<>\\^`{|}\x7f");
    mark(&mut table, Escape::Html, b" \"#%'<>\\^`{|}\x7f");
    mark(&mut table, Escape::Refresh, b" \"'<>\\^`{|\x7f~");
    mark(&mut table, Escape::Memcached, b" %");
    mark(&mut table, Escape::Controls, b"\x7f");
    mark(&mut table, Escape::Target, b" \x7f");
    let mut index = 0;
    while index < 256 {
        let byte = index as u8;
        let unreserved = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        if byte < b' ' {
            table[index] = 0xff;
        } else if byte >= 0x80 {
            let plain = [Escape::Memcached, Escape::Controls, Escape::Target];
            table[index] = 0xff;
            let mut place = 0;
            while place < plain.len() {
                table[index] &= !(1 << plain[place] as u8);
                place += 1;
            }
        } else if !unreserved {
            table[index] |= 1 << Escape::Component as u8;
        }
        index += 1;
    }
    table
};

const fn mark(table: &mut [u8; 256], place: Escape, bytes: &[u8]) {
    let mut index = 0;
    while index < bytes.len() {
        table[bytes[index] as usize] |= 1 << place as u8;
        index += 1;
    }
}
