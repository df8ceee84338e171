//! Datagrams to and from a peer.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use turnpike_lane::sys::datagram::{self, Route};
use turnpike_lane::sys::socket::Kind;
use turnpike_lane::transport::Transport;
use turnpike_lane::waiting::Waited;

use super::open::{ConnectError, ConnectOptions, begin};
use crate::peer::picked::Picked;

/// A socket that exchanges datagrams with one peer. Must be used on the lane that opened it.
pub struct DatagramConnection {
    waited: Waited,
}

impl DatagramConnection {
    /// Opens a socket to a peer. Whether anybody listens there is not known by that. Of the options
    /// those count that are about our own address and about buffers.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn open(picked: &Picked, options: &ConnectOptions<'_>) -> Result<Self, ConnectError> {
        let (socket, _) = begin(picked.address(), Kind::Datagram, options)?;
        Ok(Self {
            waited: Waited::new(Transport::plain(socket)),
        })
    }

    /// Sends a datagram, waiting while the socket is full.
    ///
    /// # Errors
    /// What the socket says, also of what was sent before: that nobody listens there.
    pub async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let send = || datagram::send(self.as_fd(), std::iter::once(bytes), Route::default());
        self.waited.when_writable(0, send).await.map(|_| ())
    }

    /// Waits for datagrams, and has `read` read them, which may find that none is there.
    ///
    /// # Errors
    /// What `read` says, which may be of what was sent: that nobody listens there.
    pub async fn receive<T>(
        &self,
        mut read: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.waited.when_readable(|| read(self.as_fd())).await
    }

    /// Notes that the last read has taken all that was there.
    pub fn emptied(&self) {
        self.waited.emptied();
    }
}

impl AsFd for DatagramConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waited.transport().as_fd()
    }
}
