//! Sockets whose events carry a number of the handler's own, for work that a lane does without a
//! future and that needs more than one socket, or waits for space to write.
//!
//! The handler tells sockets apart by the number alone. An event of a turn may be that of a socket
//! which was closed earlier in the same turn, so a number must not be given out again soon.

use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use super::TOKEN_NUMBERED_SOCKET;
use crate::sys::epoll::{Epoll, Interest};

/// Watches sockets under numbers. Closing a socket ends its watch.
#[derive(Clone)]
pub struct NumberedSockets {
    epoll: Rc<Epoll>,
}

impl NumberedSockets {
    /// The bits that a number may have: the highest one marks the socket's kind, and with all bits
    /// set it would be the mailbox's.
    pub const NUMBER_BITS: u32 = 62;

    pub(super) fn new(epoll: Rc<Epoll>) -> Self {
        Self { epoll }
    }

    /// Watches a socket; its events carry `number`.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn add(&self, socket: BorrowedFd<'_>, interest: Interest, number: u64) -> io::Result<()> {
        self.epoll
            .add(socket, interest, TOKEN_NUMBERED_SOCKET + number)
    }

    /// Changes what a socket is watched for. The kernel reports again what is ready now.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn modify(
        &self,
        socket: BorrowedFd<'_>,
        interest: Interest,
        number: u64,
    ) -> io::Result<()> {
        self.epoll
            .modify(socket, interest, TOKEN_NUMBERED_SOCKET + number)
    }
}
