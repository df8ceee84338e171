//! The client of a session: its connection, read and written with waits on the lane's runtime.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use turnpike_lane::sys::socket::More;
use turnpike_lane::sys::socket_option;
use turnpike_lane::transport::Transport;
use turnpike_lane::waiting::Waited;

/// A client's connection. At most one read and one write at a time.
pub struct Client {
    waited: Waited,
}

impl Client {
    /// The client at the other end of a transport.
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            waited: Waited::new(transport),
        }
    }

    /// Waits for bytes and appends up to `bytes_max` of them. 0 is the end.
    ///
    /// # Errors
    /// What the socket says.
    pub async fn read(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        let transport = self.waited.transport();
        let read = || transport.try_read(buffer, bytes_max);
        let received = self.waited.when_readable(read).await?;
        if transport.was_emptied(received, bytes_max) {
            self.waited.emptied();
        }
        Ok(received)
    }

    /// Sends what the socket takes of these, waiting while it takes nothing.
    ///
    /// # Errors
    /// What the socket says.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let transport = self.waited.transport();
        let write = || transport.try_write(&[IoSlice::new(bytes)], More::No);
        self.waited.when_writable(0, write).await
    }

    /// Sends without waiting, as far as the socket takes it.
    ///
    /// # Errors
    /// What the socket says.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let transport = self.waited.transport();
        transport.try_write(&[IoSlice::new(bytes)], More::No)
    }

    /// Ends our side; the client may still send.
    ///
    /// # Errors
    /// What the socket says.
    pub fn shutdown_write(&self) -> io::Result<()> {
        self.waited.transport().shutdown_write()
    }

    /// Sends small pieces at once. A unix socket has no such option.
    pub fn set_no_delay(&self) {
        let _ = socket_option::set_no_delay(self.waited.transport().as_fd(), true);
    }
}
