//! Waiting for a transport on the lane's runtime: an operation is tried first, and the wait begins
//! only if it would block, so that a ready operation costs one system call.

mod relay_end;

use std::cell::OnceCell;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

use crate::sys::pipe::Pipe;
use crate::sys::readiness;
use crate::sys::socket::More;
use crate::timeout::within;
use crate::transport::{Handshake, HandshakeError, Transport};
use crate::turns;
pub use relay_end::RelayEnd;

/// The events that end a wait for input. An unreachable UDP port causes an error event only.
const INPUT: Interest = Interest::READABLE.add(Interest::ERROR);

/// A transport with waits. There may be one wait for reading and one for writing at a time.
pub struct Waited {
    transport: Rc<Transport>,
    /// The registration with the runtime, made at the first wait.
    registration: OnceCell<AsyncFd<Rc<Transport>>>,
    interest: Interest,
}

impl Waited {
    /// A transport with waits in both directions.
    pub fn new(transport: Transport) -> Self {
        Self::with_interest(transport, INPUT.add(Interest::WRITABLE))
    }

    /// A transport whose input is watched elsewhere: it only waits for space to write.
    pub fn for_writing(transport: Transport) -> Self {
        Self::with_interest(transport, Interest::WRITABLE)
    }

    fn with_interest(transport: Transport, interest: Interest) -> Self {
        Self {
            transport: Rc::new(transport),
            registration: OnceCell::new(),
            interest,
        }
    }

    /// The transport.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Returns the transport.
    pub fn into_transport(self) -> Option<Transport> {
        drop(self.registration);
        Rc::into_inner(self.transport)
    }

    /// Deregisters the transport until the next wait.
    pub fn unregister(&mut self) {
        drop(self.registration.take());
    }

    /// Waits until there may be input.
    ///
    /// # Errors
    /// The runtime's error.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready_to_read().await.map(|_| ())
    }

    /// Waits for input and appends up to `bytes_max` of it. 0 is the end. Meanwhile what a TLS
    /// session keeps is sent, since the peer may wait for it. Limit it with [`crate::timeout`].
    ///
    /// # Errors
    /// As for [`Transport::try_read`], and the runtime's.
    pub async fn read(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        if self.transport.has_read_result() {
            // The socket tells nothing of what has left it already.
            return self.transport.try_read(buffer, bytes_max);
        }
        loop {
            let has_unsent = self.transport.has_unsent();
            let read = || self.transport.try_read(buffer, bytes_max);
            let received = tokio::select! {
                biased;
                flushed = self.flush(0), if has_unsent => {
                    flushed?;
                    continue;
                }
                received = self.when_readable(read) => received?,
            };
            // A wait for more need not try the socket first. Later input raises a new event; the
            // end of the stream stays raised.
            if self.transport.was_emptied(received, bytes_max) {
                self.emptied();
            }
            return Ok(received);
        }
    }

    /// Sends what the socket takes of these, waiting while it takes nothing.
    ///
    /// # Errors
    /// As for [`Transport::try_write`], and the runtime's.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let write = || self.transport.try_write(&[IoSlice::new(bytes)], More::No);
        let sent = self.when_writable(0, write).await?;
        self.flush(0).await?;
        Ok(sent)
    }

    /// Waits until the socket may take bytes.
    ///
    /// # Errors
    /// The runtime's error; `TimedOut` after `timeout_ms` (0 waits without limit).
    pub async fn writable(&self, timeout_ms: u64) -> io::Result<()> {
        within(timeout_ms, async {
            self.ready_to_write().await.map(|_| ())
        })
        .await
    }

    /// Waits for input, then tries, until `attempt` no longer blocks. Limit it with
    /// [`crate::timeout`].
    ///
    /// # Errors
    /// The error of the attempt or the runtime.
    pub async fn when_readable<T>(
        &self,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            let mut ready = self.ready_to_read().await?;
            if let Ok(result) = ready.try_io(|_| attempt()) {
                return result;
            }
        }
    }

    /// Tries, and waits until the socket is writable while it would block.
    ///
    /// # Errors
    /// The error of the attempt; `TimedOut` after `timeout_ms` (0 waits without limit).
    pub async fn when_writable<T>(
        &self,
        timeout_ms: u64,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        turns::take().await;
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
        within(timeout_ms, async {
            loop {
                let mut ready = self.ready_to_write().await?;
                if let Ok(result) = ready.try_io(|_| attempt()) {
                    return result;
                }
            }
        })
        .await
    }

    /// Moves up to `bytes_max` into a pipe, which is empty, without waiting. 0 is the end.
    ///
    /// # Errors
    /// As for [`Transport::try_fill`]; after `WouldBlock` a wait is for a new event.
    pub fn try_fill(&self, pipe: &Pipe, bytes_max: usize) -> io::Result<usize> {
        let filled = self.transport.try_fill(pipe, bytes_max);
        if matches!(&filled, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            self.emptied();
        }
        filled
    }

    /// Sends as much of a pipe's bytes as the socket takes, and waits while it takes nothing.
    ///
    /// # Errors
    /// As for [`Transport::try_drain`].
    pub async fn drain(&self, pipe: &Pipe, bytes: usize) -> io::Result<usize> {
        self.when_writable(0, || self.transport.try_drain(pipe, bytes))
            .await
    }

    /// Completes the handshake of a TLS session. Limit it with [`crate::timeout`].
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub async fn handshake(&self) -> Result<(), HandshakeError> {
        let mut seen: Option<(Handshake, AsyncFdReadyGuard<'_, Rc<Transport>>)> = None;
        loop {
            let step = self.transport.handshake()?;
            if step == Handshake::Done {
                // The event stays: there may be more in the socket than the session has taken.
                return Ok(());
            }
            // Since that event the session has found the socket to block.
            if let Some((_, mut ready)) = seen.take_if(|(waited_for, _)| *waited_for == step) {
                ready.clear_ready();
            }
            let ready = match step {
                Handshake::WantsWrite => self.ready_to_write().await,
                _ => self.ready_to_read().await,
            };
            seen = Some((step, ready.map_err(HandshakeError::Socket)?));
        }
    }

    /// Sends the bytes that a TLS session keeps; does nothing for a plain transport.
    ///
    /// # Errors
    /// The socket's error; `TimedOut` if it took nothing for `timeout_ms` (0 waits without limit).
    pub async fn flush(&self, timeout_ms: u64) -> io::Result<()> {
        if self.transport.has_unsent() {
            self.when_writable(timeout_ms, || self.transport.flush())
                .await
        } else {
            Ok(())
        }
    }

    /// Records that the socket was read empty: only a new event reports more input. An end stays
    /// recorded.
    pub fn emptied(&self) {
        let mut context = Context::from_waker(Waker::noop());
        if let Some(registration) = self.registration.get()
            && let Poll::Ready(Ok(mut ready)) = registration.poll_read_ready(&mut context)
        {
            ready.clear_ready();
        }
    }

    /// Records that the socket is full, as its last result showed; no event came since.
    pub fn filled(&self) {
        let mut context = Context::from_waker(Waker::noop());
        if let Some(registration) = self.registration.get()
            && let Poll::Ready(Ok(mut ready)) = registration.poll_write_ready(&mut context)
        {
            ready.clear_ready();
        }
    }

    /// The runtime's state of the input; `None` without a registration or an event.
    pub fn input_seen(&self) -> Option<Input> {
        let mut context = Context::from_waker(Waker::noop());
        match self.registration.get()?.poll_read_ready(&mut context) {
            Poll::Pending => None,
            Poll::Ready(Ok(ready)) if !ready.ready().is_read_closed() => Some(Input::Possible),
            Poll::Ready(_) => Some(Input::Ended),
        }
    }

    async fn ready_to_read(&self) -> io::Result<AsyncFdReadyGuard<'_, Rc<Transport>>> {
        let ready = self.registration()?.ready(INPUT).await?;
        turns::take().await;
        Ok(ready)
    }

    async fn ready_to_write(&self) -> io::Result<AsyncFdReadyGuard<'_, Rc<Transport>>> {
        let ready = self.registration()?.writable().await?;
        turns::take().await;
        Ok(ready)
    }

    fn registration(&self) -> io::Result<&AsyncFd<Rc<Transport>>> {
        if let Some(registration) = self.registration.get() {
            return Ok(registration);
        }
        let registration =
            readiness::register_transport(Rc::clone(&self.transport), self.interest)?;
        Ok(self.registration.get_or_init(|| registration))
    }
}

/// Bytes that count as one read or send of a task's turn.
const COUNTED_BYTES: usize = 16 * 1024;

/// Ends the turn of a task that has had many reads or sends in it, though it need not wait: a peer
/// that is always faster than the lane must not hold it. A wait for an [`AsyncFd`] does not count
/// by itself. `bytes`: what was read or sent at once counts by its length.
pub async fn leave_the_lane_to_others(bytes: usize) {
    for _ in 0..=bytes / COUNTED_BYTES {
        turns::take().await;
    }
}

/// The runtime's state of a transport's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// There may be input, or the last read has taken it.
    Possible,
    /// The peer has shut down its sending side.
    Ended,
}

#[cfg(test)]
mod tests;
