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
    out.extend_from_slice(method);
    end_request_line(out, target, version);
}

/// Appends the rest of a request line, whose method stands at the end of `out`.
pub fn end_request_line(out: &mut Vec<u8>, target: &[u8], version: Version) {
    out.push(b' ');
    out.extend_from_slice(target);
    out.push(b' ');
    out.extend_from_slice(version.name().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends a header line.
pub fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// A header line whose value is made where it stands. Without [`FieldLine::end`] nothing is left of
/// it.
pub struct FieldLine<'a> {
    out: &'a mut Vec<u8>,
    /// Where the line begins; behind it once it was ended.
    start: usize,
    value_start: usize,
}

impl<'a> FieldLine<'a> {
    /// Appends the name.
    #[must_use]
    pub fn begin(out: &'a mut Vec<u8>, name: &[u8]) -> Self {
        let start = out.len();
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        Self {
            start,
            value_start: out.len(),
            out,
        }
    }

    /// The value so far.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.out.get(self.value_start..).unwrap_or_default()
    }

    /// Where the value is appended; nothing before it may be changed.
    pub fn value_mut(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Takes the value away that was made.
    pub fn clear_value(&mut self) {
        self.out.truncate(self.value_start);
    }

    /// Ends the line.
    pub fn end(mut self) {
        self.out.extend_from_slice(b"\r\n");
        self.start = self.out.len();
    }
}

impl Drop for FieldLine<'_> {
    fn drop(&mut self) {
        self.out.truncate(self.start);
    }
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

/// Appends a header line whose value is a decimal number.
pub fn number_field(out: &mut Vec<u8>, name: &str, value: u64) {
    let mut digits = [0; DIGITS_MAX];
    let start = decimal(value, &mut digits);
    field(out, name, &digits[start..]);
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

/// Digits of the largest 64-bit number.
const DIGITS_MAX: usize = 20;

/// Writes `value` to the end of `digits`; returns where it begins.
fn decimal(value: u64, digits: &mut [u8; DIGITS_MAX]) -> usize {
    let mut start = digits.len();
    let mut rest = value;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return start;
        }
    }
}
