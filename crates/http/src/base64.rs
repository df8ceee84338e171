//! Base64 (RFC 4648), as Basic authentication needs it: padding may be missing.

/// Decodes; `None` where a byte is not of the alphabet or the length cannot be.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let text = text
        .strip_suffix(b"==")
        .or_else(|| text.strip_suffix(b"="))
        .unwrap_or(text);
    if text.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for &byte in text {
        bits = (bits << 6 | u32::from(value(byte)?)) & 0x00ff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

fn value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decodes_with_and_without_padding() {
        for (text, bytes) in [
            ("", Some("")),
            ("YQ==", Some("a")),
            ("YQ", Some("a")),
            ("dXNlcjpwYXNz", Some("user:pass")),
            ("YWI=", Some("ab")),
            ("Y", None),
            ("Y*==", None),
        ] {
            let expected = bytes.map(|text| text.as_bytes().to_vec());
            assert_eq!(decode(text.as_bytes()), expected, "{text}");
        }
    }
}
