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
//! Lines end with a carriage return and a line feed, both: a lone line feed is refused, as in
//! nginx. Extensions and trailers are passed over, up to a limit.

use super::body::{BodyEvent, BodyState};
use crate::Span;

#[cfg(test)]
mod tests;

/// Why a chunked body was refused; nginx says "client sent invalid chunked body" to all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChunkError {
    /// A chunk does not begin with hexadecimal digits, or they are followed by something else
    /// than a line end, white space or a semicolon.
    InvalidSize,
    /// A chunk of 2^63 bytes or more.
    SizeOverflow,
    /// A line that does not end with carriage return and line feed, or data longer than its chunk.
    InvalidLineEnd,
    /// Extensions of one chunk longer than `EXTENSION_BYTES_MAX`.
    ExtensionTooLong,
    /// Trailers longer than `TRAILER_BYTES_MAX`.
    TrailerTooLong,
}

/// Longest extensions of one chunk in bytes; nobody uses any, and they cost time and no body.
pub const EXTENSION_BYTES_MAX: u32 = 4 * 1024;

/// Longest trailer section in bytes: as much as a header section may take by default.
pub const TRAILER_BYTES_MAX: u32 = 32 * 1024;

/// nginx keeps room for the end of the body below the largest file offset.
const SIZE_MAX: u64 = i64::MAX as u64 - 9;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    SizeDigits,
    Extension,
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
    TrailerStart,
    Trailer,
    TrailerLineFeed,
    EndLineFeed,
    Finished,
}

/// Takes a chunked body apart, in whatever pieces it comes.
#[derive(Clone, Debug, Default)]
pub struct ChunkedDecoder {
    state: State,
    /// Bytes left in the chunk, or its size while that is read.
    size: u64,
    /// Bytes passed over in the extension or trailer section at hand.
    skipped: u32,
    /// The trailer section as it came, where it is wanted.
    trailers: Option<Vec<u8>>,
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

    /// The lines of the trailer section that have come, where they are kept.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        self.trailers.as_deref().unwrap_or_default()
    }

    /// Whether the last chunk and the trailers have been read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// Reads on in `input` up to the end of the next range of data, of the body or of the input.
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
        if let (Some(trailers), State::TrailerStart | State::Trailer | State::TrailerLineFeed) =
            (&mut self.trailers, self.state)
        {
            // At most TRAILER_BYTES_MAX, and two for each line's end.
            trailers.push(byte);
        }
        self.state = match (self.state, byte) {
            (State::Size, _) => {
                self.size = 0;
                self.skipped = 0;
                self.add_digit(hex_digit(byte).ok_or(ChunkError::InvalidSize)?)?;
                State::SizeDigits
            }
            (State::SizeDigits, b'\r') => State::SizeLineFeed,
            (State::SizeDigits, b';' | b' ' | b'\t') => State::Extension,
            (State::SizeDigits, _) => {
                self.add_digit(hex_digit(byte).ok_or(ChunkError::InvalidSize)?)?;
                State::SizeDigits
            }
            (State::Extension, b'\r') => State::SizeLineFeed,
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
            (State::TrailerStart | State::Trailer, byte) if byte != b'\n' => {
                self.skip(TRAILER_BYTES_MAX, ChunkError::TrailerTooLong)?;
                State::Trailer
            }
            _ => return Err(ChunkError::InvalidLineEnd),
        };
        Ok(())
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

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
