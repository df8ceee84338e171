//! One end of a relay, for code that passes bytes on and must not have the socket itself.

use std::io;

use super::Waited;
use crate::sys::pipe::Pipe;

/// A connection's reads and writes, for a relay that counts its bytes by itself. At most one read
/// and one write at a time.
#[derive(Clone, Copy)]
pub struct RelayEnd<'a>(&'a Waited);

impl<'a> RelayEnd<'a> {
    /// The end of a relay that this transport is.
    pub fn new(waited: &'a Waited) -> Self {
        Self(waited)
    }

    /// Whether there is no TLS session: bytes may go through a pipe.
    pub fn is_plain(self) -> bool {
        self.0.transport().is_plain()
    }

    /// Waits until there may be input.
    ///
    /// # Errors
    /// As for [`Waited::readable`].
    pub async fn readable(self) -> io::Result<()> {
        self.0.readable().await
    }

    /// Waits for input and appends up to `bytes_max` of it. 0 is the end.
    ///
    /// # Errors
    /// As for [`Waited::read`].
    pub async fn read(self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        self.0.read(buffer, bytes_max).await
    }

    /// Sends what the socket takes of these, waiting while it takes nothing.
    ///
    /// # Errors
    /// As for [`Waited::write`].
    pub async fn write(self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).await
    }

    /// Moves up to `bytes_max` into a pipe, which is empty, without waiting. 0 is the end.
    ///
    /// # Errors
    /// As for [`Waited::try_fill`].
    pub fn try_fill(self, pipe: &Pipe, bytes_max: usize) -> io::Result<usize> {
        self.0.try_fill(pipe, bytes_max)
    }

    /// Sends as much of a pipe's bytes as the socket takes, and waits while it takes nothing.
    ///
    /// # Errors
    /// As for [`Waited::drain`].
    pub async fn drain(self, pipe: &Pipe, bytes: usize) -> io::Result<usize> {
        self.0.drain(pipe, bytes).await
    }

    /// Ends our side; the peer may still send.
    ///
    /// # Errors
    /// The socket's error.
    pub fn shutdown_write(self) -> io::Result<()> {
        self.0.transport().shutdown_write()
    }
}
