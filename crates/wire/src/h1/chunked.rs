//! The chunked transfer coding (RFC 9112 section 7.1).
//!
//! ```text
//!            +------------------------------ line feed -----------------------------+
//!            v                                                                      |
//! Size -> SizeDigits -> Extension -> SizeLineFeed -> Data -> DataReturn -> DataLineFeed
//!                                         | size 0
//!                                         v
//!                   Finished <- EndLineFeed <- TrailerStart <-> Trailer, TrailerLineFeed
//! ```
//!
//! Lines must end with a carriage return and a line feed: a lone line feed is refused, as in nginx.
//! Extensions and trailers are skipped, up to a limit. Under the RFC's rules they must follow its
//! grammar, since another parser may read a malformed line differently.

use super::body::{BodyEvent, BodyState};
use crate::Span;
use crate::hex;
use crate::message::{Strictness, is_control, is_token_byte, is_white_space};

#[cfg(test)]
mod tests;

/// Why a chunked body was refused; nginx logs "client sent invalid chunked body" for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChunkError {
    /// A chunk does not begin with hexadecimal digits, or they are followed by something other than
    /// a line end, white space or a semicolon.
    InvalidSize,
    /// A chunk of 2^63 bytes or more.
    SizeOverflow,
    /// Extensions that do not follow the grammar (RFC 9112 section 7.1.1).
    InvalidExtension,
    /// A trailer that is not a header line.
    InvalidTrailer,
    /// A line that does not end with carriage return and line feed, or data longer than its chunk.
    InvalidLineEnd,
    /// Extensions of one chunk longer than `EXTENSION_BYTES_MAX`.
    ExtensionTooLong,
    /// Trailers longer than `TRAILER_BYTES_MAX`.
    TrailerTooLong,
}

/// Longest extensions of one chunk, in bytes. They are not used in practice, and cost time.
pub const EXTENSION_BYTES_MAX: u32 = 4 * 1024;

/// Longest trailer section, in bytes: the default limit of a header section.
pub const TRAILER_BYTES_MAX: u32 = 32 * 1024;

/// nginx reserves space for the end of the body below the largest file offset.
const SIZE_MAX: u64 = i64::MAX as u64 - 9;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    SizeDigits,
    Extension,
    /// The state within extensions that must follow the grammar.
    Grammar(Grammar),
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
    TrailerStart,
    TrailerName,
    Trailer,
    TrailerLineFeed,
    EndLineFeed,
    Finished,
}

/// The position in `*( BWS ";" BWS name [ BWS "=" BWS value ] )`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grammar {
    /// White space before a semicolon.
    BeforeSemicolon,
    /// White space before a name.
    BeforeName,
    Name,
    /// White space before the equals sign or the next semicolon.
    AfterName,
    /// White space before a value.
    BeforeValue,
    Value,
    Quoted,
    /// The byte after a backslash.
    QuotedPair,
    QuotedEnd,
}

/// Decodes a chunked body that comes in pieces of any size.
#[derive(Clone, Debug, Default)]
pub struct ChunkedDecoder {
    state: State,
    /// The bytes left in the chunk; its size so far while that is read.
    size: u64,
    /// The bytes skipped in the current extension or trailer section.
    skipped: u32,
    /// The trailer section as received, if it is kept.
    trailers: Option<Vec<u8>>,
    strictness: Strictness,
}

impl ChunkedDecoder {
    /// A decoder before the first byte.
    #[must_use]
    pub fn new() -> ChunkedDecoder {
        ChunkedDecoder::default()
    }

    /// A decoder before the first byte that keeps the trailer section.
    #[must_use]
    pub fn keeping_trailers() -> ChunkedDecoder {
        ChunkedDecoder {
            trailers: Some(Vec::new()),
            ..ChunkedDecoder::default()
        }
    }

    /// The same decoder with this strictness.
    #[must_use]
    pub fn under(self, strictness: Strictness) -> ChunkedDecoder {
        ChunkedDecoder { strictness, ..self }
    }

    /// The lines of the trailer section so far, if they are kept.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        self.trailers.as_deref().unwrap_or_default()
    }

    /// Whether the last chunk and the trailers have been read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// Whether a chunk or the end of the body has begun and is not complete: its sender has more
    /// to send already.
    #[must_use]
    pub fn is_inside_chunk(&self) -> bool {
        !matches!(self.state, State::Size | State::Finished)
    }

    /// Reads the next bytes of `input` up to the end of the next range of data, of the body or of
    /// the input.
    ///
    /// # Errors
    /// One [`ChunkError`] for each cause; the decoder must not be used after it.
    pub fn feed(&mut self, input: &[u8]) -> Result<BodyEvent, ChunkError> {
        let mut at = 0;
        while at < input.len() && self.state != State::Finished {
            if self.state == State::Data {
                let rest = input.len() - at;
                let room = usize::try_from(self.size).unwrap_or(usize::MAX);
                let taken = rest.min(room).min(u32::MAX as usize - at);
                self.size -= taken as u64;
                if self.size == 0 {
                    self.state = State::DataReturn;
                }
                let data = Span::new(at, at + taken);
                return Ok(BodyEvent {
                    consumed: at + taken,
                    data,
                    state: BodyState::More,
                });
            }
            self.step(input[at])?;
            at += 1;
        }
        let finished = self.state == State::Finished;
        let state = if finished {
            BodyState::Finished
        } else {
            BodyState::More
        };
        Ok(BodyEvent {
            consumed: at,
            data: Span::EMPTY,
            state,
        })
    }

    /// Takes one byte outside of data.
    fn step(&mut self, byte: u8) -> Result<(), ChunkError> {
        if let (
            Some(trailers),
            State::TrailerStart | State::TrailerName | State::Trailer | State::TrailerLineFeed,
        ) = (&mut self.trailers, self.state)
            && (self.state, byte) != (State::TrailerStart, b'\r')
        {
            // At most TRAILER_BYTES_MAX, and two bytes for each line's end. The empty line behind
            // them is none of theirs.
            trailers.push(byte);
        }
        self.state = match (self.state, byte) {
            (State::Size, _) => {
                self.size = 0;
                self.skipped = 0;
                self.add_digit(hex::digit(byte).ok_or(ChunkError::InvalidSize)?)?;
                State::SizeDigits
            }
            (State::SizeDigits, b'\r') => State::SizeLineFeed,
            (State::SizeDigits, b';' | b' ' | b'\t') => match (self.strictness, byte) {
                (Strictness::Nginx, _) => State::Extension,
                (Strictness::Rfc, b';') => State::Grammar(Grammar::BeforeName),
                (Strictness::Rfc, _) => State::Grammar(Grammar::BeforeSemicolon),
            },
            (State::SizeDigits, _) => {
                self.add_digit(hex::digit(byte).ok_or(ChunkError::InvalidSize)?)?;
                State::SizeDigits
            }
            (State::Extension, b'\r') => State::SizeLineFeed,
            (State::Grammar(grammar), b'\r') if grammar.may_end() => State::SizeLineFeed,
            (State::Grammar(grammar), _) => {
                self.skip(EXTENSION_BYTES_MAX, ChunkError::ExtensionTooLong)?;
                State::Grammar(grammar.step(byte).ok_or(ChunkError::InvalidExtension)?)
            }
            (State::Trailer, b'\r') => State::TrailerLineFeed,
            (State::TrailerStart, b'\r') => State::EndLineFeed,
            (State::DataReturn, b'\r') => State::DataLineFeed,
            (State::SizeLineFeed, b'\n') if self.size > 0 => State::Data,
            (State::SizeLineFeed, b'\n') => {
                self.skipped = 0;
                State::TrailerStart
            }
            (State::DataLineFeed, b'\n') => State::Size,
            (State::TrailerLineFeed, b'\n') => State::TrailerStart,
            (State::EndLineFeed, b'\n') => State::Finished,
            (State::Extension, byte) if byte != b'\n' => {
                self.skip(EXTENSION_BYTES_MAX, ChunkError::ExtensionTooLong)?;
                State::Extension
            }
            (State::TrailerStart | State::TrailerName | State::Trailer, byte) if byte != b'\n' => {
                self.skip(TRAILER_BYTES_MAX, ChunkError::TrailerTooLong)?;
                self.trailer(byte)?
            }
            _ => return Err(ChunkError::InvalidLineEnd),
        };
        Ok(())
    }

    /// Takes one byte of a trailer line, except for its end.
    fn trailer(&self, byte: u8) -> Result<State, ChunkError> {
        if self.strictness == Strictness::Nginx {
            return Ok(State::Trailer);
        }
        match (self.state, byte) {
            (State::TrailerName, b':') => Ok(State::Trailer),
            (State::Trailer, byte) if !is_control(byte) => Ok(State::Trailer),
            (State::TrailerStart | State::TrailerName, byte) if is_token_byte(byte) => {
                Ok(State::TrailerName)
            }
            _ => Err(ChunkError::InvalidTrailer),
        }
    }

    fn add_digit(&mut self, digit: u8) -> Result<(), ChunkError> {
        if self.size > SIZE_MAX >> 4 {
            return Err(ChunkError::SizeOverflow);
        }
        self.size = self.size << 4 | u64::from(digit);
        if self.size > SIZE_MAX {
            Err(ChunkError::SizeOverflow)
        } else {
            Ok(())
        }
    }

    fn skip(&mut self, bytes_max: u32, error: ChunkError) -> Result<(), ChunkError> {
        self.skipped += 1;
        if self.skipped > bytes_max {
            Err(error)
        } else {
            Ok(())
        }
    }
}

impl Grammar {
    /// Whether the line may end here.
    fn may_end(self) -> bool {
        matches!(self, Grammar::Name | Grammar::Value | Grammar::QuotedEnd)
    }

    /// The state after `byte`; `None` if the byte is not allowed there.
    fn step(self, byte: u8) -> Option<Grammar> {
        let white = is_white_space(byte);
        match self {
            Grammar::BeforeSemicolon | Grammar::BeforeName | Grammar::BeforeValue if white => {
                Some(self)
            }
            Grammar::AfterName if white => Some(self),
            Grammar::BeforeName | Grammar::Name if is_token_byte(byte) => Some(Grammar::Name),
            Grammar::BeforeValue | Grammar::Value if is_token_byte(byte) => Some(Grammar::Value),
            Grammar::BeforeValue if byte == b'"' => Some(Grammar::Quoted),
            Grammar::Name if white => Some(Grammar::AfterName),
            Grammar::Value | Grammar::QuotedEnd if white => Some(Grammar::BeforeSemicolon),
            Grammar::Name | Grammar::AfterName if byte == b'=' => Some(Grammar::BeforeValue),
            Grammar::Quoted if byte == b'"' => Some(Grammar::QuotedEnd),
            Grammar::Quoted if byte == b'\\' => Some(Grammar::QuotedPair),
            Grammar::Quoted | Grammar::QuotedPair if !is_control(byte) => Some(Grammar::Quoted),
            Grammar::Quoted | Grammar::QuotedPair | Grammar::BeforeName | Grammar::BeforeValue => {
                None
            }
            _ if byte == b';' => Some(Grammar::BeforeName),
            _ => None,
        }
    }
}
