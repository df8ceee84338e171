//! Converting bytes from one character set to another.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use turnpike_http::body_filter::{BodyFilter, Passed, Piece};
use turnpike_http::exchange::Exchange;
use turnpike_http::response::BodyFailed;
use turnpike_wire::hex;

/// What stands for a byte or character that has no counterpart.
const UNKNOWN: u8 = b'?';

/// How bytes are converted.
#[derive(Debug)]
pub(super) enum Table {
    /// Byte for byte.
    Bytes(Box<[u8; 256]>),
    /// A byte to the bytes of a character.
    ToUtf8(Vec<Box<[u8]>>),
    /// A character to its byte; ASCII stands for itself.
    FromUtf8(HashMap<char, u8>),
}

impl Table {
    /// Whether what is converted is as long as it was.
    pub(super) fn keeps_length(&self) -> bool {
        matches!(self, Self::Bytes(_))
    }

    /// Converts a piece, appending to `out`. What is left in `begun` is the beginning of a
    /// character, to be given again before the next piece.
    pub(super) fn convert(&self, begun: &mut Vec<u8>, piece: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Bytes(table) => out.extend(piece.iter().map(|byte| table[usize::from(*byte)])),
            Self::ToUtf8(table) => {
                for byte in piece {
                    out.extend_from_slice(&table[usize::from(*byte)]);
                }
            }
            Self::FromUtf8(table) => {
                begun.extend_from_slice(piece);
                let rest = from_utf8(table, begun, out);
                let done = begun.len() - rest;
                begun.drain(..done);
            }
        }
    }

    /// The text has ended: a character that is begun is none.
    pub(super) fn end(&self, begun: &[u8], out: &mut Vec<u8>) {
        if !begun.is_empty() {
            out.push(UNKNOWN);
        }
    }
}

/// Converts what is whole, and says how many bytes at the end are not.
fn from_utf8(table: &HashMap<char, u8>, mut text: &[u8], out: &mut Vec<u8>) -> usize {
    loop {
        let (valid, wrong, rest) = match std::str::from_utf8(text) {
            Ok(valid) => (valid, None, &text[text.len()..]),
            Err(error) => {
                let (valid, rest) = text.split_at(error.valid_up_to());
                // It is valid up to there.
                let valid = std::str::from_utf8(valid).unwrap_or_default();
                (valid, Some(error.error_len()), rest)
            }
        };
        for character in valid.chars() {
            from_character(table, character, out);
        }
        match wrong {
            None | Some(None) => return rest.len(),
            Some(Some(length)) => {
                out.push(UNKNOWN);
                text = rest.get(length..).unwrap_or_default();
            }
        }
    }
}

fn from_character(table: &HashMap<char, u8>, character: char, out: &mut Vec<u8>) {
    match table.get(&character) {
        Some(byte) => out.push(*byte),
        None if character.is_ascii() => out.push(character as u8),
        // Writing to a vector cannot fail.
        None => _ = write!(out, "&#{};", u32::from(character)),
    }
}

/// Converts in one direction and back, as `charset_map` says.
pub(super) struct Pair {
    pub(super) forth: Table,
    pub(super) back: Table,
}

/// What a line of a map says wrongly: the word.
pub(super) struct Invalid<'a>(pub(super) &'a str);

impl Pair {
    /// A map between two sets of bytes, of which only ASCII is known yet.
    pub(super) fn of_bytes() -> Self {
        let ascii = |byte: usize| if byte < 128 { byte as u8 } else { UNKNOWN };
        let table = || Table::Bytes(Box::new(std::array::from_fn(ascii)));
        Self {
            forth: table(),
            back: table(),
        }
    }

    /// A map between bytes and utf-8, of which only ASCII is known yet.
    pub(super) fn of_utf8() -> Self {
        let ascii = |byte: u8| if byte < 128 { byte } else { UNKNOWN };
        let table = (0..=u8::MAX).map(|byte| Box::from([ascii(byte)]));
        Self {
            forth: Table::ToUtf8(table.collect()),
            back: Table::FromUtf8(HashMap::new()),
        }
    }

    /// Adds a line.
    ///
    /// # Errors
    /// The word that is wrong.
    pub(super) fn add<'a>(&mut self, from: &'a str, to: &'a str) -> Result<(), Invalid<'a>> {
        let byte = u8::from_str_radix(from, 16).map_err(|_| Invalid(from))?;
        match (&mut self.forth, &mut self.back) {
            (Table::Bytes(forth), Table::Bytes(back)) => {
                let other = u8::from_str_radix(to, 16).map_err(|_| Invalid(to))?;
                forth[usize::from(byte)] = other;
                back[usize::from(other)] = byte;
            }
            (Table::ToUtf8(forth), Table::FromUtf8(back)) => {
                let bytes = bytes_of_hex(to).ok_or(Invalid(to))?;
                let text = std::str::from_utf8(&bytes).map_err(|_| Invalid(to))?;
                let mut characters = text.chars();
                let (Some(character), None) = (characters.next(), characters.next()) else {
                    return Err(Invalid(to));
                };
                back.insert(character, byte);
                forth[usize::from(byte)] = bytes.into();
            }
            _ => return Err(Invalid(from)),
        }
        Ok(())
    }
}

/// One to three bytes.
fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    hex::bytes(text.as_bytes()).filter(|bytes| (1..=3).contains(&bytes.len()))
}

/// The conversion of one body.
pub(super) struct Recoding {
    table: Arc<Table>,
    /// The beginning of a character whose end is in the next piece.
    begun: Vec<u8>,
}

impl Recoding {
    pub(super) fn new(table: Arc<Table>) -> Self {
        Self {
            table,
            begun: Vec::new(),
        }
    }
}

impl BodyFilter for Recoding {
    fn pass(
        &mut self,
        _exchange: &Exchange,
        piece: &mut Piece,
        out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed> {
        let rest = piece.rest();
        self.table.convert(&mut self.begun, rest, out);
        piece.take(rest.len());
        if piece.is_last() {
            self.table.end(&self.begun, out);
        }
        Ok(piece.passed(out))
    }
}
