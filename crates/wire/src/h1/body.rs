//! The body of a message: one reader over the ways its end may be told.

use super::chunked::{ChunkError, ChunkedDecoder};
use super::request::Framing;
use crate::Span;
use crate::message::{BodyEnd, Strictness};

/// Whether more of the body is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyState {
    /// The body goes on.
    More,
    /// The body is whole; what follows in the input is the next message.
    Finished,
}

/// What one call found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyEvent {
    /// Bytes of the input that are done with, `data` included.
    pub consumed: usize,
    /// Body bytes, as a range of the input.
    pub data: Span,
    /// Whether more is to come.
    pub state: BodyState,
}

/// Reads a body of any framing.
#[derive(Clone, Debug)]
pub struct BodyDecoder(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Length(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

impl BodyDecoder {
    /// A reader of a body framed so.
    #[must_use]
    pub fn new(framing: Framing) -> BodyDecoder {
        BodyDecoder(match framing {
            Framing::None => Kind::Length(0),
            Framing::Length(length) => Kind::Length(length),
            Framing::Chunked => Kind::Chunked(ChunkedDecoder::new()),
        })
    }

    /// The same reader, which takes chunk lines and trailers as they are read so strictly.
    #[must_use]
    pub fn under(self, strictness: Strictness) -> BodyDecoder {
        BodyDecoder(match self.0 {
            Kind::Chunked(decoder) => Kind::Chunked(decoder.under(strictness)),
            other => other,
        })
    }

    /// A reader of a response's body whose end is told so. One that ends with its connection never
    /// reports the end.
    #[must_use]
    pub fn of_response(end: BodyEnd) -> BodyDecoder {
        BodyDecoder(match end {
            BodyEnd::None => Kind::Length(0),
            BodyEnd::Length(length) => Kind::Length(length),
            BodyEnd::Marked => Kind::Chunked(ChunkedDecoder::keeping_trailers()),
            BodyEnd::UntilClose => Kind::UntilClose,
        })
    }

    /// The lines of the trailer section that have come, where they are kept.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        match &self.0 {
            Kind::Chunked(decoder) => decoder.trailers(),
            Kind::Length(_) | Kind::UntilClose => &[],
        }
    }

    /// Whether the body is whole.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Kind::Length(rest) => *rest == 0,
            Kind::Chunked(decoder) => decoder.is_finished(),
            Kind::UntilClose => false,
        }
    }

    /// Reads on in `input`; at most one range of data a call. To be called again with the rest of
    /// the input while something was consumed and the state is `More`.
    ///
    /// # Errors
    /// Only a chunked body can be malformed.
    pub fn feed(&mut self, input: &[u8]) -> Result<BodyEvent, ChunkError> {
        match &mut self.0 {
            Kind::Length(rest) => {
                let taken = usize::try_from(*rest)
                    .unwrap_or(usize::MAX)
                    .min(input.len());
                *rest -= taken as u64;
                let state = if *rest == 0 {
                    BodyState::Finished
                } else {
                    BodyState::More
                };
                Ok(BodyEvent {
                    consumed: taken,
                    data: Span::new(0, taken),
                    state,
                })
            }
            Kind::Chunked(decoder) => decoder.feed(input),
            Kind::UntilClose => Ok(BodyEvent {
                consumed: input.len(),
                data: Span::new(0, input.len()),
                state: BodyState::More,
            }),
        }
    }
}
