//! One type for a plain socket and a TLS session, so that its users need not distinguish them.
//!
//! No call waits: it does as much as the socket allows at once, and otherwise returns `WouldBlock`.
//! [`crate::waiting`] and the event loop do the waiting.

mod alerts;
mod facts;
mod hello;
mod records;
mod session;
#[cfg(test)]
mod tests;

use std::cell::{OnceCell, RefCell};
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustls::Connection as TlsConnection;

use crate::files;
use crate::sys::file;
use crate::sys::pipe::Pipe;
use crate::sys::socket::{self, More};
pub use alerts::alerting_suites;
pub use facts::SocketFacts;
pub use hello::{Greeting, Hello, HelloError, INTERNAL_ERROR, Identify, UNRECOGNIZED_NAME};
use session::Session;
pub use session::{Handshake, HandshakeError};

/// The bytes of a file that are read and encrypted at a time: four full records, which is the most
/// that a session takes before it must send.
pub const SEALED_FILE_BYTES_MAX: usize = 64 * 1024;

/// What came of sending a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSent {
    /// So many bytes were sent; 0: the file ends before the part.
    Bytes(usize),
    /// The file is not in memory: its bytes must be read on a thread, and sent by
    /// [`Transport::try_write`].
    MustBeRead,
}

/// A connection's socket, with its TLS session if it has one. The socket stays the same for its
/// whole life. It must not be used by two threads at once.
pub struct Transport {
    socket: OwnedFd,
    /// The session is boxed, so that a plain connection stays small; it is never borrowed across a
    /// call.
    session: OnceCell<Box<RefCell<Session>>>,
}

impl Transport {
    /// A transport without encryption.
    pub fn plain(socket: OwnedFd) -> Self {
        Self {
            socket,
            session: OnceCell::new(),
        }
    }

    /// Begins a TLS session on the socket: the handshake comes next. A transport has at most one
    /// session; a second one is ignored.
    pub fn secure(&self, session: TlsConnection) {
        self.begin(Session::new(session));
    }

    fn begin(&self, session: Session) {
        self.session.get_or_init(|| Box::new(RefCell::new(session)));
    }

    /// Whether there is no TLS session: reading never needs sending.
    pub fn is_plain(&self) -> bool {
        self.session.get().is_none()
    }

    /// Continues the handshake as far as the socket allows. A plain transport needs none.
    ///
    /// # Errors
    /// See [`HandshakeError`]. The alert for the peer has been sent if possible.
    pub fn handshake(&self) -> Result<Handshake, HandshakeError> {
        match self.session.get() {
            None => Ok(Handshake::Done),
            Some(session) => session.borrow_mut().handshake(self.as_fd()),
        }
    }

    /// Whether there is a TLS session whose handshake is not complete. What has come until then is
    /// early data, which somebody who recorded it may have sent again (RFC 8446 section 8).
    pub fn is_handshaking(&self) -> bool {
        let session = self.session.get();
        session.is_some_and(|session| session.borrow().connection().is_handshaking())
    }

    /// Passes the TLS session to `look`; `None` if the transport is plain.
    pub fn with_session<T>(&self, look: impl FnOnce(&TlsConnection) -> T) -> Option<T> {
        let session = self.session.get()?;
        Some(look(session.borrow().connection()))
    }

    /// Reads up to `bytes_max` after the content of `buffer`. 0 is the end.
    ///
    /// # Errors
    /// The socket's error; `WouldBlock` if there is no input. For TLS: `InvalidData`, and
    /// `UnexpectedEof` if the connection ended before the session.
    #[inline]
    pub fn try_read(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        match self.session.get() {
            None => socket::receive_append(self.as_fd(), buffer, bytes_max),
            Some(session) => session.borrow_mut().read(self.as_fd(), buffer, bytes_max),
        }
    }

    /// Whether a read of `received` bytes, with the limit `bytes_max`, has emptied the socket, so
    /// that only a new event reports more input. Never after the end.
    pub fn was_emptied(&self, received: usize, bytes_max: usize) -> bool {
        match self.session.get() {
            None => received > 0 && received < bytes_max,
            Some(session) => received > 0 && session.borrow_mut().was_emptied(),
        }
    }

    /// Whether a TLS session holds input that has left the socket already.
    pub fn holds_input(&self) -> bool {
        let session = self.session.get();
        session.is_some_and(|session| session.borrow_mut().holds_input())
    }

    /// Whether a read needs no socket: a TLS session holds input, or its end or an error.
    pub(crate) fn has_read_result(&self) -> bool {
        let session = self.session.get();
        session.is_some_and(|session| session.borrow_mut().has_read_result())
    }

    /// Whether there is input, without taking it: 0 is the end, as for a read.
    ///
    /// # Errors
    /// As for [`Transport::try_read`].
    pub fn peek(&self) -> io::Result<usize> {
        match self.session.get() {
            None => socket::peek(self.as_fd(), &mut [0]),
            Some(session) => session.borrow_mut().fill(self.as_fd()),
        }
    }

    /// Sends as much of the slices as the socket takes. A TLS session may keep a part of it:
    /// [`Transport::flush`].
    ///
    /// # Errors
    /// The socket's error; `WouldBlock` if it takes nothing.
    #[inline]
    pub fn try_write(&self, slices: &[IoSlice<'_>], more: More) -> io::Result<usize> {
        match (self.session.get(), slices) {
            (None, [slice]) => socket::send(self.as_fd(), slice, more),
            (None, slices) => socket::send_vectored(self.as_fd(), slices, more),
            (Some(session), slices) => session.borrow_mut().write(self.as_fd(), slices),
        }
    }

    /// Sends at most `count` bytes of a file from `offset` on: by sendfile(2), which waits for a
    /// disk, or read into `buffer` and encrypted, which does not.
    ///
    /// # Errors
    /// The error of the socket or the file; `WouldBlock` if the socket takes nothing.
    pub fn try_send_file(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        count: usize,
        buffer: &mut Vec<u8>,
    ) -> io::Result<FileSent> {
        if self.session.get().is_none() {
            return file::send_file(self.as_fd(), file, offset, count).map(FileSent::Bytes);
        }
        self.flush()?;
        buffer.resize(count.min(SEALED_FILE_BYTES_MAX), 0);
        match files::read_at_once(file, buffer, offset)? {
            None => Ok(FileSent::MustBeRead),
            Some(0) => Ok(FileSent::Bytes(0)),
            Some(read) => {
                let sent = self.try_write(&[IoSlice::new(&buffer[..read])], More::No)?;
                Ok(FileSent::Bytes(sent))
            }
        }
    }

    /// Moves up to `bytes_max` into a pipe, which is empty. 0 is the end.
    ///
    /// # Errors
    /// The socket's error; `WouldBlock` if there is no input; `Unsupported` for TLS.
    pub fn try_fill(&self, pipe: &Pipe, bytes_max: usize) -> io::Result<usize> {
        if self.is_plain() {
            pipe.fill(self.as_fd(), bytes_max)
        } else {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Sends as much of a pipe's bytes as the socket takes.
    ///
    /// # Errors
    /// The socket's error; `WouldBlock` if it takes nothing; `Unsupported` for TLS.
    pub fn try_drain(&self, pipe: &Pipe, bytes: usize) -> io::Result<usize> {
        if self.is_plain() {
            pipe.drain(self.as_fd(), bytes)
        } else {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Sends the bytes that a TLS session keeps; does nothing for a plain transport.
    ///
    /// # Errors
    /// The socket's error; `WouldBlock` if some bytes are left.
    #[inline]
    pub fn flush(&self) -> io::Result<()> {
        match self.session.get() {
            None => Ok(()),
            Some(session) => session.borrow_mut().flush(self.as_fd()),
        }
    }

    /// Whether a TLS session keeps bytes that have not been sent.
    pub fn has_unsent(&self) -> bool {
        let session = self.session.get();
        session.is_some_and(|session| session.borrow().has_unsent())
    }

    /// Sends the peer the end of a TLS session. The part that the socket does not take now is kept:
    /// [`Transport::flush`].
    pub fn end_session(&self) {
        if let Some(session) = self.session.get() {
            session.borrow_mut().close(self.as_fd());
        }
    }

    /// Ends our side; the peer may still send. The end of a TLS session is lost if the socket does
    /// not take it: send it before with [`Transport::end_session`].
    ///
    /// # Errors
    /// The socket's error.
    pub fn shutdown_write(&self) -> io::Result<()> {
        self.end_session();
        socket::shutdown(self.as_fd(), Shutdown::Write)
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Transport {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        if let Some(session) = self.session.get_mut() {
            session.get_mut().close(self.socket.as_fd());
        }
    }
}
