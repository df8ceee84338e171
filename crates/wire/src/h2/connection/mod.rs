//! The server's side of a connection: what is under way on it, and what is sent.
//!
//! ```text
//!  bytes ─► receive ─► events ─► whoever serves ─► send_head, send_data, reset ─► output ─► bytes
//! ```

mod receive;
#[cfg(test)]
mod tests;

use super::endpoint::Endpoint;
use super::error::{ConnectionError, ErrorCode};
use super::flood::Nuisance;
use super::frame::{self, StreamId};
use super::hpack::Encoder;
use super::priority::Priority;
use super::request::HeadFault;
use super::settings::Setting;
use super::stream::Closed;
use crate::message::HeadRules;

/// What a client begins with (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a payload that are taken: a frame is kept until it is whole, and larger ones than the
/// usual gain nothing but for long header blocks. It is above the usual window, since there are
/// clients that send as much in one frame.
pub(super) const RECEIVED_PAYLOAD_BYTES_MAX: u32 = 128 * 1024;

/// How a connection is served.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionRules {
    /// Streams that may be open at once (`http2_max_concurrent_streams`).
    pub streams_max: u32,
    /// Bytes of a body that a client may send before it is asked for more
    /// (`http2_body_preread_size`).
    pub stream_window: u32,
    /// Limits and choices that heads are read under.
    pub head: HeadRules,
}

/// What has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Nothing that anybody need know.
    Nothing,
    /// More bytes are needed.
    More,
    /// A request: its head is in the reader. A `fault` is answered, and nothing else is done.
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
        /// Whether it was the last.
        ends: bool,
    },
    /// The body is not as long as was announced: nothing more of it is told.
    BodyFault { stream: StreamId },
    /// The stream is reset, by the client or since it has done wrong.
    Reset { stream: StreamId },
    /// Windows may have opened, or priorities changed.
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

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client's preface has not come whole.
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
    /// Whether the header block that comes opens a stream.
    opens_stream: bool,
    /// Whether GOAWAY was sent: no new streams are served.
    is_going_away: bool,
}

impl Connection {
    /// A connection on which nothing has come yet; what we begin with stands in the output.
    #[must_use]
    pub fn new(rules: ConnectionRules) -> Connection {
        let mut connection = Connection {
            rules,
            phase: Phase::Preface,
            endpoint: Endpoint::default(),
            opens_stream: false,
            is_going_away: false,
        };
        let settings = [
            (Setting::MaxConcurrentStreams, rules.streams_max),
            (Setting::InitialWindowSize, rules.stream_window),
            (Setting::MaxFrameSize, RECEIVED_PAYLOAD_BYTES_MAX),
            (Setting::NoRfc7540Priorities, 1),
        ];
        frame::write_settings(&mut connection.endpoint.output, &settings);
        connection.endpoint.open_window();
        connection
    }

    /// What is to be sent; the caller takes it out as far as it has left.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.endpoint.output
    }

    /// Whether streams are open, also those of which only the client's part is missing.
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

    /// Whether something may still be sent on a stream.
    #[must_use]
    pub fn may_send(&self, stream: StreamId) -> bool {
        self.endpoint.may_send(stream)
    }

    /// Bytes of DATA that may be sent on a stream now.
    #[must_use]
    pub fn window(&self, stream: StreamId) -> usize {
        self.endpoint.window(stream)
    }

    /// Sends a header block: a head, interim or final, or trailers. `write` puts its fields into
    /// `block`, which is emptied first. Returns the bytes of its frames; 0 where nothing may be
    /// sent any more.
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

    /// Sends what the windows let go of `data`, as one frame of at most `frame_bytes_max`; it ends
    /// the stream where it is all and `ends`. Returns how many bytes of `data` went.
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

    /// Lets the client send so many bytes more on a stream, where it may still send any.
    pub fn grant(&mut self, stream: StreamId, bytes: u32) {
        if self.may_send(stream) {
            self.endpoint.grant(stream, bytes);
        }
    }

    /// Ends a stream before its end, where it has not ended.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        self.endpoint.reset(stream, code);
    }

    /// Tells the client that streams from now on are not served; those that are open go on.
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

    /// Tells the client why the connection is closed.
    pub fn fail(&mut self, error: ConnectionError) {
        self.is_going_away = true;
        frame::write_go_away(
            &mut self.endpoint.output,
            self.endpoint.last_stream,
            error.code,
        );
    }

    /// Whether a head has begun to come and is not whole. `input` is what has come of the next
    /// frame.
    #[must_use]
    pub fn has_partial_head(&self, input: &[u8]) -> bool {
        let header = frame::FrameHeader::parse(input);
        self.endpoint.block.is_some()
            || header.is_some_and(|header| header.kind == frame::FrameKind::Headers)
    }

    /// Gives up a head that has not come whole in time: its stream is reset, and the connection
    /// goes on. `input` is what has come of the next frame. `false`: there is no such head.
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

    /// Our last frame of a stream was written. What the client still sends is not wanted, and it is
    /// told so (RFC 9113 section 8.1); of an announced body only when something comes of it, since
    /// it may be malformed.
    fn sent_last(&mut self, stream: StreamId) {
        let Some(own) = self.endpoint.streams.get_mut(stream) else {
            return;
        };
        own.is_local_closed = true;
        if own.is_malformed {
            self.reset(stream, ErrorCode::ProtocolError);
        } else if own.is_remote_closed {
            self.endpoint.streams.close(stream, Closed::Ended);
        } else if own.announced_bytes.is_none() {
            self.reset(stream, ErrorCode::NoError);
        }
    }

    /// Resets a stream since the client has done wrong (RFC 9113 section 5.4.2).
    fn stream_error(
        &mut self,
        stream: StreamId,
        code: ErrorCode,
    ) -> Result<Event<'static>, ConnectionError> {
        self.endpoint.guard.count(Nuisance::Reset)?;
        let was_open = self.endpoint.streams.get(stream).is_some();
        match was_open {
            true => self.reset(stream, code),
            false => frame::write_rst_stream(&mut self.endpoint.output, stream, code),
        }
        Ok(match was_open {
            true => Event::Reset { stream },
            false => Event::Nothing,
        })
    }
}
