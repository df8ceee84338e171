//! The receiving side of a server: reads one frame at a time, checks it and gives its event.

use super::{Connection, Event, PREFACE, Phase, RECEIVED_PAYLOAD_BYTES_MAX, Step};
use crate::allowance::Credit;
use crate::field_section::RequestReader;
use crate::h2::endpoint::Widened;
use crate::h2::error::{ConnectionError, ErrorCode};
use crate::h2::flood::{Nuisance, TINY_DATA_BYTES_MAX};
use crate::h2::frame::{Frame, FrameHeader, StreamId};
use crate::h2::header_block::HeaderBlock;
use crate::h2::stream::{Closed, Grants, Message, State, Stream};
use crate::h2::window::{WINDOW_DEFAULT, Window};
use crate::message::{BodyLength, Priority, Version};

impl Connection {
    /// Takes the next frame at the start of `input`, if it is complete. `reader` reads heads.
    /// `now_ms` is a monotonic time in milliseconds.
    ///
    /// # Errors
    /// An error that ends the connection: [`Connection::fail`] sends it to the client.
    pub fn receive<'a>(
        &mut self,
        input: &'a [u8],
        reader: &mut RequestReader,
        now_ms: u64,
    ) -> Result<Step<'a>, ConnectionError> {
        const MORE: Step<'static> = Step {
            consumed: 0,
            event: Event::More,
        };
        if self.phase == Phase::Preface {
            let Some(consumed) = preface(input)? else {
                return Ok(MORE);
            };
            self.phase = Phase::First;
            return Ok(Step {
                consumed,
                event: Event::Nothing,
            });
        }
        let next = self
            .endpoint
            .next_frame(input, RECEIVED_PAYLOAD_BYTES_MAX, now_ms)?;
        let Some((header, parsed, whole)) = next else {
            return Ok(MORE);
        };
        self.phase = Phase::Open;
        let event = self.frame(header, parsed, reader)?;
        Ok(Step {
            consumed: whole,
            event,
        })
    }

    fn frame<'a>(
        &mut self,
        header: FrameHeader,
        frame: Frame<'a>,
        reader: &mut RequestReader,
    ) -> Result<Event<'a>, ConnectionError> {
        let stream = header.stream;
        match frame {
            Frame::Data { data, ends_stream } => {
                self.data(stream, data, header.length, ends_stream)
            }
            Frame::Headers {
                fragment,
                dependency,
                ends_headers,
                ends_stream,
            } => {
                if dependency == Some(stream) {
                    return Err(ConnectionError::protocol(
                        "client sent HEADERS frame with incorrect dependency",
                    ));
                }
                self.headers(stream)?;
                if ends_headers {
                    return self.block_whole(stream, fragment, ends_stream, reader);
                }
                self.endpoint.block = Some(HeaderBlock::new(stream, fragment, ends_stream));
                Ok(Event::Nothing)
            }
            Frame::Continuation {
                fragment,
                ends_headers,
            } => self.continuation(fragment, ends_headers, reader),
            Frame::Priority { dependency } => {
                self.endpoint.guard.count(Nuisance::Priority)?;
                if dependency == stream {
                    Err(ConnectionError::protocol(
                        "client sent PRIORITY frame with incorrect dependency",
                    ))
                } else {
                    Ok(Event::Nothing)
                }
            }
            Frame::RstStream { .. } => self.rst_stream(stream),
            Frame::Settings { settings } => self.settings(settings),
            Frame::Ping { data } => {
                self.endpoint.ping(data)?;
                Ok(Event::Nothing)
            }
            Frame::GoAway { .. } => Ok(Event::GoingAway),
            Frame::WindowUpdate { increment } => self.window_update(stream, increment),
            Frame::PriorityUpdate { prioritized, value } => {
                self.priority_update(prioritized, Priority::parse(value))
            }
            Frame::SettingsAck => {
                self.is_acknowledged = true;
                self.endpoint.ignore()?;
                Ok(Event::Nothing)
            }
            Frame::PingAck | Frame::PushPromise | Frame::Unknown => {
                self.endpoint.ignore()?;
                Ok(Event::Nothing)
            }
        }
    }

    /// Checks that the stream may have a header block now; keeps the number of a new one.
    fn headers(&mut self, stream: StreamId) -> Result<(), ConnectionError> {
        if stream.is_multiple_of(2) {
            return Err(ConnectionError::protocol(
                "client sent HEADERS frame with incorrect identifier",
            ));
        }
        self.opens_stream = stream > self.endpoint.last_stream;
        if self.opens_stream {
            self.endpoint.last_stream = stream;
            return Ok(());
        }
        if self.endpoint.streams.get(stream).is_some() {
            return Ok(());
        }
        match self.endpoint.streams.closed(stream) {
            Some(Closed::ResetByPeer | Closed::ResetByUs) => Ok(()),
            Some(Closed::Ended) => Err(ConnectionError::new(
                ErrorCode::StreamClosed,
                "client sent HEADERS frame for a closed stream",
            )),
            None => Err(ConnectionError::protocol(
                "client sent HEADERS frame with incorrect identifier",
            )),
        }
    }

    fn continuation<'a>(
        &mut self,
        fragment: &[u8],
        ends_headers: bool,
        reader: &mut RequestReader,
    ) -> Result<Event<'a>, ConnectionError> {
        match self.endpoint.continuation(fragment, ends_headers)? {
            Some(block) => self.block_whole(block.stream, block.bytes(), block.ends_stream, reader),
            None => Ok(Event::Nothing),
        }
    }

    fn block_whole<'a>(
        &mut self,
        stream: StreamId,
        block: &[u8],
        ends: bool,
        reader: &mut RequestReader,
    ) -> Result<Event<'a>, ConnectionError> {
        if self.endpoint.streams.get(stream).is_some() {
            return self.trailers(stream, block, ends, reader);
        }
        if !self.opens_stream {
            self.waste(block, reader)?;
            return match self.endpoint.streams.closed(stream) {
                Some(Closed::ResetByPeer) => self.stream_error(stream, ErrorCode::StreamClosed),
                _ => Ok(Event::Nothing),
            };
        }
        if self.is_going_away {
            self.endpoint.streams.remember(stream, Closed::ResetByUs);
            self.waste(block, reader)?;
            return Ok(Event::Nothing);
        }
        if self.endpoint.streams.len() >= self.rules.streams_max as usize {
            self.waste(block, reader)?;
            self.endpoint.streams.remember(stream, Closed::ResetByUs);
            return self.stream_error(stream, ErrorCode::RefusedStream);
        }
        if !ends && !self.is_acknowledged && self.rules.stream_window < WINDOW_DEFAULT {
            // The client does not know yet how little of the body it may send.
            self.waste(block, reader)?;
            self.endpoint.streams.remember(stream, Closed::ResetByUs);
            return self.stream_error(stream, ErrorCode::RefusedStream);
        }
        reader.begin(Version::Http20, &self.rules.head);
        self.decode(block, reader)?;
        let fault = reader.finish(ends).err();
        let announced_bytes = match reader.head.body {
            BodyLength::Bytes(length) => Some(length),
            _ => None,
        };
        let early = self.endpoint.streams.take_priority(stream);
        self.endpoint.streams.open(Stream {
            id: stream,
            state: if ends {
                State::HalfClosedRemote
            } else {
                State::Open
            },
            message: match fault {
                Some(fault) if fault.is_malformed() => Message::Malformed,
                _ => Message::Begun,
            },
            send_window: Window::new(self.endpoint.peer.initial_window),
            receive_window: Window::new(self.rules.stream_window),
            grants: Grants::AsRead,
            announced_bytes,
            priority: early.or(reader.priority).unwrap_or_default(),
            opened_ms: self.endpoint.guard.now_ms(),
            tiny_data: Credit::default(),
        });
        Ok(Event::Request {
            stream,
            ends,
            fault,
        })
    }

    /// Trailers end the stream.
    fn trailers<'a>(
        &mut self,
        stream: StreamId,
        block: &[u8],
        ends: bool,
        reader: &mut RequestReader,
    ) -> Result<Event<'a>, ConnectionError> {
        reader.begin_trailers(&self.rules.head);
        self.decode(block, reader)?;
        let Some(own) = self.endpoint.streams.get(stream) else {
            return Ok(Event::Nothing);
        };
        if !own.may_receive() {
            return self.stream_error(stream, ErrorCode::StreamClosed);
        }
        if !ends || reader.trailers_fault().is_some() {
            return self.stream_error(stream, ErrorCode::ProtocolError);
        }
        Ok(match self.body_part(stream, &[], true)? {
            Event::Data { stream, .. } if !reader.head.fields.is_empty() => {
                Event::Trailers { stream }
            }
            event => event,
        })
    }

    fn waste(&mut self, block: &[u8], reader: &mut RequestReader) -> Result<(), ConnectionError> {
        reader.begin_waste(&self.rules.head);
        self.decode(block, reader)
    }

    fn decode(&mut self, block: &[u8], reader: &mut RequestReader) -> Result<(), ConnectionError> {
        reader.block_bytes = block.len();
        self.endpoint.decode(block, reader)?;
        if reader.is_too_large() {
            return Err(ConnectionError::new(
                ErrorCode::EnhanceYourCalm,
                "client sent too large header list",
            ));
        }
        Ok(())
    }

    fn data<'a>(
        &mut self,
        stream: StreamId,
        data: &'a [u8],
        length: u32,
        ends: bool,
    ) -> Result<Event<'a>, ConnectionError> {
        if self.endpoint.is_idle(stream) {
            return Err(ConnectionError::protocol(
                "client sent DATA frame for an idle stream",
            ));
        }
        self.endpoint.data_received(data, length, ends)?;
        if !ends && (1..=TINY_DATA_BYTES_MAX).contains(&data.len()) {
            self.endpoint.guard.count(Nuisance::TinyData)?;
            if let Some(own) = self.endpoint.streams.get_mut(stream)
                && !self.endpoint.guard.allows_tiny_data(&mut own.tiny_data)
            {
                return self.stream_error(stream, ErrorCode::EnhanceYourCalm);
            }
        }
        let Some(own) = self.endpoint.streams.get(stream) else {
            return match self.endpoint.streams.closed(stream) {
                Some(Closed::ResetByUs) => Ok(Event::Nothing),
                _ => self.stream_error(stream, ErrorCode::StreamClosed),
            };
        };
        if !own.may_receive() {
            return self.stream_error(stream, ErrorCode::StreamClosed);
        }
        if !self.endpoint.take_stream_window(stream, length, ends) {
            return self.stream_error(stream, ErrorCode::FlowControlError);
        }
        // Padding is not kept, so its bytes are granted again at once.
        let padding = length - data.len() as u32;
        self.grant(stream, padding);
        self.body_part(stream, data, ends)
    }

    /// A part of a body, whose total may not match the announced length.
    fn body_part<'a>(
        &mut self,
        stream: StreamId,
        data: &'a [u8],
        ends: bool,
    ) -> Result<Event<'a>, ConnectionError> {
        let Some(own) = self.endpoint.streams.get_mut(stream) else {
            return Ok(Event::Nothing);
        };
        if ends {
            own.received_last();
        }
        if own.message == Message::Malformed {
            return Ok(Event::Nothing);
        }
        if let Some(announced_bytes) = own.announced_bytes {
            let left = announced_bytes.checked_sub(data.len() as u64);
            if left.is_none_or(|left| ends && left > 0) {
                own.message = Message::Malformed;
                return if own.may_send() {
                    Ok(Event::BodyFault { stream })
                } else {
                    self.stream_error(stream, ErrorCode::ProtocolError)
                };
            }
            own.announced_bytes = left;
        }
        match (own.may_send(), ends) {
            (true, _) => Ok(Event::Data { stream, data, ends }),
            (false, true) => {
                self.endpoint.streams.close(stream, Closed::Ended);
                Ok(Event::Nothing)
            }
            (false, false) => {
                self.reset(stream, ErrorCode::NoError);
                Ok(Event::Nothing)
            }
        }
    }

    fn rst_stream<'a>(&mut self, stream: StreamId) -> Result<Event<'a>, ConnectionError> {
        if self.endpoint.is_idle(stream) {
            return Err(ConnectionError::protocol(
                "client sent RST_STREAM frame for an idle stream",
            ));
        }
        self.endpoint.count_reset(stream)?;
        if self.endpoint.streams.get(stream).is_none() {
            return Ok(Event::Nothing);
        }
        self.endpoint.streams.close(stream, Closed::ResetByPeer);
        Ok(Event::Reset { stream })
    }

    fn settings<'a>(&mut self, payload: &[u8]) -> Result<Event<'a>, ConnectionError> {
        self.endpoint.settings(payload)?;
        Ok(Event::Sendable)
    }

    fn window_update<'a>(
        &mut self,
        stream: StreamId,
        increment: u32,
    ) -> Result<Event<'a>, ConnectionError> {
        match self.endpoint.window_update(stream, increment)? {
            Widened::Sendable => Ok(Event::Sendable),
            Widened::Nothing => Ok(Event::Nothing),
            Widened::Refused(code) => self.stream_error(stream, code),
        }
    }

    fn priority_update<'a>(
        &mut self,
        stream: StreamId,
        priority: Priority,
    ) -> Result<Event<'a>, ConnectionError> {
        self.endpoint.guard.count(Nuisance::Priority)?;
        if stream == 0 {
            return Err(ConnectionError::protocol(
                "client sent PRIORITY_UPDATE frame with incorrect identifier",
            ));
        }
        if let Some(own) = self.endpoint.streams.get_mut(stream) {
            own.priority = priority;
            return Ok(Event::Prioritized { stream, priority });
        }
        if self.endpoint.is_idle(stream) {
            self.endpoint.streams.keep_priority(stream, priority);
        }
        Ok(Event::Nothing)
    }
}

/// The length of the preface at the start of `input`, once it is complete.
fn preface(input: &[u8]) -> Result<Option<usize>, ConnectionError> {
    let count = input.len().min(PREFACE.len());
    if input[..count] != PREFACE[..count] {
        return Err(ConnectionError::protocol("invalid connection preface"));
    }
    Ok((count == PREFACE.len()).then_some(count))
}
