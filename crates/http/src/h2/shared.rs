//! What the future of a connection and those of its answers share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tokio::sync::Notify;
use turnpike_wire::h2::{Connection, ErrorCode, StreamId};

use super::stream::Stream;

/// Bytes of frames that wait for the socket before bodies wait too: a few round trips of a fast
/// connection, and what a slow one holds at most beside its windows.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// A connection, for its future and for its answers.
pub(super) struct Shared {
    pub(super) wire: RefCell<Connection>,
    /// Streams whose requests are not answered yet.
    pub(super) streams: RefCell<Vec<Rc<Stream>>>,
    /// Notified when the connection's future has something to do.
    pub(super) work: Notify,
    /// Room for header blocks that are encoded.
    pub(super) block: RefCell<Vec<u8>>,
    /// Counts the turns of streams that share a priority.
    turns: Cell<u64>,
}

impl Shared {
    pub(super) fn new(wire: Connection) -> Rc<Self> {
        Rc::new(Self {
            wire: RefCell::new(wire),
            streams: RefCell::default(),
            work: Notify::new(),
            block: RefCell::default(),
            turns: Cell::new(0),
        })
    }

    /// The stream of that number, where its request is not answered yet.
    pub(super) fn stream(&self, id: StreamId) -> Option<Rc<Stream>> {
        let streams = self.streams.borrow();
        streams.iter().find(|stream| stream.id == id).cloned()
    }

    /// Whether bodies may add to the output.
    pub(super) fn has_room(&self) -> bool {
        self.wire.borrow_mut().output().len() < OUTPUT_BYTES_MAX
    }

    /// The number of the next turn.
    pub(super) fn next_turn(&self) -> u64 {
        self.turns.set(self.turns.get() + 1);
        self.turns.get()
    }

    /// Lets the stream that is due next go on, where anything can be sent.
    pub(super) fn wake_sender(&self) {
        if !self.has_room() {
            return;
        }
        let streams = self.streams.borrow();
        let wire = self.wire.borrow();
        let waiting = streams
            .iter()
            .filter(|stream| stream.wants_room.get() && wire.window(stream.id) > 0);
        if let Some(next) = waiting.min_by_key(|stream| stream.place(&wire)) {
            next.wants_room.set(false);
            next.room.notify_one();
        }
    }

    /// Whether a stream may send on, no other one being due before it.
    pub(super) fn may_go_on(&self, stream: &Stream) -> bool {
        let wire = self.wire.borrow();
        let place = stream.place(&wire);
        !self.streams.borrow().iter().any(|other| {
            other.wants_room.get() && wire.window(other.id) > 0 && other.place(&wire) < place
        })
    }

    /// The request of a stream is answered, or never will be.
    pub(super) fn ended(&self, stream: &Stream) {
        self.streams
            .borrow_mut()
            .retain(|other| other.id != stream.id);
        self.work.notify_one();
    }

    /// Ends a stream that has no whole answer.
    pub(super) fn reset(&self, stream: &Stream, code: ErrorCode) {
        self.wire.borrow_mut().reset(stream.id, code);
    }
}
