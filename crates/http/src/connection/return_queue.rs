//! The door by which futures give connections back to their lane.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tokio::sync::Notify;

use super::open::Connection;
use super::tls::security::Handshaking;
use crate::counters::CloseReason;
use crate::exchange::Exchange;
use crate::h1::watch::Watch;
use crate::h2::connection::Http2Connection;

/// Where a driven connection stands among the others: the lane's loop knows it by its token.
#[derive(Clone)]
pub(super) struct DrivenSlot {
    pub(super) token: u32,
    pub(super) watch: Rc<Watch>,
}

/// A driven connection that its future has ended with.
pub(super) struct Returned {
    pub(super) slot: DrivenSlot,
    pub(super) left: Left,
}

/// What is left of a driven connection.
pub(super) enum Left {
    /// The connection, which waits for its next request or has it.
    Connection(Connection, Box<Exchange>),
    /// A connection whose TLS handshake goes on from that state.
    Handshake(Connection, Box<Handshaking>),
    /// A connection of HTTP/2, none of whose streams is open.
    Http2(Box<Http2Connection>),
    /// The connection has ended.
    Ended(CloseReason),
    /// Nothing: the future was dropped before its end.
    Dropped,
}

/// What driven connections hand back.
pub(super) struct ReturnQueue {
    pub(super) returned: RefCell<Vec<Returned>>,
    /// Tasks for no client that have ended since the last turn.
    pub(super) background_ended: Cell<usize>,
    /// Of these, how many have had their turns.
    pub(super) background_spent: Cell<usize>,
    /// Answers on streams that have ended since the last turn.
    pub(super) streams_ended: Cell<usize>,
    pub(super) notify: Rc<Notify>,
}

impl ReturnQueue {
    pub(super) fn give_back(&self, slot: DrivenSlot, left: Left) {
        self.returned.borrow_mut().push(Returned { slot, left });
        self.notify.notify_one();
    }
}

/// Counts the connection as gone where its future is dropped before its end: it panics, which the
/// runtime catches, or it has had its turns ([`turnpike_lane::turns`]).
pub(super) struct HandBackOnDrop<'a> {
    return_queue: &'a ReturnQueue,
    slot: Option<DrivenSlot>,
}

impl<'a> HandBackOnDrop<'a> {
    pub(super) fn new(return_queue: &'a ReturnQueue, slot: &DrivenSlot) -> Self {
        Self {
            return_queue,
            slot: Some(slot.clone()),
        }
    }

    pub(super) fn disarm(mut self) {
        self.slot = None;
    }
}

impl Drop for HandBackOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.return_queue.give_back(slot, Left::Dropped);
        }
    }
}
