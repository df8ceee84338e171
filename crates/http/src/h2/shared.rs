//! What the future of a connection and those of its answers share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tokio::sync::Notify;
use turnpike_wire::h2::{Connection, ErrorCode, StreamId};

use super::output_pool::OutputPool;
use super::stream::Stream;
use crate::running::{RequestId, Running};

/// Bytes of frames that wait for the socket before bodies wait too: a few round trips of a fast
/// connection, and what a slow one holds at most beside its windows.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// A connection, for its future and for its answers.
pub(crate) struct Shared {
    outputs: Rc<OutputPool>,
    pub(super) wire: RefCell<Connection>,
    /// Streams whose requests are not answered yet.
    pub(super) streams: RefCell<Vec<Rc<Stream>>>,
    /// Notified when the connection's future has something to do.
    pub(super) work: Notify,
    /// Room for header blocks that are encoded.
    pub(super) block: RefCell<Vec<u8>>,
    /// The stream that was let go on last, and has not sent since.
    sender: Cell<Option<StreamId>>,
    /// Counts the turns of streams that share a priority.
    turns: Cell<u64>,
}

impl Shared {
    pub(crate) fn new(wire: Connection, outputs: &Rc<OutputPool>) -> Rc<Self> {
        Rc::new(Self {
            outputs: Rc::clone(outputs),
            wire: RefCell::new(wire),
            streams: RefCell::default(),
            work: Notify::new(),
            block: RefCell::default(),
            sender: Cell::new(None),
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

    /// Gives an output without memory the lane's, which has grown already.
    pub(super) fn prepare_output(&self) {
        let mut wire = self.wire.borrow_mut();
        let output = wire.output();
        if output.capacity() == 0 {
            *output = self.outputs.take();
        }
    }

    /// Calls for every request that is answered by a future.
    pub(crate) fn each_running(&self, mut does: impl FnMut(&Running)) {
        for stream in self.streams.borrow().iter() {
            if let Some(running) = &*stream.running.borrow() {
                does(running);
            }
        }
    }

    /// Closes the request of that name; returns whether there is one.
    pub(crate) fn close(&self, id: RequestId) -> bool {
        let streams = self.streams.borrow();
        let is_meant = |stream: &&Rc<Stream>| {
            let running = stream.running.borrow();
            running.as_ref().is_some_and(|running| running.id() == id)
        };
        let stream = streams.iter().find(is_meant);
        stream
            .inspect(|stream| stream.closing.notify_one())
            .is_some()
    }

    /// The number of the next turn.
    pub(super) fn next_turn(&self) -> u64 {
        self.turns.set(self.turns.get() + 1);
        self.turns.get()
    }

    /// Whether a stream is about to send: the output is written once no other can add to it, so
    /// that one call carries the answers of many streams.
    pub(super) fn is_filling(&self) -> bool {
        self.sender.get().is_some()
    }

    /// Lets the stream that is due next go on, where anything can be sent. Returns whether there is
    /// one.
    pub(super) fn wake_sender(&self) -> bool {
        if !self.has_room() {
            return false;
        }
        let streams = self.streams.borrow();
        let wire = self.wire.borrow();
        let waiting = || streams.iter().filter(|stream| stream.wants_room.get());
        let has_window = |stream: &&Rc<Stream>| wire.window(stream.id) > 0;
        // Windows cost a search each, and the first mostly has one.
        let first = waiting().min_by_key(|stream| stream.place());
        let next = first.filter(has_window).or_else(|| {
            waiting()
                .filter(has_window)
                .min_by_key(|stream| stream.place())
        });
        let Some(next) = next else {
            return false;
        };
        next.wants_room.set(false);
        next.room.notify_one();
        self.sender.set(Some(next.id));
        true
    }

    /// A stream has sent what it could for now: the next one is let go on while the output has
    /// room; then the connection's future writes.
    pub(super) fn has_sent(&self, stream: &Stream) {
        self.sends_no_more(stream);
        if !self.is_filling() && !self.wake_sender() {
            self.work.notify_one();
        }
    }

    fn sends_no_more(&self, stream: &Stream) {
        if self.sender.get() == Some(stream.id) {
            self.sender.set(None);
        }
    }

    /// Whether a stream may send on, no other one being due before it.
    pub(super) fn may_go_on(&self, stream: &Stream) -> bool {
        let wire = self.wire.borrow();
        let place = stream.place();
        let streams = self.streams.borrow();
        let mut due = streams
            .iter()
            .filter(|other| other.wants_room.get() && other.place() < place);
        !due.any(|other| wire.window(other.id) > 0)
    }

    /// The request of a stream is answered, or never will be.
    pub(super) fn ended(&self, stream: &Stream) {
        self.sends_no_more(stream);
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
