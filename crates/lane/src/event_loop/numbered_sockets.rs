//! Sockets whose events carry a number of their owner's own, for work that a lane does without a
//! future and that needs more than one socket, or waits for space to write.
//!
//! The owner tells its sockets apart by the number alone. An event of a turn may be that of a
//! socket which was closed earlier in the same turn, so a number must not be given out again soon.

use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use super::token::{self, Owner, Token};
use crate::sys::epoll::{Epoll, Interest};

/// Watches sockets under numbers. Closing a socket ends its watch.
#[derive(Clone)]
pub struct NumberedSockets {
    epoll: Rc<Epoll>,
    owner: Owner,
}

impl NumberedSockets {
    /// The bits that a number may have.
    pub const NUMBER_BITS: u32 = token::NUMBER_BITS;

    pub(super) fn new(epoll: Rc<Epoll>, owner: Owner) -> Self {
        Self { epoll, owner }
    }

    fn token(&self, number: u64) -> u64 {
        Token::Numbered(self.owner, number).encode()
    }

    /// Watches a socket; its events carry `number`.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn add(&self, socket: BorrowedFd<'_>, interest: Interest, number: u64) -> io::Result<()> {
        self.epoll.add(socket, interest, self.token(number))
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
        self.epoll.modify(socket, interest, self.token(number))
    }
}
