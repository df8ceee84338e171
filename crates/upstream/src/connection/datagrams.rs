//! Datagrams to and from a peer.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use turnpike_lane::sys::datagram::{self, Route};
use turnpike_lane::sys::socket::Kind;
use turnpike_lane::transport::Transport;
use turnpike_lane::waiting::Waited;

use super::open::{ConnectError, ConnectOptions, begin};
use crate::address::Address;
use crate::peer::picked::Picked;

/// A socket that exchanges datagrams with one peer. It must be used on the lane that opened it.
pub struct DatagramConnection {
    waited: Waited,
}

impl DatagramConnection {
    /// Opens a socket to a peer. This does not show whether the peer listens. Of the options, those
    /// of the local address and of buffers apply.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn open(picked: &Picked, options: &ConnectOptions<'_>) -> Result<Self, ConnectError> {
        Self::open_to(picked.address(), options)
    }

    /// As [`DatagramConnection::open`], to an address.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn open_to(address: &Address, options: &ConnectOptions<'_>) -> Result<Self, ConnectError> {
        let (socket, _) = begin(address, Kind::Datagram, options)?;
        Ok(Self {
            waited: Waited::new(Transport::plain(socket)),
        })
    }

    /// Sends a datagram, and waits while the socket is full.
    ///
    /// # Errors
    /// The socket's error, possibly of an earlier datagram: the peer does not listen.
    pub async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let cuts = Cell::new(false);
        let datagrams = || std::iter::once(bytes);
        let send = || datagram::send(self.as_fd(), datagrams(), Route::default(), &cuts);
        self.waited.when_writable(0, send).await.map(|_| ())
    }

    /// Waits for datagrams and calls `read`, which may find none.
    ///
    /// # Errors
    /// The error of `read`, possibly of a sent datagram: the peer does not listen.
    pub async fn receive<T>(
        &self,
        mut read: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.waited.when_readable(|| read(self.as_fd())).await
    }

    /// Records that the last read has emptied the socket.
    pub fn emptied(&self) {
        self.waited.emptied();
    }
}

impl AsFd for DatagramConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waited.transport().as_fd()
    }
}
