//! Integers with a prefix (RFC 7541 section 5.1).

use super::CodingError;

/// Most bytes after the prefix: enough for 28 bits, more than any length or index here may have.
const CONTINUATION_BYTES_MAX: u32 = 4;

/// Reads an integer whose prefix is the low `prefix_bits` of the first byte; advances `input` past
/// it.
pub(crate) fn read(input: &mut &[u8], prefix_bits: u32) -> Result<usize, CodingError> {
    let (first, mut rest) = input.split_first().ok_or(CodingError::Truncated)?;
    let prefix_max = (1usize << prefix_bits) - 1;
    let mut value = usize::from(*first) & prefix_max;
    if value == prefix_max {
        for place in 0.. {
            if place == CONTINUATION_BYTES_MAX {
                return Err(CodingError::IntegerTooLarge);
            }
            let (byte, behind) = rest.split_first().ok_or(CodingError::TruncatedInteger)?;
            value += usize::from(byte & 0x7f) << (place * 7);
            rest = behind;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *input = rest;
    Ok(value)
}

/// Appends an integer after the bits that are set in `first`.
pub(crate) fn write(out: &mut Vec<u8>, first: u8, prefix_bits: u32, value: usize) {
    let prefix_max = (1usize << prefix_bits) - 1;
    if value < prefix_max {
        out.push(first | value as u8);
        return;
    }
    out.push(first | prefix_max as u8);
    let mut rest = value - prefix_max;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}
