//! The server's side of a connection: its streams and its output.
//!
//! ```text
//!  bytes ─► receive ─► events ─► request handler ─► send_head, send_data, reset ─► output ─► bytes
//! ```

mod receive;
#[cfg(test)]
mod tests;

use super::endpoint::Endpoint;
use super::error::{ConnectionError, ErrorCode};
use super::frame::{self, StreamId};
use super::hpack::Encoder;
use super::settings::Setting;
use super::stream::{Closed, Message};
use super::window::WINDOW_MAX;
use crate::field_section::HeadFault;
use crate::message::{HeadRules, Priority};

/// What a client begins with (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The most payload bytes of a received frame. A frame is kept until it is complete, so larger ones
/// would only cost memory: the socket is read 16 KB at a time whatever the size of frames, and curl
/// and browsers send no larger ones.
pub(super) const RECEIVED_PAYLOAD_BYTES_MAX: u32 = frame::PAYLOAD_BYTES_DEFAULT;

/// The limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionRules {
    /// The most streams that may be open at once (`http2_max_concurrent_streams`).
    pub streams_max: u32,
    /// The bytes of a body that a client may send before the server asks for more
    /// (`http2_body_preread_size`).
    pub stream_window: u32,
    /// The limits and choices for heads.
    pub head: HeadRules,
}

/// An event from a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Nothing to act on.
    Nothing,
    /// More bytes are needed.
    More,
    /// A request: its head is in the reader. A request with a `fault` only gets an error response.
    Request {
        stream: StreamId,
        /// Whether no body follows.
        ends: bool,
        fault: Option<HeadFault>,
    },
    /// A part of a request's body.
    Data {
        stream: StreamId,
        data: &'a [u8],
        /// Whether this is the end of the body.
        ends: bool,
    },
    /// The body ends here, and its trailers are in the reader's head.
    Trailers { stream: StreamId },
    /// The body does not have the announced length: no more of it is reported.
    BodyFault { stream: StreamId },
    /// The stream is reset, by the client or after a stream error.
    Reset { stream: StreamId },
    /// The client gives an open stream another priority.
    Prioritized {
        stream: StreamId,
        priority: Priority,
    },
    /// A window may have opened.
    Sendable,
    /// The client opens no more streams.
    GoingAway,
}

/// An event, and how many bytes it took.
#[derive(Debug, PartialEq, Eq)]
pub struct Step<'a> {
    pub consumed: usize,
    pub event: Event<'a>,
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client's preface is incomplete.
    Preface,
    /// The first frame has not come. By the RFC that is SETTINGS; nginx takes any.
    First,
    Open,
}

/// A connection.
pub struct Connection {
    rules: ConnectionRules,
    phase: Phase,
    endpoint: Endpoint,
    /// Whether the incomplete header block opens a stream.
    opens_stream: bool,
    /// Whether the client has acknowledged our settings.
    is_acknowledged: bool,
    /// Whether GOAWAY was sent: no new streams are served.
    is_going_away: bool,
}

impl Connection {
    /// A connection before the first byte from the client; the output holds our settings.
    #[must_use]
    pub fn new(rules: ConnectionRules) -> Connection {
        let mut connection = Connection {
            rules,
            phase: Phase::Preface,
            endpoint: Endpoint::default(),
            opens_stream: false,
            is_acknowledged: false,
            is_going_away: false,
        };
        let settings = [
            (Setting::MaxConcurrentStreams, rules.streams_max),
            (Setting::InitialWindowSize, rules.stream_window),
            (Setting::MaxFrameSize, RECEIVED_PAYLOAD_BYTES_MAX),
            (Setting::EnableConnectProtocol, 1),
            (Setting::NoRfc7540Priorities, 1),
        ];
        frame::write_settings(&mut connection.endpoint.output, &settings);
        connection.endpoint.open_window();
        connection
    }

    /// The bytes to send; the caller removes those that it has sent.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.endpoint.output
    }

    /// Whether any stream is open; a stream on which only the client must still send counts.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.endpoint.streams.len()
    }

    /// Whether GOAWAY was sent.
    #[must_use]
    pub fn is_going_away(&self) -> bool {
        self.is_going_away
    }

    /// Whether the client's preface and first frame have come.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// The priority of a stream.
    #[must_use]
    pub fn priority(&self, stream: StreamId) -> Priority {
        let stream = self.endpoint.streams.get(stream);
        stream.map(|stream| stream.priority).unwrap_or_default()
    }

    /// Whether data may still be sent on a stream.
    #[must_use]
    pub fn may_send(&self, stream: StreamId) -> bool {
        self.endpoint.may_send(stream)
    }

    /// Whether no stream may send DATA, since the connection's window is used up.
    #[must_use]
    pub fn is_window_closed(&self) -> bool {
        self.endpoint.send_window.available() == 0
    }

    /// Bytes of DATA that may be sent on a stream now.
    #[must_use]
    pub fn window(&self, stream: StreamId) -> usize {
        self.endpoint.window(stream)
    }

    /// Whether the client may send DATA on a stream now: neither has it ended the stream, nor used
    /// up the window.
    #[must_use]
    pub fn may_receive(&self, stream: StreamId) -> bool {
        let own = self.endpoint.streams.get(stream);
        own.is_some_and(|own| own.may_receive() && own.receive_window.available() > 0)
    }

    /// Sends a header block: a head, interim or final, or trailers. `write` puts its fields into
    /// `block`, which is emptied first. Returns the bytes of its frames; 0 if the stream may not be
    /// written any more.
    pub fn send_head(
        &mut self,
        stream: StreamId,
        ends: bool,
        block: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> usize {
        if !self.may_send(stream) {
            return 0;
        }
        let written = self.endpoint.send_head(stream, ends, block, write);
        if ends {
            self.sent_last(stream);
        }
        written
    }

    /// Sends as much of `data` as the windows allow, as one frame of at most `frame_bytes_max`.
    /// With `ends`, the frame with the last byte of `data` ends the stream. Returns the number of
    /// bytes sent.
    pub fn send_data(
        &mut self,
        stream: StreamId,
        data: &[u8],
        ends: bool,
        frame_bytes_max: usize,
    ) -> usize {
        let (count, is_last) = self.endpoint.send_data(stream, data, ends, frame_bytes_max);
        if is_last {
            self.sent_last(stream);
        }
        count
    }

    /// Allows the client to send `bytes` more on a stream that it has not ended.
    pub fn grant(&mut self, stream: StreamId, bytes: u32) {
        if self.may_send(stream) {
            self.endpoint.grant(stream, bytes);
        }
    }

    /// Lets the client send as much of a stream's body as the reader's buffer takes, if that is
    /// more than the initial window. The caller grants again what it has read.
    pub fn allow_buffer(&mut self, stream: StreamId, buffer_bytes: usize) {
        let bytes = u32::try_from(buffer_bytes).map_or(WINDOW_MAX, |bytes| bytes.min(WINDOW_MAX));
        self.grant(stream, bytes.saturating_sub(self.rules.stream_window));
    }

    /// Whether `input` begins with a DATA frame that is larger than the window of its stream.
    #[must_use]
    pub fn overruns_window(&self, stream: StreamId, input: &[u8]) -> bool {
        let header = frame::FrameHeader::parse(input);
        let own = self.endpoint.streams.get(stream);
        header.zip(own).is_some_and(|(header, own)| {
            header.kind == frame::FrameKind::Data
                && header.stream == stream
                && header.length as usize > own.receive_window.available()
        })
    }

    /// Opens a stream's window to the maximum and keeps it open, for a body that is read as fast as
    /// it comes.
    pub fn open_stream_window(&mut self, stream: StreamId) {
        if self.may_send(stream) {
            self.endpoint.open_stream_window(stream);
        }
    }

    /// Resets a stream that has not ended.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        self.endpoint.reset(stream, code);
    }

    /// Sends the client a GOAWAY: new streams are not served; open ones continue.
    pub fn go_away(&mut self) {
        if !self.is_going_away {
            self.is_going_away = true;
            frame::write_go_away(
                &mut self.endpoint.output,
                self.endpoint.last_stream,
                ErrorCode::NoError,
            );
        }
    }

    /// Sends the client the reason for closing the connection.
    pub fn fail(&mut self, error: ConnectionError) {
        self.is_going_away = true;
        frame::write_go_away(
            &mut self.endpoint.output,
            self.endpoint.last_stream,
            error.code,
        );
    }

    /// Whether a head is incomplete. `input` holds the received part of the next frame.
    #[must_use]
    pub fn has_partial_head(&self, input: &[u8]) -> bool {
        let header = frame::FrameHeader::parse(input);
        self.endpoint.block.is_some()
            || header.is_some_and(|header| header.kind == frame::FrameKind::Headers)
    }

    /// Gives up a head that was not complete in time: its stream is reset, and the connection
    /// continues. `input` holds the received part of the next frame. `false`: there is no such
    /// head.
    pub fn give_up_head(&mut self, input: &[u8]) -> bool {
        let stream = match (&self.endpoint.block, frame::FrameHeader::parse(input)) {
            (Some(block), _) => block.stream,
            (None, Some(header)) if header.kind == frame::FrameKind::Headers => header.stream,
            _ => return false,
        };
        if self.endpoint.streams.get(stream).is_some()
            || stream <= self.endpoint.last_stream && self.endpoint.block.is_none()
        {
            return false;
        }
        self.endpoint.last_stream = self.endpoint.last_stream.max(stream);
        if self.endpoint.streams.closed(stream).is_none() {
            self.endpoint.streams.remember(stream, Closed::ResetByUs);
            frame::write_rst_stream(&mut self.endpoint.output, stream, ErrorCode::ProtocolError);
        }
        true
    }

    /// Our last frame of a stream was written. The client is asked to send no more (RFC 9113
    /// section 8.1). For an announced body this happens only when the next frame of it comes, since
    /// that may be malformed; but at once where the client's window is used up, since no frame can
    /// come then.
    fn sent_last(&mut self, stream: StreamId) {
        let Some(own) = self.endpoint.streams.get_mut(stream) else {
            return;
        };
        let is_closed = own.sent_last();
        if own.message == Message::Malformed {
            self.reset(stream, ErrorCode::ProtocolError);
        } else if is_closed {
            self.endpoint.streams.close(stream, Closed::Ended);
        } else if own.announced_bytes.is_none() || own.receive_window.available() == 0 {
            self.reset(stream, ErrorCode::NoError);
        }
    }

    /// Resets a stream after a stream error by the client (RFC 9113 section 5.4.2).
    fn stream_error(
        &mut self,
        stream: StreamId,
        code: ErrorCode,
    ) -> Result<Event<'static>, ConnectionError> {
        self.endpoint.count_reset(stream)?;
        let was_open = self.endpoint.streams.get(stream).is_some();
        if was_open {
            self.reset(stream, code);
        } else {
            frame::write_rst_stream(&mut self.endpoint.output, stream, code);
        }
        Ok(if was_open {
            Event::Reset { stream }
        } else {
            Event::Nothing
        })
    }
}
