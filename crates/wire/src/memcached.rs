//! Answers of memcached's text protocol to `get` (its `doc/protocol.txt`): a line with the value's
//! key, flags and length, the value, and a line that says `END`; that line alone where there is no
//! such key.
//!
//! [`ValueReader`] takes bytes in pieces of any size and stores none, so that no answer can make it
//! grow.

use std::fmt;

use crate::message::decimal;

#[cfg(test)]
mod tests;

/// What stands behind a value.
const TRAILER: &[u8] = b"\r\nEND\r\n";

/// The line before a value, or in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// There is no such key.
    NotFound,
    /// The value's key, flags and length in bytes, as written.
    Value {
        key: &'a [u8],
        flags: &'a [u8],
        length: &'a [u8],
    },
    /// An error, or no such line at all.
    Other,
}

impl Line<'_> {
    /// Reads a line, without its line feed.
    #[must_use]
    pub fn parse(line: &[u8]) -> Line<'_> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line == b"END" {
            return Line::NotFound;
        }
        let Some(rest) = line.strip_prefix(b"VALUE ") else {
            return Line::Other;
        };
        let mut words = rest.splitn(3, |byte| *byte == b' ');
        Line::Value {
            key: words.next().unwrap_or_default(),
            flags: words.next().unwrap_or_default(),
            length: words.next().unwrap_or_default(),
        }
    }
}

/// A value that is not followed by what has to stand behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTrailer;

impl fmt::Display for InvalidTrailer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("memcached sent invalid trailer")
    }
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The line.
    Line,
    /// So many bytes of the value.
    Value(u64),
    /// So many bytes of what stands behind it have come.
    Trailer(usize),
    /// Nothing more.
    Nothing,
}

/// Leaves line and value of an answer, and takes off what stands behind them.
#[derive(Clone, Debug)]
pub struct ValueReader {
    awaited: Awaited,
    /// Whether more came than belongs to the answer.
    surplus: bool,
}

impl Default for ValueReader {
    fn default() -> Self {
        Self::new()
    }
}

impl ValueReader {
    /// A reader at the beginning of an answer.
    #[must_use]
    pub fn new() -> Self {
        Self {
            awaited: Awaited::Line,
            surplus: false,
        }
    }

    /// Takes what has come behind the first `from` bytes of `bytes`, which may hold the beginning
    /// of the line.
    ///
    /// # Errors
    /// [`InvalidTrailer`] where something else stands behind the value.
    pub fn take(&mut self, bytes: &mut Vec<u8>, from: usize) -> Result<(), InvalidTrailer> {
        let mut at = from;
        if self.awaited == Awaited::Line {
            let Some(feed) = memchr::memchr(b'\n', bytes) else {
                return Ok(());
            };
            at = feed + 1;
            self.awaited = match Line::parse(bytes.get(..feed).unwrap_or_default()) {
                Line::Value { length, .. } => match decimal(length) {
                    Some(length) => Awaited::Value(length),
                    // Whoever reads the head refuses it.
                    None => Awaited::Nothing,
                },
                Line::NotFound | Line::Other => Awaited::Nothing,
            };
        }
        if let Awaited::Value(left) = self.awaited {
            let here = (bytes.len() - at) as u64;
            let taken = left.min(here);
            at += taken as usize;
            self.awaited = match left - taken {
                0 => Awaited::Trailer(0),
                left => Awaited::Value(left),
            };
        }
        let mut rest = bytes.get(at..).unwrap_or_default();
        if let Awaited::Trailer(seen) = self.awaited {
            let expected = TRAILER.get(seen..).unwrap_or_default();
            let length = expected.len().min(rest.len());
            let (trailer, behind) = rest.split_at(length);
            if trailer != &expected[..length] {
                return Err(InvalidTrailer);
            }
            rest = behind;
            self.awaited = if length == expected.len() {
                Awaited::Nothing
            } else {
                Awaited::Trailer(seen + length)
            };
        }
        self.surplus |= !rest.is_empty();
        bytes.truncate(at);
        Ok(())
    }

    /// Whether the last byte of the answer has come.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.awaited == Awaited::Nothing
    }

    /// Whether all of the value has come.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.awaited, Awaited::Trailer(_) | Awaited::Nothing)
    }

    /// Whether the connection can carry another request.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.has_ended() && !self.surplus
    }
}
