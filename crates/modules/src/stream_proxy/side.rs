//! What a relay needs of its two ends, which are alike: the client and the server.

use std::io::{self, IoSlice};

use turnpike_lane::sys::pipe::Pipe;
use turnpike_stream::client::Connected;
use turnpike_upstream::Connection;

/// An end of a relay. The errors are its socket's.
pub(super) trait Side {
    /// Waits for bytes and appends up to `bytes_max` of them. 0 is the end.
    async fn read(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize>;
    /// Sends what it takes of these, waiting while it takes nothing.
    async fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Waits until bytes or the end have come.
    async fn readable(&self) -> io::Result<()>;
    /// Moves up to `bytes_max` into a pipe. 0 is the end, `WouldBlock`: nothing has come.
    fn try_fill(&self, pipe: &Pipe, bytes_max: usize) -> io::Result<usize>;
    /// Sends what it takes of these bytes of a pipe, waiting while it takes nothing.
    async fn drain(&self, pipe: &Pipe, bytes: usize) -> io::Result<usize>;
    /// Whether bytes go as they are, without TLS.
    fn is_plain(&self) -> bool;
    /// Ends our side; it may still send.
    fn shutdown_write(&self) -> io::Result<()>;
}

impl Side for Connected {
    async fn read(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        self.read(buffer, bytes_max).await
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes).await
    }

    async fn readable(&self) -> io::Result<()> {
        self.readable().await
    }

    fn try_fill(&self, pipe: &Pipe, bytes_max: usize) -> io::Result<usize> {
        self.try_fill(pipe, bytes_max)
    }

    async fn drain(&self, pipe: &Pipe, bytes: usize) -> io::Result<usize> {
        self.drain(pipe, bytes).await
    }

    fn is_plain(&self) -> bool {
        self.is_plain()
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.shutdown_write()
    }
}

impl Side for Connection {
    async fn read(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        self.read(buffer, bytes_max, 0).await
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.write(&[IoSlice::new(bytes)], 0).await?;
        self.flush(0).await?;
        Ok(sent)
    }

    async fn readable(&self) -> io::Result<()> {
        self.readable().await
    }

    fn try_fill(&self, pipe: &Pipe, bytes_max: usize) -> io::Result<usize> {
        self.try_fill(pipe, bytes_max)
    }

    async fn drain(&self, pipe: &Pipe, bytes: usize) -> io::Result<usize> {
        self.drain(pipe, bytes).await
    }

    fn is_plain(&self) -> bool {
        self.is_plain()
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.shutdown_write()
    }
}
