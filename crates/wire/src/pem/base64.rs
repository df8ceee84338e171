//! The base64 of PEM, as OpenSSL decodes it: white space may be anywhere, a hyphen ends the data,
//! and padding is needed.

/// The most padding.
const PADDING_MAX: usize = 2;

/// The decoded bytes; `None` if the text is not base64.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut digits, mut padding) = (0_u32, 0_usize, 0_usize);
    for byte in text {
        let value = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'-' => break,
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => 0,
            _ => return None,
        };
        padding += usize::from(*byte == b'=');
        if padding > PADDING_MAX || (padding > 0 && *byte != b'=') {
            return None;
        }
        group = group << 6 | u32::from(value);
        digits += 1;
        if digits.is_multiple_of(4) {
            let [_, three @ ..] = group.to_be_bytes();
            bytes.extend_from_slice(&three);
            group = 0;
        }
    }
    bytes.truncate(bytes.len().saturating_sub(padding));
    digits.is_multiple_of(4).then_some(bytes)
}
