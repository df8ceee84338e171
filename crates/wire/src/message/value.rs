//! Field values.

use super::strictness::trim;

#[cfg(test)]
mod tests;

/// Whether a text holds a byte that is forbidden in a field value: a control byte other than a tab
/// (RFC 9110 section 5.5). A carriage return or line feed would end the field early.
#[must_use]
pub fn holds_control(text: &[u8]) -> bool {
    // The loop has no early exit, so that the compiler can vectorise it.
    text.iter()
        .fold(false, |found, &byte| found | is_control(byte))
}

/// A field value from several lines as one line: each line end and the white space around it become
/// a space (RFC 9112 section 5.2), and the ends are trimmed.
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

pub(crate) const fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// A decimal number below 2^63, of digits only (RFC 9110 section 8.6).
#[must_use]
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut length: i64 = 0;
    for byte in text {
        if !byte.is_ascii_digit() {
            return None;
        }
        length = length
            .checked_mul(10)?
            .checked_add(i64::from(byte - b'0'))?;
    }
    u64::try_from(length).ok()
}
