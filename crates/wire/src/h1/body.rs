//! The body of a message: one reader for all kinds of framing.

use super::chunked::{ChunkError, ChunkedDecoder};
use super::request::Framing;
use crate::Span;
use crate::message::{BodyEnd, Strictness};

/// Whether more of the body is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyState {
    /// The body goes on.
    More,
    /// The body is complete; the next bytes of the input belong to the next message.
    Finished,
}

/// The result of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyEvent {
    /// The bytes of the input that were used, `data` included.
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
    /// A reader of a body with this framing.
    #[must_use]
    pub fn new(framing: Framing) -> BodyDecoder {
        BodyDecoder(match framing {
            Framing::None => Kind::Length(0),
            Framing::Length(length) => Kind::Length(length),
            Framing::Chunked => Kind::Chunked(ChunkedDecoder::new()),
        })
    }

    /// A reader of a request's body with this framing, which keeps trailers.
    #[must_use]
    pub fn of_request(framing: Framing) -> BodyDecoder {
        match framing {
            Framing::Chunked => BodyDecoder(Kind::Chunked(ChunkedDecoder::keeping_trailers())),
            framing => BodyDecoder::new(framing),
        }
    }

    /// The same reader, with this strictness for chunk lines and trailers.
    #[must_use]
    pub fn under(self, strictness: Strictness) -> BodyDecoder {
        BodyDecoder(match self.0 {
            Kind::Chunked(decoder) => Kind::Chunked(decoder.under(strictness)),
            other => other,
        })
    }

    /// A reader of a response's body with this end. A body that ends with its connection never
    /// reports its end.
    #[must_use]
    pub fn of_response(end: BodyEnd) -> BodyDecoder {
        BodyDecoder(match end {
            BodyEnd::None => Kind::Length(0),
            BodyEnd::Length(length) => Kind::Length(length),
            BodyEnd::Marked => Kind::Chunked(ChunkedDecoder::keeping_trailers()),
            BodyEnd::UntilClose => Kind::UntilClose,
        })
    }

    /// The lines of the trailer section so far, if they are kept.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        match &self.0 {
            Kind::Chunked(decoder) => decoder.trailers(),
            Kind::Length(_) | Kind::UntilClose => &[],
        }
    }

    /// Whether the body is complete.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Kind::Length(rest) => *rest == 0,
            Kind::Chunked(decoder) => decoder.is_finished(),
            Kind::UntilClose => false,
        }
    }

    /// The bytes that are to come of a body of known length; `None` for other framings.
    #[must_use]
    pub fn left_bytes(&self) -> Option<u64> {
        match &self.0 {
            Kind::Length(rest) => Some(*rest),
            Kind::Chunked(_) | Kind::UntilClose => None,
        }
    }

    /// Passes over that many bytes, at most those that are to come, of a body of known length;
    /// other framings ignore it. Returns whether the body is complete.
    pub fn skip(&mut self, bytes: u64) -> bool {
        if let Kind::Length(rest) = &mut self.0 {
            *rest = rest.saturating_sub(bytes);
        }
        self.is_finished()
    }

    /// Whether the input has ended within a chunk; `false` for other framings.
    #[must_use]
    pub fn is_inside_chunk(&self) -> bool {
        match &self.0 {
            Kind::Chunked(decoder) => decoder.is_inside_chunk(),
            Kind::Length(_) | Kind::UntilClose => false,
        }
    }

    /// Reads the next bytes of `input`; returns at most one range of data per call. Call it again
    /// with the rest of the input while bytes were consumed and the state is `More`.
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
