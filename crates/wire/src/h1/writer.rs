//! Heads and chunk lines onto a vector, append-only.
//!
//! Names and values are the caller's: nothing is checked or escaped here, so what comes from a
//! client must have been through the parser before.

use super::request_line::Version;
use super::strictness::trim;

#[cfg(test)]
mod tests;

/// The last chunk with no trailers (RFC 9112 section 7.1).
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends the status line. A status without a reason keeps its space, as RFC 9112 wants it.
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
    out.push(b' ');
    out.extend_from_slice(target);
    out.push(b' ');
    out.extend_from_slice(version.name().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Whether a text holds a byte that no field value may: a control byte other than a tab (RFC 9110
/// section 5.5). A carriage return or a line feed among them would end the field early.
#[must_use]
pub fn holds_control(text: &[u8]) -> bool {
    // Without an early end, so that it takes many bytes at a time.
    text.iter()
        .fold(false, |found, &byte| found | is_control(byte))
}

/// How many bytes of a text are control bytes other than tabs.
#[must_use]
pub fn count_controls(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| is_control(byte)).count()
}

/// The text of a field value that is written over several lines, as one line: each line end and the
/// white space around it become a space (RFC 9112 section 5.2), and none is left at the ends.
#[must_use]
pub fn unfold(text: &[u8]) -> Vec<u8> {
    let lines = text.split(|byte| matches!(byte, b'\r' | b'\n'));
    let mut lines: Vec<&[u8]> = lines.collect();
    if let [_] = lines.as_slice() {
        return text.to_vec();
    }
    for line in &mut lines {
        *line = trim(line);
    }
    lines.retain(|line| !line.is_empty());
    lines.join(&b' ')
}

pub(super) const fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// Appends a header line.
pub fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
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

/// Appends the line before the data of a chunk of `len` bytes; after the data comes an empty line.
pub fn write_chunk_head(out: &mut Vec<u8>, len: u64) {
    let mut digits = [0; 16];
    let mut start = digits.len();
    let mut rest = len;
    loop {
        start -= 1;
        digits[start] = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(b"\r\n");
}

/// The reason nginx writes for a status; empty for one it has none for.
#[must_use]
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Moved Temporarily",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400..=499 => client_error_phrase(status),
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Temporarily Unavailable",
        504 => "Gateway Time-out",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "",
    }
}

fn client_error_phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Time-out",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Large",
        415 => "Unsupported Media Type",
        416 => "Requested Range Not Satisfiable",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        _ => "",
    }
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
