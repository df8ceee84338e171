//! A connection to a peer: plain TCP, a unix socket or TLS, alike to whoever reads and writes.
//!
//! Reads and writes are tried first and waited for only when the socket would block, so that what
//! is ready costs one system call. Methods take `&self`: a request may be sent while its answer
//! is read already. At most one read and one write at a time.

mod datagrams;
mod http2;
mod open;
#[cfg(test)]
mod tests;

use std::cell::{Cell, OnceCell, RefCell};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use turnpike_lane::event_loop::{WatchedSocket, WatchedSockets};
use turnpike_lane::sys::socket::More;
use turnpike_lane::timeout::within;
use turnpike_lane::transport::Transport;
use turnpike_lane::waiting::{Input, Waited};
use turnpike_wire::h2::ClientConnection;

pub use datagrams::DatagramConnection;
pub(crate) use open::Key;
pub use open::{ConnectError, ConnectOptions, Tls};

/// A connection to a peer. Must be used on the lane that opened it.
pub struct Connection {
    waited: Waited,
    /// The place in the lane's own event loop, once it was waited for there.
    watched_socket: OnceCell<WatchedSocket>,
    key: Key,
    http2: Option<Rc<RefCell<ClientConnection>>>,
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

    /// Whether bytes go as they are: nothing has to be sent to read.
    pub fn is_plain(&self) -> bool {
        self.transport().is_plain()
    }

    /// Takes its place in the lane's own event loop, where it is waited for without a task. The
    /// runtime forgets it meanwhile.
    ///
    /// # Errors
    /// The error of epoll_ctl(2) when it is watched there for the first time.
    pub fn watch(&mut self, watched_sockets: &WatchedSockets) -> io::Result<()> {
        if self.watched_socket.get().is_none() {
            let watched_socket = watched_sockets.admit(self.as_fd())?;
            self.watched_socket.get_or_init(|| watched_socket);
        }
        self.waited.unregister();
        Ok(())
    }

    /// That place, where it has one.
    pub fn watched_socket(&self) -> Option<&WatchedSocket> {
        self.watched_socket.get()
    }

    /// Reads behind what `buffer` holds, up to `bytes_max`, without waiting. 0 is the end.
    ///
    /// # Errors
    /// What the socket says; `WouldBlock` when there is nothing to read; of TLS `InvalidData`, and
    /// `UnexpectedEof` where the connection ended but the session did not.
    pub fn try_read(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        let received = self.transport().try_read(buffer, bytes_max)?;
        let all = self.bytes_received.get() + received as u64;
        self.bytes_received.set(all);
        Ok(received)
    }

    /// As [`Connection::try_read`], but waits until there is something to read.
    ///
    /// # Errors
    /// As there; `TimedOut` after `timeout_ms` (0 waits for ever).
    pub async fn read(
        &self,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
        timeout_ms: u64,
    ) -> io::Result<usize> {
        if !self.is_plain() {
            match self.try_read(buffer, bytes_max) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
        within(timeout_ms, async {
            loop {
                // An answer may wait for what has not left yet.
                let has_unsent = self.transport().has_unsent();
                let read = || self.try_read(buffer, bytes_max);
                let received = tokio::select! {
                    biased;
                    flushed = self.flush(0), if has_unsent => {
                        flushed?;
                        continue;
                    }
                    received = self.waited.when_readable(read) => received?,
                };
                // Waiting for more need not ask the socket again first. What comes later raises a
                // new event; the end of the stream stays raised.
                if self.transport().was_emptied(received, bytes_max) {
                    self.waited.emptied();
                }
                return Ok(received);
            }
        })
        .await
    }

    /// Sends what the socket takes, without waiting. Of TLS, what was taken may still wait here to
    /// be sent: [`Connection::flush`].
    ///
    /// # Errors
    /// What the socket says; `WouldBlock` when it takes nothing.
    pub fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let sent = self.transport().try_write(slices, More::No)?;
        self.bytes_sent.set(self.bytes_sent.get() + sent as u64);
        Ok(sent)
    }

    /// Sends what the socket takes of these, waiting while it takes nothing.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms` (0 waits for ever).
    pub async fn write(&self, slices: &[IoSlice<'_>], timeout_ms: u64) -> io::Result<usize> {
        self.waited
            .when_writable(timeout_ms, || self.try_write(slices))
            .await
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
        self.flush(timeout_ms).await
    }

    /// Sends what TLS holds back; nothing to do for others.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms` (0 waits for ever).
    pub async fn flush(&self, timeout_ms: u64) -> io::Result<()> {
        self.waited.flush(timeout_ms).await
    }

    /// Waits until the peer sends or closes; nothing is read.
    ///
    /// # Errors
    /// What the runtime says.
    pub async fn readable(&self) -> io::Result<()> {
        self.waited.readable().await
    }

    /// Ends our side; the peer may still send.
    ///
    /// # Errors
    /// What the socket says.
    pub fn shutdown_write(&self) -> io::Result<()> {
        self.transport().shutdown_write()
    }

    fn transport(&self) -> &Transport {
        self.waited.transport()
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
        let mut ask = ask;
        if let Some(watched_socket) = self.watched_socket.get() {
            // The lane's own loop has seen all that its last turn could.
            if watched_socket.is_closed() {
                return false;
            }
            ask |= watched_socket.take_spoken();
        } else {
            match self.waited.input_seen() {
                Some(Input::Ended) => return false,
                // It may be readable since before its last read emptied it.
                Some(Input::Possible) => ask = true,
                None => {}
            }
        }
        if !ask {
            return true;
        }
        // Of TLS, session tickets may come at any time, and are no answer.
        matches!(self.transport().peek(), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport().as_fd()
    }
}
