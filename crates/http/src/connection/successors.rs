//! The lanes that take over what a lane leaves.

use std::cell::Cell;
use std::sync::Arc;

use turnpike_lane::event_loop::Mailbox;
use turnpike_lane::gate::ListenAddress;

use super::commands::Command;
use super::moving::Moving;
use crate::plan::resolved::Plan;

/// Lanes that are given connections in turn.
#[derive(Default)]
pub struct RoundRobin {
    mailboxes: Vec<Arc<Mailbox<Command>>>,
    /// The next one to be asked.
    next: Cell<usize>,
}

/// The lanes that take over what a lane leaves.
pub(super) struct Successors {
    lanes: RoundRobin,
    /// Gates that the successors have.
    addresses: Vec<ListenAddress>,
}

impl Successors {
    pub(super) fn new(plan: &Plan, mailboxes: Vec<Arc<Mailbox<Command>>>) -> Self {
        Self {
            lanes: RoundRobin {
                mailboxes,
                next: Cell::new(0),
            },
            addresses: plan
                .listens
                .iter()
                .map(|listen| listen.address.clone())
                .collect(),
        }
    }

    pub(super) fn have(&self, address: &ListenAddress) -> bool {
        self.addresses.contains(address)
    }

    /// Gives a connection to the next one that still takes something; back when none does.
    pub(super) fn give(&self, moving: Box<Moving>) -> Result<(), Box<Moving>> {
        self.lanes.give(moving)
    }
}

impl RoundRobin {
    /// Has these lanes take the place of those before; the turn stays where it is.
    pub fn replace(&mut self, mailboxes: Vec<Arc<Mailbox<Command>>>) {
        self.mailboxes = mailboxes;
    }

    /// Gives a connection to the next one that still takes something; back when none does.
    ///
    /// # Errors
    /// The connection.
    pub fn give(&self, moving: Box<Moving>) -> Result<(), Box<Moving>> {
        let mut letter = Command::Adopt(moving);
        for _ in 0..self.mailboxes.len() {
            let index = self.next.get() % self.mailboxes.len();
            self.next.set(index + 1);
            match self.mailboxes[index].try_send(letter) {
                Ok(()) => return Ok(()),
                Err(back) => letter = back,
            }
        }
        match letter {
            Command::Adopt(moving) => Err(moving),
            _ => unreachable!("a letter comes back as it was sent"),
        }
    }
}
