//! Variable-length integers of QUIC and HTTP/3 (RFC 9000 section 16). The first two bits give the
//! length: 1, 2, 4 or 8 bytes.

#[cfg(test)]
mod tests;

/// The largest integer: 62 bits.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// The bytes of the longest integer.
pub const VARINT_BYTES_MAX: usize = 8;

/// Reads the integer at the start of `input` and advances `input` past it; `None`, without a step,
/// if it is not complete. One in more bytes than it needs is taken, as the RFC has it.
#[must_use]
pub fn read(input: &mut &[u8]) -> Option<u64> {
    let first = *input.first()?;
    let (bytes, rest) = input.split_at_checked(encoded_bytes(first))?;
    let value = bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte));
    *input = rest;
    // The bits of the length are the highest ones.
    Some(value & (VARINT_MAX >> (62 - (bytes.len() * 8 - 2))))
}

/// The bytes of an integer with this first byte.
#[must_use]
pub fn encoded_bytes(first: u8) -> usize {
    1 << (first >> 6)
}

/// The bytes that an integer takes at least.
#[must_use]
pub fn size_bytes(value: u64) -> usize {
    match value {
        ..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends an integer in as few bytes as it needs. One above [`VARINT_MAX`], which none of the
/// callers has, is written as the largest.
pub fn write(out: &mut Vec<u8>, value: u64) {
    debug_assert!(value <= VARINT_MAX, "{value} has more than 62 bits");
    let value = value.min(VARINT_MAX);
    let size = size_bytes(value);
    let length = u64::from(size.trailing_zeros());
    let bytes = (value | length << (size * 8 - 2)).to_be_bytes();
    out.extend_from_slice(&bytes[bytes.len() - size..]);
}
