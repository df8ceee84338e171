//! What the two sockets of a session that is served in steps are watched for.

use std::io;
use std::os::fd::BorrowedFd;

use turnpike_lane::event_loop::NumberedSockets;
use turnpike_lane::sys::epoll::Interest;

/// Which of a session's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketOf {
    Client,
    Server,
}

/// Watches the sockets of one session.
pub struct Watch<'a> {
    sockets: &'a NumberedSockets,
    /// The number of the client's socket; the next one is the server's.
    number: u64,
}

impl<'a> Watch<'a> {
    /// Watches under this number and the next one.
    pub(crate) fn new(sockets: &'a NumberedSockets, number: u64) -> Self {
        Self { sockets, number }
    }

    /// Watches a socket.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn add(&self, of: SocketOf, socket: BorrowedFd<'_>, interest: Interest) -> io::Result<()> {
        self.sockets.add(socket, interest, self.number + of as u64)
    }

    /// Watches a socket for something else, and has what is ready now told again.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn modify(
        &self,
        of: SocketOf,
        socket: BorrowedFd<'_>,
        interest: Interest,
    ) -> io::Result<()> {
        self.sockets
            .modify(socket, interest, self.number + of as u64)
    }
}
