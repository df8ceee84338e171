//! The receiving side of a client: reads one frame at a time, checks it and gives its event.

use super::{ClientConnection, ServerEvent, ServerStep};
use crate::field_section::{ResponseFault, ResponseReader};
use crate::h2::endpoint::Widened;
use crate::h2::error::{ConnectionError, ErrorCode};
use crate::h2::frame::{Frame, FrameHeader, PAYLOAD_BYTES_DEFAULT, StreamId};
use crate::h2::header_block::HeaderBlock;
use crate::h2::stream::{Closed, Message};
use crate::message::Version;

impl ClientConnection {
    /// Takes the next frame at the start of `input`, if it is complete. `reader` reads heads and
    /// trailers. `now_ms` is a monotonic time in milliseconds.
    ///
    /// # Errors
    /// An error that ends the connection: [`ClientConnection::fail`] sends it to the server.
    pub fn receive<'a>(
        &mut self,
        input: &'a [u8],
        reader: &mut ResponseReader,
        now_ms: u64,
    ) -> Result<ServerStep<'a>, ConnectionError> {
        let next = self
            .endpoint
            .next_frame(input, PAYLOAD_BYTES_DEFAULT, now_ms)?;
        let Some((header, frame, consumed)) = next else {
            return Ok(ServerStep {
                consumed: 0,
                event: ServerEvent::More,
            });
        };
        let event = self.frame(header, frame, reader)?;
        Ok(ServerStep { consumed, event })
    }

    fn frame<'a>(
        &mut self,
        header: FrameHeader,
        frame: Frame<'a>,
        reader: &mut ResponseReader,
    ) -> Result<ServerEvent<'a>, ConnectionError> {
        let stream = header.stream;
        Ok(match frame {
            Frame::Data { data, ends_stream } => {
                self.data(stream, data, header.length, ends_stream)?
            }
            Frame::Headers {
                fragment,
                ends_headers: true,
                ends_stream,
                ..
            } => self.block_whole(stream, fragment, ends_stream, reader)?,
            Frame::Headers {
                fragment,
                ends_stream,
                ..
            } => {
                self.endpoint.block = Some(HeaderBlock::new(stream, fragment, ends_stream));
                ServerEvent::Nothing
            }
            Frame::Continuation {
                fragment,
                ends_headers,
            } => match self.endpoint.continuation(fragment, ends_headers)? {
                Some(block) => {
                    self.block_whole(block.stream, block.bytes(), block.ends_stream, reader)?
                }
                None => ServerEvent::Nothing,
            },
            Frame::RstStream { code } => self.rst_stream(stream, code)?,
            Frame::Settings { settings } => {
                self.endpoint.settings(settings)?;
                ServerEvent::Sendable
            }
            Frame::Ping { data } => {
                self.endpoint.ping(data)?;
                ServerEvent::Nothing
            }
            Frame::GoAway { last_stream, code } => {
                self.is_going_away = true;
                ServerEvent::GoingAway { last_stream, code }
            }
            Frame::WindowUpdate { increment } => {
                match self.endpoint.window_update(stream, increment)? {
                    Widened::Sendable => ServerEvent::Sendable,
                    Widened::Nothing => ServerEvent::Nothing,
                    Widened::Refused(code) => {
                        self.endpoint.reset(stream, code);
                        let fault = ResponseFault::Window;
                        ServerEvent::Malformed { stream, fault }
                    }
                }
            }
            Frame::Priority { .. }
            | Frame::PriorityUpdate { .. }
            | Frame::SettingsAck
            | Frame::PingAck
            | Frame::PushPromise
            | Frame::Unknown => {
                self.endpoint.ignore()?;
                ServerEvent::Nothing
            }
        })
    }

    fn block_whole<'a>(
        &mut self,
        stream: StreamId,
        block: &[u8],
        ends: bool,
        reader: &mut ResponseReader,
    ) -> Result<ServerEvent<'a>, ConnectionError> {
        if self.endpoint.is_idle(stream) {
            return Err(unknown_stream());
        }
        let open = self.endpoint.streams.get(stream);
        let is_answered = open.is_some_and(|own| own.message == Message::Begun);
        reader.begin(Version::Http20, &self.rules, is_answered);
        // The table must match the server's, so every block is decoded.
        self.endpoint.decode(block, reader)?;
        let Some(own) = self.endpoint.streams.get_mut(stream) else {
            return Ok(ServerEvent::Nothing);
        };
        if !own.may_receive() {
            return Ok(self.malformed(stream, ResponseFault::BehindEnd));
        }
        if let Err(fault) = reader.finish() {
            return Ok(self.malformed(stream, fault));
        }
        if is_answered {
            return Ok(if ends {
                self.end(stream, ServerEvent::Trailers { stream })
            } else {
                self.malformed(stream, ResponseFault::TrailersWithoutEnd)
            });
        }
        let head = &reader.head;
        let event = ServerEvent::Head { stream, ends };
        if head.is_interim() {
            return Ok(if ends {
                self.malformed(stream, ResponseFault::EarlyEnd)
            } else {
                event
            });
        }
        own.message = Message::Begun;
        own.announced_bytes = match head.status {
            204 | 304 => Some(0),
            _ => own.announced_bytes.or(head.content_length()),
        };
        Ok(if ends { self.end(stream, event) } else { event })
    }

    fn data<'a>(
        &mut self,
        stream: StreamId,
        data: &'a [u8],
        length: u32,
        ends: bool,
    ) -> Result<ServerEvent<'a>, ConnectionError> {
        if self.endpoint.is_idle(stream) {
            return Err(unknown_stream());
        }
        self.endpoint.data_received(data, length, ends)?;
        let Some(own) = self.endpoint.streams.get_mut(stream) else {
            return Ok(ServerEvent::Nothing);
        };
        if !own.may_receive() {
            return Ok(self.malformed(stream, ResponseFault::BehindEnd));
        }
        if own.message == Message::Awaited {
            return Ok(self.malformed(stream, ResponseFault::DataBeforeHead));
        }
        if !self.endpoint.take_stream_window(stream, length, ends) {
            return Ok(self.malformed(stream, ResponseFault::Window));
        }
        let Some(own) = self.endpoint.streams.get_mut(stream) else {
            return Ok(ServerEvent::Nothing);
        };
        if let Some(announced_bytes) = &mut own.announced_bytes {
            let Some(left) = announced_bytes.checked_sub(data.len() as u64) else {
                return Ok(self.malformed(stream, ResponseFault::TooLong));
            };
            *announced_bytes = left;
        }
        let event = ServerEvent::Data { stream, data, ends };
        Ok(if ends { self.end(stream, event) } else { event })
    }

    /// The server's last frame of a stream has come.
    fn end<'a>(&mut self, stream: StreamId, event: ServerEvent<'a>) -> ServerEvent<'a> {
        let Some(own) = self.endpoint.streams.get_mut(stream) else {
            return event;
        };
        // In an answer to HEAD the length is not that of a body in this response.
        if own.announced_bytes.is_some_and(|left| left > 0) {
            return self.malformed(stream, ResponseFault::EarlyEnd);
        }
        if own.received_last() {
            self.endpoint.streams.close(stream, Closed::Ended);
        }
        event
    }

    fn rst_stream<'a>(
        &mut self,
        stream: StreamId,
        code: ErrorCode,
    ) -> Result<ServerEvent<'a>, ConnectionError> {
        if self.endpoint.is_idle(stream) {
            return Err(unknown_stream());
        }
        self.endpoint.count_reset(stream)?;
        let streams = &mut self.endpoint.streams;
        let has_ended = match (streams.get(stream), streams.closed(stream)) {
            (Some(own), _) => !own.may_receive(),
            (None, Some(Closed::Ended)) => true,
            (None, Some(Closed::ResetByPeer)) => return Err(unknown_stream()),
            (None, _) => return Ok(ServerEvent::Nothing),
        };
        if streams.get(stream).is_some() {
            streams.close(stream, Closed::ResetByPeer);
        } else {
            streams.remember(stream, Closed::ResetByPeer);
        }
        // A server that has answered may refuse the rest of a request (RFC 9113 section 8.1). With
        // any other code its answer must not be used.
        Ok(if has_ended && code == ErrorCode::NoError {
            ServerEvent::Nothing
        } else {
            ServerEvent::Reset { stream, code }
        })
    }

    /// Resets a stream after a stream error by the server (RFC 9113 section 5.4.2).
    fn malformed<'a>(&mut self, stream: StreamId, fault: ResponseFault) -> ServerEvent<'a> {
        self.endpoint.reset(stream, ErrorCode::ProtocolError);
        ServerEvent::Malformed { stream, fault }
    }
}

fn unknown_stream() -> ConnectionError {
    ConnectionError::protocol("client sent frame for unknown stream")
}
