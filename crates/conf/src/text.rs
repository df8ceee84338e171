//! The mapping between words (`String`s) and the bytes of files, without loss.
//!
//! A byte that is not part of valid UTF-8 becomes the private-use character U+F700 plus the byte. A
//! character of that range in a file is mapped as three such bytes, so that every text maps back to
//! exactly its original bytes. This module does not interpret the bytes.

const PRIVATE_BASE: u32 = 0xF700;
const PRIVATE_FIRST: char = '\u{F780}';
const PRIVATE_LAST: char = '\u{F7FF}';

/// The text of bytes from a file; [`bytes_of`] is the inverse.
pub fn text_of(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes)
        && bytes.is_ascii()
    {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_private(character) {
                let mut buffer = [0; 4];
                let encoded = character.encode_utf8(&mut buffer);
                text.extend(encoded.bytes().map(private));
            } else {
                text.push(character);
            }
        }
        text.extend(chunk.invalid().iter().copied().map(private));
    }
    text
}

/// The original bytes of a text from [`text_of`].
pub fn bytes_of(text: &str) -> Vec<u8> {
    if text.is_ascii() {
        return text.as_bytes().to_vec();
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        if is_private(character) {
            bytes.push((character as u32 - PRIVATE_BASE) as u8);
        } else {
            let mut buffer = [0; 4];
            bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        }
    }
    bytes
}

fn is_private(character: char) -> bool {
    (PRIVATE_FIRST..=PRIVATE_LAST).contains(&character)
}

fn private(byte: u8) -> char {
    char::from_u32(PRIVATE_BASE + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}
