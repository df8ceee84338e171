//! Elements of DER (ITU-T X.690) that certificates and keys use.

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const OBJECT: u8 = 0x06;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// The content of the element with this tag, and the bytes after it.
pub(crate) fn take(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (own, content, rest) = any(bytes)?;
    (own == tag).then_some((content, rest))
}

/// The element with this tag with its header, and the bytes after it.
pub(crate) fn take_whole(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (_, rest) = take(bytes, tag)?;
    bytes.split_at_checked(bytes.len() - rest.len())
}

/// Skips an element with this tag, if there is one.
pub(crate) fn skip(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    match bytes.first() {
        Some(own) if *own == tag => Some(take(bytes, tag)?.1),
        _ => Some(bytes),
    }
}

/// The tag of an element, its content, and the bytes after it.
pub(crate) fn any(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // No certificate needs a length of more than four bytes.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits
                .iter()
                .fold(0_usize, |sum, digit| sum << 8 | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The element with this tag and content.
pub(crate) fn write(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut element = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length) if length < 0x80 => element.push(length),
        _ => {
            let digits = content.len().to_be_bytes();
            let first = digits.iter().position(|digit| *digit != 0);
            let digits = &digits[first.unwrap_or(digits.len() - 1)..];
            element.push(0x80 | digits.len() as u8);
            element.extend_from_slice(digits);
        }
    }
    element.extend_from_slice(content);
    element
}

/// The bytes of a bit string without unused bits, and the bytes after it.
pub(crate) fn octets_of_bits(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (content, rest) = take(bytes, BIT_STRING)?;
    let (&unused, bits) = content.split_first()?;
    (unused == 0).then_some((bits, rest))
}

/// A non-negative number of at most 64 bits, and the bytes after it.
pub(crate) fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = take(bytes, INTEGER)?;
    let (&first, _) = digits.split_first()?;
    let significant = digits.strip_prefix(&[0]).unwrap_or(digits);
    if first & 0x80 != 0 || significant.len() > size_of::<u64>() {
        return None;
    }
    let number = significant
        .iter()
        .fold(0_u64, |sum, digit| sum << 8 | u64::from(*digit));
    Some((number, rest))
}
