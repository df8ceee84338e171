//! A connection to a peer: plain TCP, a unix socket or TLS, alike to whoever reads and writes.
//!
//! Reads and writes are tried first and waited for only when the socket would block, so that what
//! is ready costs one system call. Methods take `&self`: a request may be sent while its answer
//! is read already. At most one read and one write at a time.

mod open;
#[cfg(test)]
mod tests;

use std::cell::{Cell, OnceCell, RefCell};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use turnpike_lane::event_loop::{WatchedSocket, WatchedSockets};
use turnpike_lane::sys::readiness;
use turnpike_lane::sys::socket::{self, More};
use turnpike_lane::timeout::within;

pub(crate) use open::Key;
pub use open::{ConnectError, ConnectOptions, Tls};

use crate::tls::Session;

/// A connection to a peer. Must be used on the lane that opened it.
pub struct Connection {
    socket: Rc<OwnedFd>,
    /// The registration with the runtime, while something waits for it there.
    runtime: OnceCell<AsyncFd<Rc<OwnedFd>>>,
    /// Never borrowed across a wait.
    tls: Option<RefCell<Session>>,
    /// The place in the lane's own event loop, once it was waited for there.
    watched_socket: OnceCell<WatchedSocket>,
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

    /// Whether bytes go as they are: nothing has to be sent to read.
    pub fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Takes its place in the lane's own event loop, where it is waited for without a task. The
    /// runtime forgets it meanwhile.
    ///
    /// # Errors
    /// What epoll_ctl(2) says when it is watched there for the first time.
    pub fn watch(&mut self, watched_sockets: &WatchedSockets) -> io::Result<()> {
        if self.watched_socket.get().is_none() {
            let watched_socket = watched_sockets.admit(self.socket.as_fd())?;
            self.watched_socket.get_or_init(|| watched_socket);
        }
        drop(self.runtime.take());
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
        let received = match &self.tls {
            None => socket::receive_append(self.as_fd(), buffer, bytes_max)?,
            Some(tls) => tls.borrow_mut().read(self.as_fd(), buffer, bytes_max)?,
        };
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
        if self.tls.is_some() {
            match self.try_read(buffer, bytes_max) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
        within(timeout_ms, async {
            loop {
                if self.has_unsent() {
                    // An answer may wait for what has not left yet.
                    tokio::select! {
                        biased;
                        flushed = self.flush(0) => flushed?,
                        ready = self.runtime()?.readable() => drop(ready?),
                    }
                }
                let mut ready = self.runtime()?.readable().await?;
                match ready.try_io(|_| self.try_read(buffer, bytes_max)) {
                    Ok(Ok(received)) => {
                        // The socket is empty: waiting for more need not ask it again first. What
                        // comes later raises a new event; the end of the stream stays raised.
                        if self.tls.is_none() && received > 0 && received < bytes_max {
                            ready.clear_ready();
                        }
                        return Ok(received);
                    }
                    Ok(Err(error)) => return Err(error),
                    Err(_would_block) => {}
                }
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
        let sent = match (&self.tls, slices) {
            (None, [slice]) => socket::send(self.as_fd(), slice, More::No)?,
            (None, slices) => socket::send_vectored(self.as_fd(), slices, More::No)?,
            (Some(tls), slices) => tls.borrow_mut().write(self.as_fd(), slices)?,
        };
        self.bytes_sent.set(self.bytes_sent.get() + sent as u64);
        Ok(sent)
    }

    /// Sends what the socket takes of these, waiting while it takes nothing.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` after `timeout_ms` (0 waits for ever).
    pub async fn write(&self, slices: &[IoSlice<'_>], timeout_ms: u64) -> io::Result<usize> {
        self.when_writable(timeout_ms, || self.try_write(slices))
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
        let Some(tls) = self.tls.as_ref().filter(|_| self.has_unsent()) else {
            return Ok(());
        };
        self.when_writable(timeout_ms, || tls.borrow_mut().flush(self.as_fd()))
            .await
    }

    /// Waits until the peer sends or closes; nothing is read.
    ///
    /// # Errors
    /// What the runtime says.
    pub async fn readable(&self) -> io::Result<()> {
        self.runtime()?.readable().await.map(|_| ())
    }

    /// Ends our side; the peer may still send.
    ///
    /// # Errors
    /// What the socket says.
    pub fn shutdown_write(&self) -> io::Result<()> {
        if let Some(tls) = &self.tls {
            tls.borrow_mut().close(self.as_fd());
        }
        socket::shutdown(self.as_fd(), std::net::Shutdown::Write)
    }

    /// The registration with the runtime, made when something has to be waited for.
    fn runtime(&self) -> io::Result<&AsyncFd<Rc<OwnedFd>>> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let runtime = readiness::register_shared(Rc::clone(&self.socket), INTEREST)?;
        Ok(self.runtime.get_or_init(|| runtime))
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    fn has_unsent(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.borrow().has_unsent())
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
        let mut context = Context::from_waker(Waker::noop());
        let mut ask = ask;
        if let Some(watched_socket) = self.watched_socket.get() {
            // The lane's own loop has seen all that its last turn could.
            if watched_socket.is_closed() {
                return false;
            }
            ask |= watched_socket.take_spoken();
        } else if let Some(runtime) = self.runtime.get()
            && let Poll::Ready(ready) = runtime.poll_read_ready(&mut context)
        {
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
        let nothing = match &self.tls {
            None => socket::peek(self.as_fd(), &mut [0]),
            // Session tickets may come at any time, and are no answer.
            Some(tls) => tls.borrow_mut().read(self.as_fd(), &mut Vec::new(), 1),
        };
        matches!(nothing, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Tries, and waits until the socket is writable while it would block.
    async fn when_writable<T>(
        &self,
        timeout_ms: u64,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
        within(timeout_ms, async {
            loop {
                let mut ready = self.runtime()?.writable().await?;
                if let Ok(result) = ready.try_io(|_| attempt()) {
                    return result;
                }
            }
        })
        .await
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.get_mut().close(self.socket.as_fd());
        }
    }
}

/// What a socket is watched for while it lives.
const INTEREST: Interest = Interest::READABLE.add(Interest::WRITABLE);
