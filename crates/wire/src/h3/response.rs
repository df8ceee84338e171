//! The stream of a request as its client reads it: interim heads, the response, and its trailers
//! (RFC 9114 section 4.1).

use super::connection::Connection;
use super::error::{ConnectionError, ErrorCode};
use super::message::{Limits, MessageReader, Phase, Piece};
use crate::field_section::{ResponseFault, ResponseReader};
use crate::message::Version;

/// An event of a response's stream.
#[derive(Debug, PartialEq, Eq)]
pub enum ResponseEvent<'a> {
    /// Nothing is left of the input, and the stream has not ended.
    More,
    /// A head, interim or final, in the reader.
    Head,
    /// Bytes of the body, at least one.
    Data(&'a [u8]),
    /// The fields behind the body, in the reader.
    Trailers,
    /// The response is complete.
    End,
    /// The response is malformed: the stream must be reset, and is not read further.
    Malformed(ResponseFault),
}

/// The received side of a response's stream.
#[derive(Default)]
pub struct ResponseStream {
    message: MessageReader,
}

impl Connection {
    /// Takes the next event at the start of `input`, which is advanced past it. `ends`: the stream
    /// ends behind `input`. `now_ms` is a monotonic time in milliseconds.
    ///
    /// # Errors
    /// An error that ends the connection.
    pub fn receive_response<'a>(
        &mut self,
        stream: &mut ResponseStream,
        input: &mut &'a [u8],
        ends: bool,
        reader: &mut ResponseReader,
        now_ms: u64,
    ) -> Result<ResponseEvent<'a>, ConnectionError> {
        self.guard.set_now(now_ms);
        let rules = self.rules.head;
        loop {
            let phase = stream.message.phase;
            if phase == Phase::Waste {
                *input = &[];
                return Ok(ResponseEvent::More);
            }
            let limits = Limits {
                section_bytes_max: rules.head_bytes_max,
                // No push is allowed, so that every number is too high.
                push_promise: ErrorCode::IdError,
            };
            match stream.message.next(input, limits, &mut self.guard)? {
                Piece::More if ends => return stream.end(),
                Piece::More => return Ok(ResponseEvent::More),
                Piece::Nothing | Piece::TooManyTiny => {}
                Piece::SectionTooLarge => return Ok(stream.malformed(ResponseFault::TooLarge)),
                Piece::TooLong => return Ok(stream.malformed(ResponseFault::TooLong)),
                Piece::Data(data) => return Ok(ResponseEvent::Data(data)),
                Piece::Section(section) => {
                    let is_trailers = phase == Phase::Body;
                    reader.begin(Version::Http30, &rules, is_trailers);
                    self.decoder.read(section, reader)?;
                    return Ok(match reader.finish() {
                        Err(fault) => stream.malformed(fault),
                        Ok(()) if is_trailers => stream.trailers(),
                        Ok(()) => stream.head(reader),
                    });
                }
            }
        }
    }
}

impl ResponseStream {
    /// The stream of a request; `is_head`: its method is HEAD, so that the response has no body.
    #[must_use]
    pub fn new(is_head: bool) -> ResponseStream {
        let mut stream = ResponseStream::default();
        stream.message.announced_bytes = is_head.then_some(0);
        stream
    }

    fn head(&mut self, reader: &ResponseReader) -> ResponseEvent<'static> {
        let head = &reader.head;
        if !head.is_interim() {
            self.message.phase = Phase::Body;
            self.message.announced_bytes = match head.status {
                204 | 304 => Some(0),
                _ => self.message.announced_bytes.or(head.content_length()),
            };
        }
        ResponseEvent::Head
    }

    fn trailers(&mut self) -> ResponseEvent<'static> {
        self.message.phase = Phase::End;
        ResponseEvent::Trailers
    }

    fn end(&mut self) -> Result<ResponseEvent<'static>, ConnectionError> {
        self.message.check_end()?;
        let is_whole = self.message.phase != Phase::Head && !self.message.is_short();
        Ok(if is_whole {
            self.message.phase = Phase::Waste;
            ResponseEvent::End
        } else {
            self.malformed(ResponseFault::EarlyEnd)
        })
    }

    fn malformed(&mut self, fault: ResponseFault) -> ResponseEvent<'static> {
        self.message.phase = Phase::Waste;
        ResponseEvent::Malformed(fault)
    }
}
