//! Writers of heads and chunk lines, which append to a vector.
//!
//! The writers check and escape nothing: names and values from a client must have passed the
//! parser.

use crate::Span;
use crate::hex;
use crate::message::{Field, Version};

#[cfg(test)]
mod tests;

/// The last chunk with no trailers (RFC 9112 section 7.1).
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends the status line. A status without a reason keeps its space, as RFC 9112 requires.
pub fn status_line(out: &mut Vec<u8>, version: Version, status: u16, reason: &str) {
    if status == 200 && version == Version::Http11 && reason == "OK" {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    out.extend_from_slice(version.name().as_bytes());
    let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| digit as u8 + b'0');
    out.extend_from_slice(&[b' ', digits[0], digits[1], digits[2], b' ']);
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends the request line, client role.
pub fn request_line(out: &mut Vec<u8>, method: &[u8], target: &[u8], version: Version) {
    for part in [
        method,
        b" ",
        target,
        b" ",
        version.name().as_bytes(),
        b"\r\n",
    ] {
        out.extend_from_slice(part);
    }
}

/// Appends a header line. It is inlined since most names are constants, whose copies then take no
/// call.
#[inline(always)]
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a header line for this field of `bytes`. A line that already has our format is copied at
/// once; most heads from HTTP/1 have it.
pub fn write_field(out: &mut Vec<u8>, bytes: &[u8], field: &Field) {
    match plain_line(bytes, field) {
        Some(line) => out.extend_from_slice(line),
        None => {
            for part in [field.name.of(bytes), b": ", field.value.of(bytes), b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
    }
}

/// The complete line in `bytes`, if it has our format: a colon and one space between name and
/// value, and the line end directly after the value.
fn plain_line<'a>(bytes: &'a [u8], field: &Field) -> Option<&'a [u8]> {
    let between = Span::new(field.name.end(), field.value.start()).of(bytes);
    let behind = Span::new(field.value.end(), field.value.end() + 2).of(bytes);
    let line = Span::new(field.name.start(), field.value.end() + 2).of(bytes);
    (between == b": " && behind == b"\r\n").then_some(line)
}

/// Appends the empty line that ends the head.
pub fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Appends the line before the data of a chunk of `len` bytes; an empty line follows the data.
pub fn write_chunk_head(out: &mut Vec<u8>, len: u64) {
    hex::write_number(out, len);
    out.extend_from_slice(b"\r\n");
}
