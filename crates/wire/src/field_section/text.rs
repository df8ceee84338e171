//! Texts with their length before them, plain or in the Huffman code (RFC 7541 section 5.2, RFC
//! 9204 section 4.1.2). The bit above the length's prefix says which.

use super::huffman::{self, Padding};
use super::{CodingError, integer};

pub(crate) use super::huffman::Padding as TextPadding;

/// Reads a text whose length has a prefix of `prefix_bits`, and appends it; advances `input`.
pub(crate) fn read(
    input: &mut &[u8],
    prefix_bits: u32,
    padding: Padding,
    out: &mut Vec<u8>,
) -> Result<(), CodingError> {
    let flag = 1 << prefix_bits;
    let is_huffman = input.first().is_some_and(|byte| byte & flag != 0);
    let length = integer::read(input, prefix_bits)?;
    let (text, rest) = input
        .split_at_checked(length)
        .ok_or(CodingError::Truncated)?;
    *input = rest;
    if is_huffman {
        huffman::decode_padded(text, padding, out)
    } else {
        out.extend_from_slice(text);
        Ok(())
    }
}

/// Appends a text after the bits that are set in `first`, Huffman-encoded if that is shorter.
pub(crate) fn write(out: &mut Vec<u8>, first: u8, prefix_bits: u32, text: &[u8]) {
    let encoded_bytes = huffman::encoded_bytes(text);
    if encoded_bytes < text.len() {
        integer::write(out, first | 1 << prefix_bits, prefix_bits, encoded_bytes);
        huffman::encode(text, out);
    } else {
        integer::write(out, first, prefix_bits, text.len());
        out.extend_from_slice(text);
    }
}
