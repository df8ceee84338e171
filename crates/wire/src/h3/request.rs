//! The stream of a request as its server reads it (RFC 9114 section 4.1).

use super::connection::Connection;
use super::error::{ConnectionError, ErrorCode};
use super::message::{Limits, MessageReader, Phase, Piece};
use crate::field_section::{HeadFault, RequestReader};
use crate::message::{BodyLength, Version};

/// An event of a request's stream.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestEvent<'a> {
    /// Nothing is left of the input, and the stream has not ended.
    More,
    /// A head, in the reader. `ends`: no body follows, and no [`RequestEvent::End`]. A request with
    /// a fault is answered with its status, and its stream is not read further.
    Head {
        ends: bool,
        fault: Option<HeadFault>,
    },
    /// Bytes of the body, at least one.
    Data(&'a [u8]),
    /// The fields behind the body, in the reader, which are not none.
    Trailers,
    /// The request is complete.
    End,
    /// The body is not as long as the head says; the stream is not read further.
    BodyFault,
    /// The stream must be reset (RFC 9114 section 8), and is not read further.
    Reset(ErrorCode),
}

/// The received side of a request's stream.
#[derive(Default)]
pub struct RequestStream {
    message: MessageReader,
}

impl Connection {
    /// Takes the next event at the start of `input`, which is advanced past it. `ends`: the stream
    /// ends behind `input`. `now_ms` is a monotonic time in milliseconds.
    ///
    /// # Errors
    /// An error that ends the connection.
    pub fn receive_request<'a>(
        &mut self,
        stream: &mut RequestStream,
        input: &mut &'a [u8],
        ends: bool,
        reader: &mut RequestReader,
        now_ms: u64,
    ) -> Result<RequestEvent<'a>, ConnectionError> {
        self.guard.set_now(now_ms);
        let rules = self.rules.head;
        loop {
            let phase = stream.message.phase;
            if phase == Phase::Waste {
                *input = &[];
                return Ok(RequestEvent::More);
            }
            let limits = Limits {
                section_bytes_max: rules.head_bytes_max,
                push_promise: ErrorCode::FrameUnexpected,
            };
            match stream.message.next(input, limits, &mut self.guard)? {
                Piece::More if ends => return stream.end(),
                Piece::More => return Ok(RequestEvent::More),
                Piece::Nothing => {}
                Piece::TooManyTiny => return Ok(stream.reset(ErrorCode::ExcessiveLoad)),
                Piece::TooLong => return Ok(stream.body_fault()),
                Piece::Data(data) => return Ok(RequestEvent::Data(data)),
                Piece::SectionTooLarge if phase == Phase::Head => {
                    reader.begin(Version::Http30, &rules);
                    // The head has nothing but its version.
                    let _ = reader.finish(false);
                    return Ok(stream.refuse(HeadFault::TooLarge));
                }
                Piece::SectionTooLarge => return Ok(stream.reset(ErrorCode::MessageError)),
                Piece::Section(section) if phase == Phase::Head => {
                    reader.block_bytes = section.len();
                    reader.begin(Version::Http30, &rules);
                    self.decoder.read(section, reader)?;
                    let ends = ends && input.is_empty();
                    return Ok(stream.head(reader, ends));
                }
                Piece::Section(section) => {
                    reader.begin_trailers(&rules);
                    self.decoder.read(section, reader)?;
                    if reader.is_too_large() || reader.trailers_fault().is_some() {
                        return Ok(stream.reset(ErrorCode::MessageError));
                    }
                    stream.message.phase = Phase::End;
                    if !reader.head.fields.is_empty() {
                        return Ok(RequestEvent::Trailers);
                    }
                }
            }
        }
    }
}

impl RequestStream {
    /// Whether the head has not come whole.
    #[must_use]
    pub fn awaits_head(&self) -> bool {
        self.message.phase == Phase::Head
    }

    fn head(&mut self, reader: &mut RequestReader, ends: bool) -> RequestEvent<'static> {
        let fault = match reader.finish(ends) {
            _ if reader.is_too_large() => Some(HeadFault::TooLarge),
            finished => finished.err(),
        };
        if let Some(fault) = fault {
            return self.refuse(fault);
        }
        if let BodyLength::Bytes(length) = reader.head.body {
            self.message.announced_bytes = Some(length);
        }
        self.message.phase = if ends { Phase::Waste } else { Phase::Body };
        RequestEvent::Head { ends, fault }
    }

    fn refuse(&mut self, fault: HeadFault) -> RequestEvent<'static> {
        self.message.phase = Phase::Waste;
        RequestEvent::Head {
            ends: false,
            fault: Some(fault),
        }
    }

    fn end(&mut self) -> Result<RequestEvent<'static>, ConnectionError> {
        self.message.check_end()?;
        Ok(match self.message.phase {
            Phase::Head => self.reset(ErrorCode::RequestIncomplete),
            _ if self.message.is_short() => self.body_fault(),
            Phase::Body | Phase::End | Phase::Waste => {
                self.message.phase = Phase::Waste;
                RequestEvent::End
            }
        })
    }

    fn body_fault(&mut self) -> RequestEvent<'static> {
        self.message.phase = Phase::Waste;
        RequestEvent::BodyFault
    }

    fn reset(&mut self, code: ErrorCode) -> RequestEvent<'static> {
        self.message.phase = Phase::Waste;
        RequestEvent::Reset(code)
    }
}
