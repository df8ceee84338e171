//! Streams and their states (RFC 9113 section 5.1).
//!
//! ```text
//!              idle: the number was not used yet
//!                │ HEADERS of the client
//!                ▼
//!              Open ───────────────────────────┐
//!                │ the peer's END_STREAM       │ our END_STREAM
//!                ▼                             ▼
//!        HalfClosedRemote               HalfClosedLocal
//!                │ our END_STREAM              │ the peer's END_STREAM
//!                └──────────► closed ◄─────────┘
//!                               ▲ RST_STREAM, in any of the three
//! ```
//! Nothing is pushed, so that no stream is reserved. Closed streams are forgotten, except for the
//! last few, because the way they were closed matters.

use std::collections::VecDeque;

use super::frame::StreamId;
use super::window::Window;
use crate::allowance::Credit;
use crate::message::Priority;

/// The number of closed streams that are remembered: about as many as may be open, since frames for
/// them may still arrive.
const REMEMBERED_MAX: usize = 128;

/// An open or half-closed stream.
pub(super) struct Stream {
    pub(super) id: StreamId,
    pub(super) state: State,
    /// What has come of the peer's message.
    pub(super) message: Message,
    /// The window for sent data.
    pub(super) send_window: Window,
    /// The window for received data.
    pub(super) receive_window: Window,
    /// What widens the receive window.
    pub(super) grants: Grants,
    /// The announced bytes of the body that have not come yet.
    pub(super) announced_bytes: Option<u64>,
    pub(super) priority: Priority,
    /// When it was opened, in monotonic milliseconds.
    pub(super) opened_ms: u64,
    /// What the peer has used of its allowance of tiny DATA frames.
    pub(super) tiny_data: Credit,
}

/// The state of a stream that is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Both sides may send.
    Open,
    /// The peer has ended the stream.
    HalfClosedRemote,
    /// We have ended the stream.
    HalfClosedLocal,
}

/// What has come of the peer's message: a request, or a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The final head of the response has not come.
    Awaited,
    /// The head has come.
    Begun,
    /// The request is malformed: the stream is reset after its answer.
    Malformed,
}

/// What widens a receive window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grants {
    /// The reader of the body grants what it has read.
    AsRead,
    /// The window is kept open, so that reading grants nothing.
    KeptOpen,
}

impl Stream {
    /// Whether we have not ended the stream.
    pub(super) fn may_send(&self) -> bool {
        self.state != State::HalfClosedLocal
    }

    /// Whether the peer has not ended the stream.
    pub(super) fn may_receive(&self) -> bool {
        self.state != State::HalfClosedRemote
    }

    /// Our last frame was sent. Returns whether both sides have ended the stream: the caller closes
    /// it then.
    pub(super) fn sent_last(&mut self) -> bool {
        debug_assert!(self.may_send(), "stream {} was ended twice", self.id);
        let is_closed = self.state == State::HalfClosedRemote;
        if !is_closed {
            self.state = State::HalfClosedLocal;
        }
        is_closed
    }

    /// The peer's last frame has come. Returns whether both sides have ended the stream: the caller
    /// closes it then.
    pub(super) fn received_last(&mut self) -> bool {
        debug_assert!(self.may_receive(), "stream {} ended twice", self.id);
        let is_closed = self.state == State::HalfClosedLocal;
        if !is_closed {
            self.state = State::HalfClosedRemote;
        }
        is_closed
    }
}

/// How a stream was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// Both sides have ended it.
    Ended,
    /// The peer has reset it.
    ResetByPeer,
    /// We have reset it: frames that were already sent are ignored.
    ResetByUs,
}

/// The streams of a connection.
#[derive(Default)]
pub(super) struct Streams {
    /// The open streams, sorted by number.
    open: Vec<Stream>,
    closed: VecDeque<(StreamId, Closed)>,
    /// Priorities that came before their streams.
    early_priorities: VecDeque<(StreamId, Priority)>,
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn get(&self, id: StreamId) -> Option<&Stream> {
        let at = self
            .open
            .binary_search_by_key(&id, |stream| stream.id)
            .ok()?;
        self.open.get(at)
    }

    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let at = self
            .open
            .binary_search_by_key(&id, |stream| stream.id)
            .ok()?;
        self.open.get_mut(at)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    /// Opens a stream, whose number is higher than any before it.
    pub(super) fn open(&mut self, stream: Stream) {
        self.open.push(stream);
    }

    /// Forgets a stream, but remembers how it was closed.
    pub(super) fn close(&mut self, id: StreamId, how: Closed) {
        let Ok(at) = self.open.binary_search_by_key(&id, |stream| stream.id) else {
            return;
        };
        self.open.remove(at);
        self.remember(id, how);
    }

    /// Remembers a stream that was never open as a closed one.
    pub(super) fn remember(&mut self, id: StreamId, how: Closed) {
        if self.closed.len() == REMEMBERED_MAX {
            self.closed.pop_front();
        }
        self.closed.push_back((id, how));
    }

    /// How a stream was closed, if that is still remembered.
    pub(super) fn closed(&self, id: StreamId) -> Option<Closed> {
        let closed = self.closed.iter().rev().find(|(closed, _)| *closed == id);
        closed.map(|(_, how)| *how)
    }

    /// Keeps the priority of a stream that is not open yet; only the last ones are kept.
    pub(super) fn keep_priority(&mut self, id: StreamId, priority: Priority) {
        if self.early_priorities.len() == REMEMBERED_MAX {
            self.early_priorities.pop_front();
        }
        self.early_priorities.push_back((id, priority));
    }

    /// The priority that was kept for a stream.
    pub(super) fn take_priority(&mut self, id: StreamId) -> Option<Priority> {
        let mut kept = None;
        self.early_priorities.retain(|(early, priority)| {
            if *early == id {
                kept = Some(*priority);
            }
            *early > id
        });
        kept
    }
}
