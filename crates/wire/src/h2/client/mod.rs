//! The client's side of a connection: it sends requests and reports the server's answers as events.
//!
//! ```text
//!  open, send_data ─► output ─► bytes ─► receive ─► events
//! ```
//!
//! If the reader of a connection does not read, the server is held back. So the windows for the
//! server's data are as wide as they can be.

mod receive;
#[cfg(test)]
mod tests;

use super::connection::PREFACE;
use super::endpoint::Endpoint;
use super::error::{ConnectionError, ErrorCode};
use super::frame::{self, StreamId};
use super::hpack::{Decoder, Encoder};
use super::settings::Setting;
use super::stream::{Closed, Grants, Message, State, Stream};
use super::window::{WINDOW_MAX, Window};
use crate::allowance::Credit;
use crate::field_section::ResponseFault;
use crate::message::{HeadRules, Priority};

/// The highest number of a stream (RFC 9113 section 5.1.1).
const STREAM_MAX: StreamId = (1 << 31) - 1;

/// The size of the header table for a server's heads, in bytes. As in nginx there is no table:
/// servers are near, and there are many connections to them.
const TABLE_BYTES: u32 = 0;

/// An event from a server.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerEvent<'a> {
    /// Nothing to act on.
    Nothing,
    /// More bytes are needed.
    More,
    /// A head, interim or final, is in the reader. `ends`: no body follows.
    Head { stream: StreamId, ends: bool },
    /// A part of a response's body.
    Data {
        stream: StreamId,
        data: &'a [u8],
        /// Whether this is the end of the body.
        ends: bool,
    },
    /// Trailers are in the reader; nothing follows.
    Trailers { stream: StreamId },
    /// The response is malformed, and its stream was reset.
    Malformed {
        stream: StreamId,
        fault: ResponseFault,
    },
    /// The server has reset the stream, and will send no more on it.
    Reset { stream: StreamId, code: ErrorCode },
    /// A window may have opened.
    Sendable,
    /// Streams above the last one are not answered; no more may be opened.
    GoingAway {
        last_stream: StreamId,
        code: ErrorCode,
    },
}

/// An event, and how many bytes it took.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerStep<'a> {
    pub consumed: usize,
    pub event: ServerEvent<'a>,
}

/// A connection to a server.
pub struct ClientConnection {
    endpoint: Endpoint,
    /// Limits and choices that heads are read under.
    rules: HeadRules,
    /// Whether GOAWAY has come.
    is_going_away: bool,
}

impl ClientConnection {
    /// A connection before the first byte from the server; the output holds the client's preface.
    #[must_use]
    pub fn new(rules: HeadRules) -> ClientConnection {
        let mut endpoint = Endpoint {
            decoder: Decoder::new(TABLE_BYTES).taking_long_padding(),
            ..Endpoint::default()
        };
        endpoint.output.extend_from_slice(PREFACE);
        let settings = [
            (Setting::HeaderTableSize, TABLE_BYTES),
            (Setting::EnablePush, 0),
            (Setting::InitialWindowSize, WINDOW_MAX),
        ];
        frame::write_settings(&mut endpoint.output, &settings);
        endpoint.open_window();
        ClientConnection {
            endpoint,
            rules,
            is_going_away: false,
        }
    }

    /// The bytes to send; the caller removes those that it has sent.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.endpoint.output
    }

    /// Changes the limits for the next heads.
    pub fn set_rules(&mut self, rules: HeadRules) {
        self.rules = rules;
    }

    /// The number of open streams.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.endpoint.streams.len()
    }

    /// Whether the server's limit and the stream numbers allow another stream.
    #[must_use]
    pub fn may_open(&self) -> bool {
        !self.is_going_away
            && self.endpoint.last_stream + 2 <= STREAM_MAX
            && self.endpoint.streams.len() < self.endpoint.peer.streams_max as usize
    }

    /// Whether the server has sent GOAWAY.
    #[must_use]
    pub fn is_going_away(&self) -> bool {
        self.is_going_away
    }

    /// Whether no request is in progress, and another one may follow.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let endpoint = &self.endpoint;
        self.may_open()
            && endpoint.streams.len() == 0
            && endpoint.block.is_none()
            && endpoint.output.is_empty()
    }

    /// Opens a stream and sends the head of a request on it; `ends`: no body follows. `write` puts
    /// its fields into `block`, which is emptied first. `is_head`: the method is HEAD, so the
    /// response has no body.
    pub fn open(
        &mut self,
        ends: bool,
        is_head: bool,
        block: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> StreamId {
        let endpoint = &mut self.endpoint;
        let id = match endpoint.last_stream {
            0 => 1,
            last => last + 2,
        };
        endpoint.last_stream = id;
        endpoint.streams.open(Stream {
            id,
            state: if ends {
                State::HalfClosedLocal
            } else {
                State::Open
            },
            message: Message::Awaited,
            send_window: Window::new(endpoint.peer.initial_window),
            receive_window: Window::new(WINDOW_MAX),
            grants: Grants::KeptOpen,
            announced_bytes: is_head.then_some(0),
            priority: Priority::default(),
            opened_ms: endpoint.guard.now_ms(),
            tiny_data: Credit::default(),
        });
        endpoint.send_head(id, ends, block, write);
        id
    }

    /// Bytes of DATA that may be sent on a stream now.
    #[must_use]
    pub fn window(&self, stream: StreamId) -> usize {
        self.endpoint.window(stream)
    }

    /// Whether data may still be sent on a stream.
    #[must_use]
    pub fn may_send(&self, stream: StreamId) -> bool {
        self.endpoint.may_send(stream)
    }

    /// Sends as much of `data` as the windows allow, in as many frames as it needs. With `ends`,
    /// the frame with the last byte of `data` ends the request. Returns the number of bytes sent.
    pub fn send_data(&mut self, stream: StreamId, data: &[u8], ends: bool) -> usize {
        let mut sent = 0;
        loop {
            let rest = data.get(sent..).unwrap_or_default();
            let (count, is_last) = self.endpoint.send_data(stream, rest, ends, usize::MAX);
            sent += count;
            if is_last {
                self.sent_last(stream);
            }
            if count == 0 || sent == data.len() {
                return sent;
            }
        }
    }

    /// Ends a request by trailers, where it may still be written. `write` puts their fields into
    /// `block`, which is emptied first.
    pub fn send_trailers(
        &mut self,
        stream: StreamId,
        block: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        if self.may_send(stream) {
            self.endpoint.send_head(stream, true, block, write);
            self.sent_last(stream);
        }
    }

    /// Resets a stream that has not ended.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        self.endpoint.reset(stream, code);
    }

    /// Sends the server the reason for closing the connection.
    pub fn fail(&mut self, error: ConnectionError) {
        // A stream opened by the server would be a pushed one, and those are refused.
        frame::write_go_away(&mut self.endpoint.output, 0, error.code);
    }

    fn sent_last(&mut self, stream: StreamId) {
        let Some(own) = self.endpoint.streams.get_mut(stream) else {
            return;
        };
        if own.sent_last() {
            self.endpoint.streams.close(stream, Closed::Ended);
        }
    }
}
