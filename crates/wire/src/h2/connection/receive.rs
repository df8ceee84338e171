//! What comes: one frame at a time, whether it fits where it stands, and what it means.

use super::{Connection, Event, PREFACE, Phase, RECEIVED_PAYLOAD_BYTES_MAX, Step};
use crate::h2::error::{ConnectionError, ErrorCode};
use crate::h2::flood::Nuisance;
use crate::h2::frame::{self, Frame, FrameHeader, FrameKind, HEADER_BYTES, StreamId};
use crate::h2::header_block::HeaderBlock;
use crate::h2::hpack::HpackError;
use crate::h2::priority::Priority;
use crate::h2::request::RequestReader;
use crate::h2::stream::{Closed, Stream};
use crate::h2::window::{WINDOW_MAX, Window};
use crate::message::BodyLength;

/// The connection's window is widened again when it has become so small.
const RECEIVE_WINDOW_MIN: u32 = WINDOW_MAX / 4;

impl Connection {
    /// Takes the next frame at the start of `input`, if it is whole. Heads are read by `reader`.
    /// `now_ms` is the time by any clock that does not go back, in milliseconds.
    ///
    /// # Errors
    /// What ends the connection: [`Connection::fail`] tells the client.
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
        let Some(header) = FrameHeader::parse(input) else {
            return Ok(MORE);
        };
        self.check(header)?;
        let whole = HEADER_BYTES + header.length as usize;
        let Some(payload) = input.get(HEADER_BYTES..whole) else {
            return Ok(MORE);
        };
        self.guard.set_now(now_ms);
        let parsed = Frame::parse(header, payload)?;
        let useful_bytes = match parsed {
            Frame::Data { data, .. } => data.len(),
            Frame::Headers { fragment, .. } | Frame::Continuation { fragment, .. } => {
                fragment.len()
            }
            _ => 0,
        };
        self.guard.weigh(whole, useful_bytes)?;
        self.phase = Phase::Open;
        let event = self.frame(header, parsed, reader)?;
        Ok(Step {
            consumed: whole,
            event,
        })
    }

    /// Looks at a frame's header: it may be refused before its payload has come.
    fn check(&self, header: FrameHeader) -> Result<(), ConnectionError> {
        if header.length > RECEIVED_PAYLOAD_BYTES_MAX {
            return Err(ConnectionError::size("client sent too large frame"));
        }
        let continued = self.block.as_ref().map(|block| block.stream);
        match (continued, header.kind) {
            (None, FrameKind::Continuation) => Err(ConnectionError::protocol(
                "client sent unexpected CONTINUATION frame",
            )),
            (Some(stream), FrameKind::Continuation) if stream != header.stream => {
                Err(ConnectionError::protocol(
                    "client sent CONTINUATION frame with incorrect identifier",
                ))
            }
            (Some(_), kind) if kind != FrameKind::Continuation => Err(ConnectionError::protocol(
                "client sent inappropriate frame while CONTINUATION was expected",
            )),
            _ => self.check_stream(header),
        }
    }

    /// Whether a frame is of a stream, or of the connection, as its kind needs it.
    fn check_stream(&self, header: FrameHeader) -> Result<(), ConnectionError> {
        let of_connection = header.stream == 0;
        let reason = match header.kind {
            FrameKind::Settings if !of_connection => "client sent SETTINGS frame for a stream",
            FrameKind::Ping if !of_connection => "client sent PING frame for a stream",
            FrameKind::GoAway if !of_connection => "client sent GOAWAY frame for a stream",
            FrameKind::PriorityUpdate if !of_connection => {
                "client sent PRIORITY_UPDATE frame for a stream"
            }
            FrameKind::Data if of_connection => "client sent DATA frame with incorrect identifier",
            FrameKind::Headers if of_connection => {
                "client sent HEADERS frame with incorrect identifier"
            }
            FrameKind::Priority if of_connection => {
                "client sent PRIORITY frame with incorrect identifier"
            }
            FrameKind::RstStream if of_connection => {
                "client sent RST_STREAM frame with incorrect identifier"
            }
            FrameKind::PushPromise => "client sent PUSH_PROMISE frame",
            _ => return Ok(()),
        };
        Err(ConnectionError::protocol(reason))
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
                self.headers(stream)?;
                if dependency == Some(stream) {
                    self.stream_error(stream, ErrorCode::ProtocolError)?;
                    self.streams.remember(stream, Closed::ResetByUs);
                    self.opens_stream = false;
                }
                if ends_headers {
                    return self.block_whole(stream, fragment, ends_stream, reader);
                }
                self.block = Some(HeaderBlock::new(stream, fragment, ends_stream));
                Ok(Event::Nothing)
            }
            Frame::Continuation {
                fragment,
                ends_headers,
            } => self.continuation(fragment, ends_headers, reader),
            Frame::Priority { dependency } => {
                self.guard.count(Nuisance::Priority)?;
                match dependency == stream {
                    true => self.stream_error(stream, ErrorCode::ProtocolError),
                    false => Ok(Event::Nothing),
                }
            }
            Frame::RstStream { .. } => self.rst_stream(stream),
            Frame::Settings { settings } => self.settings(settings),
            Frame::Ping { data } => {
                self.guard.count(Nuisance::Ping)?;
                frame::write_ping_ack(&mut self.output, data);
                Ok(Event::Nothing)
            }
            Frame::GoAway { .. } => Ok(Event::GoingAway),
            Frame::WindowUpdate { increment } => self.window_update(stream, increment),
            Frame::PriorityUpdate { prioritized, value } => {
                self.priority_update(prioritized, Priority::parse(value))
            }
            Frame::SettingsAck | Frame::PingAck | Frame::PushPromise | Frame::Unknown => {
                self.guard.count(Nuisance::Empty)?;
                Ok(Event::Nothing)
            }
        }
    }

    /// Whether the stream may have a header block now; a new one is noted.
    fn headers(&mut self, stream: StreamId) -> Result<(), ConnectionError> {
        if stream.is_multiple_of(2) {
            return Err(ConnectionError::protocol(
                "client sent HEADERS frame with incorrect identifier",
            ));
        }
        self.opens_stream = stream > self.last_stream;
        if self.opens_stream {
            self.last_stream = stream;
            return Ok(());
        }
        if self.streams.get(stream).is_some() {
            return Ok(());
        }
        match self.streams.closed(stream) {
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
        self.guard.count(Nuisance::Continuation)?;
        let Some(mut block) = self.block.take() else {
            return Ok(Event::Nothing);
        };
        block.add(fragment)?;
        if ends_headers {
            return self.block_whole(block.stream, block.bytes(), block.ends_stream, reader);
        }
        self.block = Some(block);
        Ok(Event::Nothing)
    }

    fn block_whole<'a>(
        &mut self,
        stream: StreamId,
        block: &[u8],
        ends: bool,
        reader: &mut RequestReader,
    ) -> Result<Event<'a>, ConnectionError> {
        if self.streams.get(stream).is_some() {
            return self.trailers(stream, block, ends, reader);
        }
        if !self.opens_stream {
            self.waste(block, reader)?;
            return match self.streams.closed(stream) {
                Some(Closed::ResetByPeer) => self.stream_error(stream, ErrorCode::StreamClosed),
                _ => Ok(Event::Nothing),
            };
        }
        if self.is_going_away {
            self.streams.remember(stream, Closed::ResetByUs);
            self.waste(block, reader)?;
            return Ok(Event::Nothing);
        }
        if self.streams.len() >= self.rules.streams_max as usize {
            self.waste(block, reader)?;
            self.streams.remember(stream, Closed::ResetByUs);
            return self.stream_error(stream, ErrorCode::RefusedStream);
        }
        reader.begin(&self.rules.head);
        self.decode(block, reader)?;
        let fault = reader.finish(ends).err();
        let announced_bytes = match reader.head.body {
            BodyLength::Bytes(length) => Some(length),
            _ => None,
        };
        let early = self.streams.take_priority(stream);
        self.streams.open(Stream {
            id: stream,
            is_remote_closed: ends,
            is_local_closed: false,
            is_malformed: fault.is_some_and(|fault| fault.is_malformed()),
            send_window: Window::new(self.peer.initial_window),
            receive_window: Window::new(self.rules.stream_window),
            announced_bytes,
            priority: early.or(reader.priority).unwrap_or_default(),
        });
        Ok(Event::Request {
            stream,
            ends,
            fault,
        })
    }

    /// Trailers: nobody here wants them, but they end the stream.
    fn trailers<'a>(
        &mut self,
        stream: StreamId,
        block: &[u8],
        ends: bool,
        reader: &mut RequestReader,
    ) -> Result<Event<'a>, ConnectionError> {
        reader.begin_trailers(&self.rules.head);
        self.decode(block, reader)?;
        let Some(own) = self.streams.get(stream) else {
            return Ok(Event::Nothing);
        };
        if own.is_remote_closed {
            return self.stream_error(stream, ErrorCode::StreamClosed);
        }
        if !ends || reader.trailers_fault().is_some() {
            return self.stream_error(stream, ErrorCode::ProtocolError);
        }
        self.body_part(stream, &[], true)
    }

    fn waste(&mut self, block: &[u8], reader: &mut RequestReader) -> Result<(), ConnectionError> {
        reader.begin_waste(&self.rules.head);
        self.decode(block, reader)
    }

    fn decode(&mut self, block: &[u8], reader: &mut RequestReader) -> Result<(), ConnectionError> {
        reader.block_bytes = block.len();
        self.decoder
            .decode(block, reader)
            .map_err(|error| match error {
                HpackError::TruncatedInteger => {
                    ConnectionError::size("client sent HEADERS frame with incorrect length")
                }
                _ => ConnectionError::new(
                    ErrorCode::CompressionError,
                    "client sent invalid header block",
                ),
            })?;
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
        if self.is_idle(stream) {
            return Err(ConnectionError::protocol(
                "client sent DATA frame for an idle stream",
            ));
        }
        self.connection_received(length)?;
        if data.is_empty() && !ends {
            self.guard.count(Nuisance::Empty)?;
        }
        let Some(own) = self.streams.get_mut(stream) else {
            return match self.streams.closed(stream) {
                Some(Closed::ResetByUs) => Ok(Event::Nothing),
                _ => self.stream_error(stream, ErrorCode::StreamClosed),
            };
        };
        if own.is_remote_closed {
            return self.stream_error(stream, ErrorCode::StreamClosed);
        }
        if own.receive_window.available() < length as usize {
            return self.stream_error(stream, ErrorCode::FlowControlError);
        }
        own.receive_window.take(length as usize);
        // Padding is not kept: it need not be read by anybody to be granted again.
        let padding = length - data.len() as u32;
        self.grant(stream, padding);
        self.body_part(stream, data, ends)
    }

    /// A part of a body, which may be more or less than was announced.
    fn body_part<'a>(
        &mut self,
        stream: StreamId,
        data: &'a [u8],
        ends: bool,
    ) -> Result<Event<'a>, ConnectionError> {
        let Some(own) = self.streams.get_mut(stream) else {
            return Ok(Event::Nothing);
        };
        own.is_remote_closed = ends;
        if own.is_malformed {
            return Ok(Event::Nothing);
        }
        if let Some(announced_bytes) = own.announced_bytes {
            let left = announced_bytes.checked_sub(data.len() as u64);
            if left.is_none_or(|left| ends && left > 0) {
                own.is_malformed = true;
                return match own.is_local_closed {
                    true => self.stream_error(stream, ErrorCode::ProtocolError),
                    false => Ok(Event::BodyFault { stream }),
                };
            }
            own.announced_bytes = left;
        }
        match (own.is_local_closed, ends) {
            (false, _) => Ok(Event::Data { stream, data, ends }),
            (true, true) => {
                self.streams.close(stream, Closed::Ended);
                Ok(Event::Nothing)
            }
            (true, false) => {
                self.reset(stream, ErrorCode::NoError);
                Ok(Event::Nothing)
            }
        }
    }

    fn connection_received(&mut self, length: u32) -> Result<(), ConnectionError> {
        if self.receive_window.available() < length as usize {
            return Err(ConnectionError::flow_control(
                "client violated connection flow control",
            ));
        }
        self.receive_window.take(length as usize);
        let left = self.receive_window.available() as u32;
        if left < RECEIVE_WINDOW_MIN && self.receive_window.widen(WINDOW_MAX - left).is_ok() {
            frame::write_window_update(&mut self.output, 0, WINDOW_MAX - left);
        }
        Ok(())
    }

    fn rst_stream<'a>(&mut self, stream: StreamId) -> Result<Event<'a>, ConnectionError> {
        if self.is_idle(stream) {
            return Err(ConnectionError::protocol(
                "client sent RST_STREAM frame for an idle stream",
            ));
        }
        self.guard.count(Nuisance::Reset)?;
        if self.streams.get(stream).is_none() {
            return Ok(Event::Nothing);
        }
        self.streams.close(stream, Closed::ResetByPeer);
        Ok(Event::Reset { stream })
    }

    fn settings<'a>(&mut self, payload: &[u8]) -> Result<Event<'a>, ConnectionError> {
        self.guard.count(Nuisance::Settings)?;
        let old_window = self.peer.initial_window;
        self.peer.apply(payload)?;
        let new_window = self.peer.initial_window;
        for stream in self.streams.iter_mut() {
            let changed = stream.send_window.initial_changed(old_window, new_window);
            changed.map_err(|_| {
                ConnectionError::flow_control("client violated flow control by INITIAL_WINDOW_SIZE")
            })?;
        }
        self.encoder.allow_table(self.peer.header_table_bytes);
        frame::write_settings_ack(&mut self.output);
        Ok(Event::Sendable)
    }

    fn window_update<'a>(
        &mut self,
        stream: StreamId,
        increment: u32,
    ) -> Result<Event<'a>, ConnectionError> {
        self.guard.count(Nuisance::WindowUpdate)?;
        if stream == 0 {
            if increment == 0 {
                return Err(ConnectionError::protocol(
                    "client sent WINDOW_UPDATE frame with incorrect window increment 0",
                ));
            }
            self.send_window.widen(increment).map_err(|_| {
                ConnectionError::flow_control("client violated connection flow control")
            })?;
            return Ok(Event::Sendable);
        }
        if self.is_idle(stream) {
            return Err(ConnectionError::protocol(
                "client sent WINDOW_UPDATE frame for an idle stream",
            ));
        }
        let Some(own) = self.streams.get_mut(stream) else {
            return Ok(Event::Nothing);
        };
        if increment == 0 {
            return self.stream_error(stream, ErrorCode::ProtocolError);
        }
        match own.send_window.widen(increment) {
            Ok(()) => Ok(Event::Sendable),
            Err(_) => self.stream_error(stream, ErrorCode::FlowControlError),
        }
    }

    fn priority_update<'a>(
        &mut self,
        stream: StreamId,
        priority: Priority,
    ) -> Result<Event<'a>, ConnectionError> {
        self.guard.count(Nuisance::Priority)?;
        if stream == 0 {
            return Err(ConnectionError::protocol(
                "client sent PRIORITY_UPDATE frame with incorrect identifier",
            ));
        }
        if let Some(own) = self.streams.get_mut(stream) {
            own.priority = priority;
            return Ok(Event::Sendable);
        }
        if self.is_idle(stream) {
            self.streams.keep_priority(stream, priority);
        }
        Ok(Event::Nothing)
    }

    /// Whether a stream was never opened.
    fn is_idle(&self, stream: StreamId) -> bool {
        stream > self.last_stream || stream.is_multiple_of(2)
    }
}

/// Bytes of the preface at the start of `input`, once it is whole.
fn preface(input: &[u8]) -> Result<Option<usize>, ConnectionError> {
    let count = input.len().min(PREFACE.len());
    if input[..count] != PREFACE[..count] {
        return Err(ConnectionError::protocol("invalid connection preface"));
    }
    Ok((count == PREFACE.len()).then_some(count))
}
