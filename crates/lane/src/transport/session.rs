//! One TLS session over a connection's socket. It moves bytes between the two when asked, and
//! waits for nothing.

use std::fmt;
use std::io::{self, BufRead as _, IoSlice, Read, Write};
use std::os::fd::BorrowedFd;

use rustls::Connection;

use crate::log::Errno;
use crate::sys::socket::{self, More};

/// A session.
pub(super) struct Session {
    connection: Connection,
    /// Whether the last read had to ask the socket, and found less than there was room for.
    was_short: bool,
    /// Whether the peer has been told that nothing more comes.
    is_closed: bool,
}

/// What a handshake waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// The session stands.
    Done,
    /// The peer has to send.
    WantsRead,
    /// The socket is full.
    WantsWrite,
}

/// Why a handshake failed.
#[derive(Debug)]
pub enum HandshakeError {
    /// The connection broke; `UnexpectedEof`: the peer closed it.
    Socket(io::Error),
    /// Peers do not agree, or one of them is not who it has to be.
    Tls(rustls::Error),
}

/// In nginx's words.
impl fmt::Display for HandshakeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Socket(error) if error.raw_os_error().is_none() => {
                out.write_str("peer closed connection in SSL handshake")
            }
            HandshakeError::Socket(error) => {
                let error = Errno(error);
                write!(out, "peer closed connection in SSL handshake {error}")
            }
            HandshakeError::Tls(error) => {
                write!(out, "SSL_do_handshake() failed (SSL: {error})")
            }
        }
    }
}

impl Session {
    pub(super) fn new(connection: Connection) -> Session {
        Session {
            connection,
            was_short: false,
            is_closed: false,
        }
    }

    /// Takes what was received before the session was made.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.connection.read_tls(&mut bytes)?;
            // What is wrong with it is found again by the handshake.
            if self.connection.process_new_packets().is_err() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Continues the handshake as far as the socket lets it.
    pub(super) fn handshake(
        &mut self,
        socket: BorrowedFd<'_>,
    ) -> Result<Handshake, HandshakeError> {
        loop {
            // What came before the session was made may have been read already.
            if let Err(error) = self.connection.process_new_packets() {
                // The alert, where it can still be told.
                let _ = self.flush(socket);
                return Err(HandshakeError::Tls(error));
            }
            match self.flush(socket) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Handshake::WantsWrite);
                }
                Err(error) => return Err(HandshakeError::Socket(error)),
            }
            if !self.connection.is_handshaking() {
                return Ok(Handshake::Done);
            }
            match self.receive(socket) {
                Ok(0) => {
                    let error = io::ErrorKind::UnexpectedEof.into();
                    return Err(HandshakeError::Socket(error));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Handshake::WantsRead);
                }
                Err(error) => return Err(HandshakeError::Socket(error)),
            }
        }
    }

    /// Reads decrypted bytes behind what `buffer` holds. 0 is the end.
    pub(super) fn read(
        &mut self,
        socket: BorrowedFd<'_>,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
    ) -> io::Result<usize> {
        // What is read without the socket says nothing of it: more may have come, and been told of.
        self.was_short = false;
        self.fill(socket)?;
        let mut reader = self.connection.reader();
        let chunk = reader.fill_buf()?;
        let count = chunk.len().min(bytes_max);
        buffer.extend_from_slice(&chunk[..count]);
        reader.consume(count);
        Ok(count)
    }

    /// Decrypts until there is something to read; returns how much, 0 at the end.
    pub(super) fn fill(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        loop {
            match self.connection.reader().fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
                Ok(chunk) => return Ok(chunk.len()),
            }
            self.receive(socket)?;
            if let Err(error) = self.connection.process_new_packets() {
                let _ = self.flush(socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            // Answers to the peer's key updates; what does not leave now leaves later.
            let _ = self.flush(socket);
        }
    }

    /// Whether decrypted bytes wait to be read.
    pub(super) fn holds_input(&mut self) -> bool {
        let mut reader = self.connection.reader();
        reader.fill_buf().is_ok_and(|bytes| !bytes.is_empty())
    }

    /// Whether the last read has left nothing to read, neither here nor in the socket.
    pub(super) fn was_emptied(&mut self) -> bool {
        let mut reader = self.connection.reader();
        let is_empty = reader
            .fill_buf()
            .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        is_empty && self.was_short
    }

    fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let mut source = Source {
            socket,
            was_short: false,
        };
        let received = self.connection.read_tls(&mut source);
        self.was_short = source.was_short;
        received
    }

    /// Takes bytes to be encrypted, and sends what the socket takes.
    pub(super) fn write(
        &mut self,
        socket: BorrowedFd<'_>,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        self.flush(socket)?;
        let taken = self.connection.writer().write_vectored(slices)?;
        match self.flush(socket) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends what is encrypted; `WouldBlock` when some of it is left.
    pub(super) fn flush(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut Sink(socket))?;
        }
        Ok(())
    }

    /// Whether encrypted bytes wait to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    /// Tells the peer that nothing more comes.
    pub(super) fn close(&mut self, socket: BorrowedFd<'_>) {
        if !self.is_closed {
            self.is_closed = true;
            self.connection.send_close_notify();
        }
        // The connection is being closed: what the socket does not take now is not waited for.
        let _ = self.flush(socket);
    }
}

/// A socket as the library reads it.
struct Source<'a> {
    socket: BorrowedFd<'a>,
    was_short: bool,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let received = socket::receive(self.socket, buffer)?;
        self.was_short = received > 0 && received < buffer.len();
        Ok(received)
    }
}

/// A socket as the library writes to it.
pub(super) struct Sink<'a>(pub(super) BorrowedFd<'a>);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        socket::send(self.0, bytes, More::No)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        socket::send_vectored(self.0, slices, More::No)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
