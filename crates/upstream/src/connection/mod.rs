//! A connection to a peer: plain TCP, a unix socket or TLS, alike to whoever reads and writes.
//!
//! Reads and writes are tried first and waited for only when the socket would block, so that what
//! is ready costs one system call. Methods take `&self`: a request may be sent while its answer
//! is read already. At most one read and one write at a time.

mod open;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use turnpike_lane::sys::socket::{self, More};

pub(crate) use open::Key;
pub use open::{ConnectError, ConnectOptions};

/// A connection to a peer. Must be used on the lane that opened it.
pub struct Connection {
    socket: AsyncFd<OwnedFd>,
    key: Key,
    opened_ms: u64,
    requests: Cell<u64>,
    bytes_sent: Cell<u64>,
    bytes_received: Cell<u64>,
}

impl Connection {
    /// Requests so far, the present one counted.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// Whether it served a request before: a failure to send or to read the first byte then says
    /// that the peer had closed it meanwhile.
    pub fn is_reused(&self) -> bool {
        self.requests.get() > 1
    }

    /// When it was opened, in monotonic milliseconds.
    pub fn opened_ms(&self) -> u64 {
        self.opened_ms
    }

    /// Bytes sent for the present request (`$upstream_bytes_sent`).
    pub fn bytes_sent(&self) -> u64 {
        self.bytes_sent.get()
    }

    /// Bytes received for the present request (`$upstream_bytes_received`).
    pub fn bytes_received(&self) -> u64 {
        self.bytes_received.get()
    }

    /// Reads behind what `buffer` holds, up to `bytes_max`, without waiting. 0 is the end.
    ///
    /// # Errors
    /// What the socket says; `WouldBlock` when there is nothing to read.
    pub fn try_read(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        let received = socket::receive_append(self.as_fd(), buffer, bytes_max)?;
        self.bytes_received
            .set(self.bytes_received.get() + received as u64);
        Ok(received)
    }

    /// As [`Connection::try_read`], but waits until there is something to read.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms` (0 waits for ever).
    pub async fn read(
        &self,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
        timeout_ms: u64,
    ) -> io::Result<usize> {
        loop {
            let mut ready = within(timeout_ms, self.socket.readable()).await?;
            let read = ready.try_io(|_| self.try_read(buffer, bytes_max));
            match read {
                Ok(Ok(received)) => {
                    // The socket is empty: waiting for more need not ask it again first. What
                    // comes later raises a new event; the end of the stream stays raised.
                    if received > 0 && received < bytes_max {
                        ready.clear_ready();
                    }
                    return Ok(received);
                }
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
    }

    /// Sends what the socket takes, without waiting.
    ///
    /// # Errors
    /// What the socket says; `WouldBlock` when it takes nothing.
    pub fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let sent = match slices {
            [slice] => socket::send(self.as_fd(), slice, More::No)?,
            slices => socket::send_vectored(self.as_fd(), slices, More::No)?,
        };
        self.bytes_sent.set(self.bytes_sent.get() + sent as u64);
        Ok(sent)
    }

    /// Sends what the socket takes of these, waiting while it takes nothing.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms` (0 waits for ever).
    pub async fn write(&self, slices: &[IoSlice<'_>], timeout_ms: u64) -> io::Result<usize> {
        loop {
            match self.try_write(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            let mut ready = within(timeout_ms, self.socket.writable()).await?;
            match ready.try_io(|_| self.try_write(slices)) {
                Ok(result) => return result,
                Err(_would_block) => {}
            }
        }
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` when it took nothing for `timeout_ms` (0 waits for ever).
    pub async fn write_all(&self, mut bytes: &[u8], timeout_ms: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = self.write(&[IoSlice::new(bytes)], timeout_ms).await?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// Waits until the peer sends or closes; nothing is read.
    ///
    /// # Errors
    /// What the runtime says.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await.map(|_| ())
    }

    /// Ends our side; the peer may still send.
    ///
    /// # Errors
    /// What the socket says.
    pub fn shutdown_write(&self) -> io::Result<()> {
        socket::shutdown(self.as_fd(), std::net::Shutdown::Write)
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Begins another request.
    pub(crate) fn used_again(&self) {
        self.requests.set(self.requests.get() + 1);
        self.bytes_sent.set(0);
        self.bytes_received.set(0);
    }

    /// Whether nothing came and the peer has not closed: by what the runtime has seen, and by
    /// what the kernel says where `ask` is set.
    pub(crate) fn looks_idle(&self, ask: bool) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut ask = ask;
        if let std::task::Poll::Ready(ready) = self.socket.poll_read_ready(&mut context) {
            match ready {
                Ok(ready) if ready.ready().is_read_closed() => return false,
                // It may be readable since before its last read emptied it.
                Ok(_) => ask = true,
                Err(_) => return false,
            }
        }
        if !ask {
            return true;
        }
        let peeked = socket::peek(self.as_fd(), &mut [0]);
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until a connection that is being made is there.
    async fn established(&self, timeout_ms: u64) -> io::Result<()> {
        loop {
            match socket::send(self.as_fd(), &[], More::No) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other.map(|_| ()),
            }
            let mut ready = within(timeout_ms, self.socket.writable()).await?;
            match ready.try_io(|_| socket::send(self.as_fd(), &[], More::No)) {
                Ok(result) => return result.map(|_| ()),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

/// What a socket is watched for while it lives.
const INTEREST: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// Bounds a wait; 0 waits for ever.
async fn within<T>(timeout_ms: u64, wait: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    if timeout_ms == 0 {
        return wait.await;
    }
    match tokio::time::timeout(Duration::from_millis(timeout_ms), wait).await {
        Ok(result) => result,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
