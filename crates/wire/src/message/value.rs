//! Field values.

use super::strictness::trim;

#[cfg(test)]
mod tests;

/// Whether a text holds a byte that is forbidden in a field value: a control byte other than a tab
/// (RFC 9110 section 5.5). A carriage return or line feed would end the field early.
#[must_use]
pub fn holds_control(text: &[u8]) -> bool {
    find_control(text).is_some()
}

/// The offset of the first control byte other than a tab. Eight bytes are looked at in one step:
/// values are short, and a loop over bytes, or a call into a vector library for each, costs more.
#[inline(always)]
pub(crate) fn find_control(text: &[u8]) -> Option<usize> {
    let (words, rest) = text.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        if let Some(index) = find_control_in(word) {
            return Some(number * 8 + index);
        }
    }
    if rest.is_empty() {
        return None;
    }
    // The last eight bytes are one word more, some of which were looked at already.
    match text.last_chunk::<8>() {
        Some(word) => find_control_in(word).map(|index| text.len() - 8 + index),
        None => text.iter().position(|byte| is_control(*byte)),
    }
}

#[inline(always)]
fn find_control_in(word: &[u8; 8]) -> Option<usize> {
    let mut marks = control_marks(u64::from_le_bytes(*word));
    while marks != 0 {
        let index = (marks.trailing_zeros() / 8) as usize;
        if is_control(word[index]) {
            return Some(index);
        }
        marks &= marks - 1;
    }
    None
}

/// The highest bit of each byte of a word that is below the space or 0x7f, and of some others that
/// stand behind such a byte.
#[inline]
pub(crate) fn control_marks(word: u64) -> u64 {
    let from_delete = word ^ (ONES * 0x7f);
    let borrows = word.wrapping_sub(ONES * 0x20) | from_delete.wrapping_sub(ONES);
    borrows & !word & (ONES << 7)
}

/// The highest bit of each byte of a word that equals `byte`, and of some others that stand behind
/// such a byte.
#[inline]
pub(crate) fn byte_marks(word: u64, byte: u8) -> u64 {
    let differing = word ^ (ONES * u64::from(byte));
    differing.wrapping_sub(ONES) & !differing & (ONES << 7)
}

/// A word of bytes that are one.
const ONES: u64 = u64::from_le_bytes([1; 8]);

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

/// Digits of the largest 64-bit number.
const DIGITS_MAX: usize = 20;

/// The decimal digits of a number.
pub struct Digits {
    bytes: [u8; DIGITS_MAX],
    start: usize,
}

impl Digits {
    /// The digits of this number.
    #[must_use]
    pub fn of(value: u64) -> Self {
        let mut digits = Digits {
            bytes: [0; DIGITS_MAX],
            start: DIGITS_MAX,
        };
        let mut rest = value;
        loop {
            digits.start -= 1;
            digits.bytes[digits.start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return digits;
            }
        }
    }

    /// The digits as text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}
