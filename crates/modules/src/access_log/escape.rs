//! How a variable's bytes are made fit for a log line.

use turnpike_wire::hex;

/// What is done with bytes that a reader of the log could take for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escape {
    /// `\xHH` for control bytes, quotes, backslashes and what is not ASCII.
    Default,
    /// As within a JSON string.
    Json,
    /// Nothing: the format's owner vouches for it.
    None,
}

impl Escape {
    /// Escapes what stands in `line` from `start` on; `spare` is scratch room.
    pub(super) fn apply(self, line: &mut Vec<u8>, start: usize, spare: &mut Vec<u8>) {
        let needs = match self {
            Escape::None => return,
            Escape::Default => is_escaped_by_default,
            Escape::Json => is_escaped_in_json,
        };
        let Some(first) = line[start..].iter().position(|byte| needs(*byte)) else {
            return;
        };
        let from = start + first;
        spare.clear();
        spare.extend_from_slice(&line[from..]);
        line.truncate(from);
        for &byte in spare.iter() {
            match self {
                _ if !needs(byte) => line.push(byte),
                Escape::Json => push_json(byte, line),
                _ => push_hexadecimal(b"\\x", byte, line),
            }
        }
    }
}

fn is_escaped_by_default(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\' || byte >= 0x7f
}

fn is_escaped_in_json(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

fn push_json(byte: u8, line: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => return push_hexadecimal(b"\\u00", byte, line),
    };
    line.extend_from_slice(&[b'\\', short]);
}

fn push_hexadecimal(mark: &[u8], byte: u8, line: &mut Vec<u8>) {
    line.extend_from_slice(mark);
    line.extend_from_slice(&hex::pair_upper(byte));
}
