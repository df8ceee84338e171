//! A connection to a peer: plain TCP, a unix socket or TLS, with one interface.
//!
//! Reads and writes are tried first, and wait only if the socket would block, so that a ready
//! operation costs one system call. Methods take `&self`: a request may be sent while its response
//! is already read. There may be one read and one write at a time.

mod datagrams;
mod open;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use turnpike_lane::event_loop::{WatchedSocket, WatchedSockets};
use turnpike_lane::sys::file;
use turnpike_lane::sys::socket::More;
use turnpike_lane::sys::socket_option;
use turnpike_lane::timeout::within;
use turnpike_lane::transport::Transport;
use turnpike_lane::waiting::{Input, RelayEnd, Waited};

pub use datagrams::DatagramConnection;
pub(crate) use open::Key;
pub use open::{ConnectError, ConnectOptions, Tls, UPSTREAM_TIMED_OUT, begin_connecting};

/// A connection to a peer. It must be used on the lane that opened it.
pub struct Connection {
    waited: Waited,
    /// The registration with the lane's own event loop, after the first wait there.
    watched_socket: OnceCell<WatchedSocket>,
    key: Key,
    protocol_state: Option<Rc<dyn Any>>,
    opened_ms: u64,
    /// Whether connecting is under way, as far as is known.
    connecting: Cell<bool>,
    /// Whether the kernel holds a short piece back while the one before is not acknowledged
    /// (Nagle's algorithm). Most requests are one piece, which nothing delays.
    delays: Cell<bool>,
    requests: Cell<u64>,
    bytes_sent: Cell<u64>,
    bytes_received: Cell<u64>,
}

impl Connection {
    /// The number of requests, with the current one.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// Whether it served a request before: if sending or reading the first byte fails, the peer had
    /// probably closed it meanwhile.
    pub fn is_reused(&self) -> bool {
        self.requests.get() > 1
    }

    /// What the caller's protocol keeps with the connection, where it was opened with that.
    pub fn protocol_state<T: 'static>(&self) -> Option<Rc<T>> {
        let state = Rc::clone(self.protocol_state.as_ref()?);
        state.downcast().ok()
    }

    /// The time of its opening, in monotonic milliseconds.
    pub fn opened_ms(&self) -> u64 {
        self.opened_ms
    }

    /// Whether connecting is under way. A write tells: it fails with `WouldBlock` until then, and
    /// with the error of connecting.
    pub fn is_connecting(&self) -> bool {
        self.connecting.get()
    }

    /// The bytes sent for the current request (`$upstream_bytes_sent`).
    pub fn bytes_sent(&self) -> u64 {
        self.bytes_sent.get()
    }

    /// The bytes received for the current request (`$upstream_bytes_received`).
    pub fn bytes_received(&self) -> u64 {
        self.bytes_received.get()
    }

    /// Whether there is no TLS session: reading never needs sending.
    pub fn is_plain(&self) -> bool {
        self.transport().is_plain()
    }

    /// Registers with the lane's own event loop, which can wait without a task. The runtime drops
    /// its registration meanwhile.
    ///
    /// # Errors
    /// The error of epoll_ctl(2) at the first registration.
    pub fn watch(&mut self, watched_sockets: &WatchedSockets) -> io::Result<()> {
        if self.watched_socket.get().is_none() {
            let watched_socket = if self.is_connecting() {
                watched_sockets.admit_connecting(self.as_fd())?
            } else {
                watched_sockets.admit(self.as_fd())?
            };
            self.watched_socket.get_or_init(|| watched_socket);
        }
        self.waited.unregister();
        Ok(())
    }

    /// The registration with the lane's event loop, if any.
    pub fn watched_socket(&self) -> Option<&WatchedSocket> {
        self.watched_socket.get()
    }

    /// Reads up to `bytes_max` after the content of `buffer`, without waiting. 0 is the end.
    ///
    /// # Errors
    /// The socket's error; `WouldBlock` if there is no input. For TLS: `InvalidData`, and
    /// `UnexpectedEof` if the connection ended before the session.
    pub fn try_read(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        let received = self.transport().try_read(buffer, bytes_max)?;
        let all = self.bytes_received.get() + received as u64;
        self.bytes_received.set(all);
        Ok(received)
    }

    /// As [`Connection::try_read`], but waits for input.
    ///
    /// # Errors
    /// As there; `TimedOut` after `timeout_ms` (0 waits without limit).
    pub async fn read(
        &self,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
        timeout_ms: u64,
    ) -> io::Result<usize> {
        let received = within(timeout_ms, self.waited.read(buffer, bytes_max)).await?;
        let all = self.bytes_received.get() + received as u64;
        self.bytes_received.set(all);
        Ok(received)
    }

    /// Acknowledges what comes without delay, until something is sent: the peer may hold back the
    /// rest of what it has begun until then (Nagle's algorithm, RFC 1122 section 4.2.3.4). For TCP;
    /// a socket of another kind refuses it, which changes nothing.
    pub fn acknowledge_without_delay(&self) {
        let _ = socket_option::acknowledge_without_delay(self.as_fd());
    }

    /// Sends as much as the socket takes, without waiting. With TLS, a part of it may stay in the
    /// session: [`Connection::flush`].
    ///
    /// # Errors
    /// The socket's error; `WouldBlock` if it takes nothing.
    pub fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.bytes_sent.get() > 0 {
            self.send_without_delay()?;
        }
        let sent = self.transport().try_write(slices, More::No)?;
        self.connecting.set(false);
        self.bytes_sent.set(self.bytes_sent.get() + sent as u64);
        Ok(sent)
    }

    /// Tries an operation, and waits as long as the socket takes nothing.
    ///
    /// # Errors
    /// That of the operation; `TimedOut` after `timeout_ms` (0 waits without limit).
    pub async fn when_writable<T>(
        &self,
        timeout_ms: u64,
        operation: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        self.waited.when_writable(timeout_ms, operation).await
    }

    /// Sends as much of the slices as the socket takes, and waits while it takes nothing.
    ///
    /// # Errors
    /// The socket's error; `TimedOut` after `timeout_ms` (0 waits without limit).
    pub async fn write(&self, slices: &[IoSlice<'_>], timeout_ms: u64) -> io::Result<usize> {
        self.waited
            .when_writable(timeout_ms, || self.try_write(slices))
            .await
    }

    /// Sends at most `bytes_max` bytes of a file from `offset` on, by sendfile(2), and waits while
    /// the socket takes nothing. 0: the file ends before them.
    ///
    /// # Errors
    /// The socket's or the file's error; `TimedOut` after `timeout_ms` (0 waits without limit);
    /// `Unsupported` for TLS.
    pub async fn send_file(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes_max: usize,
        timeout_ms: u64,
    ) -> io::Result<usize> {
        if !self.is_plain() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if self.bytes_sent.get() > 0 {
            self.send_without_delay()?;
        }
        let send = || file::send_file(self.as_fd(), file, offset, bytes_max);
        let sent = self.waited.when_writable(timeout_ms, send).await?;
        self.bytes_sent.set(self.bytes_sent.get() + sent as u64);
        Ok(sent)
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// The socket's error; `TimedOut` if it took nothing for `timeout_ms` (0 waits without limit).
    pub async fn write_all(&self, mut bytes: &[u8], timeout_ms: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = self.write(&[IoSlice::new(bytes)], timeout_ms).await?;
            bytes = &bytes[sent..];
        }
        self.flush(timeout_ms).await
    }

    /// Sends the bytes that a TLS session keeps; does nothing for others.
    ///
    /// # Errors
    /// The socket's error; `TimedOut` after `timeout_ms` (0 waits without limit).
    pub async fn flush(&self, timeout_ms: u64) -> io::Result<()> {
        self.waited.flush(timeout_ms).await
    }

    /// Lets no piece wait for the acknowledgement of the one before.
    fn send_without_delay(&self) -> io::Result<()> {
        if self.delays.replace(false) {
            socket_option::set_no_delay(self.as_fd(), true)
        } else {
            Ok(())
        }
    }

    /// The peer's end of a relay.
    pub fn relay_end(&self) -> RelayEnd<'_> {
        // What passes is no request, and comes in pieces. Without the option they pass too, later.
        let _ = self.send_without_delay();
        RelayEnd::new(&self.waited)
    }

    /// Counts bytes that were received without being read.
    pub fn passed(&self, bytes: usize) {
        self.bytes_received
            .set(self.bytes_received.get() + bytes as u64);
    }

    /// Whether there is input, which is left where it is.
    pub fn has_input(&self) -> bool {
        matches!(self.transport().peek(), Ok(1..))
    }

    /// Ends our side; the peer may still send.
    ///
    /// # Errors
    /// The socket's error.
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

    /// Whether there is no input and the peer has not closed: by the runtime's state, and by the
    /// kernel's if `ask` is set.
    pub(crate) fn looks_idle(&self, ask: bool) -> bool {
        let mut ask = ask;
        if let Some(watched_socket) = self.watched_socket.get() {
            // The lane's own loop has processed all events of its last turn.
            if watched_socket.is_closed() {
                return false;
            }
            ask |= watched_socket.take_spoken();
        } else {
            match self.waited.input_seen() {
                Some(Input::Ended) => return false,
                // The event may be from before its last read, which emptied it.
                Some(Input::Possible) => ask = true,
                None => {}
            }
        }
        if !ask {
            return true;
        }
        // With TLS, session tickets may come at any time, and are not a response.
        matches!(self.transport().peek(), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport().as_fd()
    }
}
