//! Hexadecimal digits, written and read.

#[cfg(test)]
mod tests;

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// The two digits of a byte, in lower case.
#[must_use]
pub fn pair(byte: u8) -> [u8; 2] {
    digits(byte, LOWER)
}

/// The two digits of a byte, in upper case.
#[must_use]
pub fn pair_upper(byte: u8) -> [u8; 2] {
    digits(byte, UPPER)
}

fn digits(byte: u8, of: &[u8; 16]) -> [u8; 2] {
    [of[usize::from(byte >> 4)], of[usize::from(byte & 15)]]
}

/// Bytes as text in lower case, two digits each.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    let pairs = bytes.iter().flat_map(|byte| pair(*byte));
    pairs.map(char::from).collect()
}

/// Appends a number in lower case, without leading zeros.
pub fn write_number(out: &mut Vec<u8>, number: u64) {
    let count = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1);
    for place in (0..count).rev() {
        let digit = (number >> (place * 4)) as u8 & 15;
        out.push(LOWER[usize::from(digit)]);
    }
}

/// The value of a digit of either case.
#[must_use]
pub fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// The byte of the two digits at the start of `text`.
#[must_use]
pub fn byte(text: &[u8]) -> Option<u8> {
    let [high, low] = text.first_chunk()?;
    Some(digit(*high)? << 4 | digit(*low)?)
}

/// The bytes of a text of pairs of digits; `None` for an odd length or another byte.
#[must_use]
pub fn bytes(text: &[u8]) -> Option<Vec<u8>> {
    let even = text.len().is_multiple_of(2);
    even.then(|| text.chunks_exact(2).map(byte).collect())?
}
