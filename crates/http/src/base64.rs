//! Base64 (RFC 4648) as clients and password files write it: padding may be missing.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Padding is taken off before, since too much of it is not refused either; bits behind the last
/// byte do not matter.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes; `None` where a byte is not of the alphabet or the length cannot be.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    decode_into(text, &mut bytes).then_some(bytes)
}

/// As [`decode`], behind what `bytes` holds. `false`: what is appended means nothing.
pub fn decode_into(text: &[u8], bytes: &mut Vec<u8>) -> bool {
    let text = text
        .strip_suffix(b"==")
        .or_else(|| text.strip_suffix(b"="))
        .unwrap_or(text);
    ENGINE.decode_vec(text, bytes).is_ok()
}

/// Encodes with padding.
pub fn encode(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests;
