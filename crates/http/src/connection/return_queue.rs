//! The door by which futures give connections back to their lane.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tokio::sync::Notify;

use super::open::Connection;
use crate::counters::CloseReason;
use crate::exchange::Exchange;
use crate::h1::watch::Watch;

/// Where a driven connection stands among the others: the lane's loop knows it by its token.
#[derive(Clone)]
pub(super) struct DrivenSlot {
    pub(super) token: u32,
    pub(super) watch: Rc<Watch>,
    /// Whether the connection is one of HTTP/2.
    pub(super) is_http2: bool,
}

/// A driven connection that has ended: what is left of it.
pub(super) struct Returned {
    pub(super) slot: DrivenSlot,
    pub(super) connection: Result<Connection, CloseReason>,
    pub(super) exchange: Option<Box<Exchange>>,
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
    pub(super) fn give_back(
        &self,
        slot: DrivenSlot,
        connection: Result<Connection, CloseReason>,
        exchange: Option<Box<Exchange>>,
    ) {
        self.returned.borrow_mut().push(Returned {
            slot,
            connection,
            exchange,
        });
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
            self.return_queue
                .give_back(slot, Err(CloseReason::Failed), None);
        }
    }
}
