//! Waiting for a transport on the lane's runtime: what is asked for is tried first and waited for
//! only while it would block, so that what is ready costs one system call.

use std::cell::OnceCell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

use crate::sys::readiness;
use crate::timeout::within;
use crate::transport::{Handshake, HandshakeError, Transport};

/// What ends a wait for bytes. That nobody listens at a UDP port is an error and nothing else.
const INPUT: Interest = Interest::READABLE.add(Interest::ERROR);

/// A transport that may be waited for. At most one wait for reading and one for writing at a time.
pub struct Waited {
    transport: Rc<Transport>,
    /// The registration with the runtime, made when something waits first.
    registration: OnceCell<AsyncFd<Rc<Transport>>>,
    interest: Interest,
}

impl Waited {
    /// A transport that is waited for in both directions.
    pub fn new(transport: Transport) -> Self {
        Self::with_interest(transport, INPUT.add(Interest::WRITABLE))
    }

    /// A transport whose input somebody else watches: it is waited for only to be writable.
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

    /// Gives the transport back.
    pub fn into_transport(self) -> Option<Transport> {
        drop(self.registration);
        Rc::into_inner(self.transport)
    }

    /// Lets the runtime forget the transport until something waits again.
    pub fn unregister(&mut self) {
        drop(self.registration.take());
    }

    /// Waits until there may be something to read.
    ///
    /// # Errors
    /// What the runtime says.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready_to_read().await.map(|_| ())
    }

    /// Waits until the socket may take bytes.
    ///
    /// # Errors
    /// What the runtime says; `TimedOut` after `timeout_ms` (0 waits for ever).
    pub async fn writable(&self, timeout_ms: u64) -> io::Result<()> {
        let ready = async { self.registration()?.writable().await.map(|_| ()) };
        within(timeout_ms, ready).await
    }

    /// Waits for input, then tries, until `attempt` no longer blocks. Bound it by
    /// [`crate::timeout`].
    ///
    /// # Errors
    /// What the attempt or the runtime says.
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
    /// What the attempt says; `TimedOut` after `timeout_ms` (0 waits for ever).
    pub async fn when_writable<T>(
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
                let mut ready = self.registration()?.writable().await?;
                if let Ok(result) = ready.try_io(|_| attempt()) {
                    return result;
                }
            }
        })
        .await
    }

    /// Ends the handshake of a TLS session. Bound it by [`crate::timeout`].
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub async fn handshake(&self) -> Result<(), HandshakeError> {
        loop {
            let ready = match self.transport.handshake()? {
                Handshake::Done => return Ok(()),
                Handshake::WantsRead => self.ready_to_read().await,
                Handshake::WantsWrite => match self.registration() {
                    Ok(registration) => registration.writable().await,
                    Err(error) => Err(error),
                },
            };
            // The session has just found the socket to block, or finds it so in its next turn.
            ready.map_err(HandshakeError::Socket)?.clear_ready();
        }
    }

    /// Sends what a TLS session keeps; nothing to do for a plain transport.
    ///
    /// # Errors
    /// What the socket says; `TimedOut` when it took nothing for `timeout_ms` (0 waits for ever).
    pub async fn flush(&self, timeout_ms: u64) -> io::Result<()> {
        match self.transport.has_unsent() {
            false => Ok(()),
            true => {
                self.when_writable(timeout_ms, || self.transport.flush())
                    .await
            }
        }
    }

    /// Notes that the socket was read empty: only a new event says that there is more. What ended
    /// stays noted.
    pub fn emptied(&self) {
        let mut context = Context::from_waker(Waker::noop());
        if let Some(registration) = self.registration.get()
            && let Poll::Ready(Ok(mut ready)) = registration.poll_read_ready(&mut context)
        {
            ready.clear_ready();
        }
    }

    /// Notes that the socket is full: it has just said so, and no event was looked at since.
    pub fn filled(&self) {
        let mut context = Context::from_waker(Waker::noop());
        if let Some(registration) = self.registration.get()
            && let Poll::Ready(Ok(mut ready)) = registration.poll_write_ready(&mut context)
        {
            ready.clear_ready();
        }
    }

    /// What the runtime has seen of the input; `None`: nothing, or it does not watch.
    pub fn input_seen(&self) -> Option<Input> {
        let mut context = Context::from_waker(Waker::noop());
        match self.registration.get()?.poll_read_ready(&mut context) {
            Poll::Pending => None,
            Poll::Ready(Ok(ready)) if !ready.ready().is_read_closed() => Some(Input::Possible),
            Poll::Ready(_) => Some(Input::Ended),
        }
    }

    async fn ready_to_read(&self) -> io::Result<AsyncFdReadyGuard<'_, Rc<Transport>>> {
        self.registration()?.ready(INPUT).await
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

/// What the runtime has seen of a transport's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// There may be something to read, or there was before the last read emptied it.
    Possible,
    /// The peer has sent its last.
    Ended,
}
