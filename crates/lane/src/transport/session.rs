//! One TLS session over a connection's socket. It moves bytes between the two on request, and never
//! waits.

use std::fmt;
use std::io::{self, BufRead as _, IoSlice, Read, Write};
use std::os::fd::BorrowedFd;

use rustls::Connection;

use super::alerts;
use super::records::{self, Records, SLICES_MAX};
use crate::log::Errno;
use crate::sys::process::monotonic_ns;
use crate::sys::socket::{self, More};
use crate::sys::socket_option;

/// Bytes of encrypted records that a session keeps before they are sent. The usual 64 KB would cut
/// the output of an HTTP/2 connection, which may have a frame and some heads more, into two calls.
const RECORDS_BYTES_MAX: usize = 96 * 1024;

/// A session.
pub(super) struct Session {
    connection: Connection,
    /// The early data (RFC 8446 section 2.3) that was received and not read; the library limits
    /// it.
    early: Vec<u8>,
    /// Whether the last read used the socket, and got less than it asked for.
    was_short: bool,
    /// Whether the end of the session has been sent, or must not be: the session has failed, and
    /// an alert of its own may have said so (RFC 8446 section 6.2).
    is_closed: bool,
    records: Records,
}

/// The state of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// The handshake is complete, or early data has come, which may be answered before that.
    Done,
    /// The peer must send.
    WantsRead,
    /// The socket is full.
    WantsWrite,
}

/// Why a handshake failed.
#[derive(Debug)]
pub enum HandshakeError {
    /// The connection failed; `UnexpectedEof`: the peer closed it.
    Socket(io::Error),
    /// The peers do not agree, or one of them was not authenticated.
    Tls(rustls::Error),
}

/// nginx's messages.
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
    pub(super) fn new(mut connection: Connection) -> Session {
        connection.set_buffer_limit(Some(RECORDS_BYTES_MAX));
        Session {
            connection,
            early: Vec::new(),
            was_short: false,
            is_closed: false,
            records: Records::default(),
        }
    }

    /// Takes bytes that were received before the session was made.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.connection.read_tls(&mut bytes)?;
            // The handshake finds the error again.
            if self.connection.process_new_packets().is_err() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Continues the handshake as far as the socket allows.
    pub(super) fn handshake(
        &mut self,
        socket: BorrowedFd<'_>,
    ) -> Result<Handshake, HandshakeError> {
        loop {
            // The input from before the session was made may have been read already.
            let state = match self.connection.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    self.fail(socket, &error);
                    return Err(HandshakeError::Tls(error));
                }
            };
            match self.flush(socket) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Handshake::WantsWrite);
                }
                Err(error) => return Err(HandshakeError::Socket(error)),
            }
            self.take_early();
            if !self.connection.is_handshaking() || !self.early.is_empty() {
                let is_silent = state.tls_bytes_to_write() == 0;
                if is_silent && state.plaintext_bytes_to_read() == 0 && self.early.is_empty() {
                    self.acknowledge(socket);
                }
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

    /// Acknowledges the end of a client's handshake that nothing is sent for, not even a ticket. A
    /// client with Nagle's algorithm sends no request before that, and the kernel would wait 40 ms.
    fn acknowledge(&self, socket: BorrowedFd<'_>) {
        if let Connection::Server(_) = self.connection {
            // A socket of another kind delays nothing.
            let _ = socket_option::acknowledge(socket);
        }
    }

    /// Reads decrypted bytes after the content of `buffer`. 0 is the end.
    pub(super) fn read(
        &mut self,
        socket: BorrowedFd<'_>,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
    ) -> io::Result<usize> {
        // A read without the socket shows nothing about it: more input may have come, with its
        // event.
        self.was_short = false;
        self.fill(socket)?;
        if !self.early.is_empty() {
            let count = self.early.len().min(bytes_max);
            buffer.extend(self.early.drain(..count));
            return Ok(count);
        }
        let mut reader = self.connection.reader();
        let chunk = reader.fill_buf()?;
        let count = chunk.len().min(bytes_max);
        buffer.extend_from_slice(&chunk[..count]);
        reader.consume(count);
        Ok(count)
    }

    /// Decrypts until there is input; returns its size, 0 at the end.
    pub(super) fn fill(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        loop {
            if !self.early.is_empty() {
                return Ok(self.early.len());
            }
            match self.connection.reader().fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
                Ok(chunk) => return Ok(chunk.len()),
            }
            self.receive(socket)?;
            if let Err(error) = self.connection.process_new_packets() {
                self.fail(socket, &error);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            // Sends answers to the peer's key updates; the rest is sent later.
            let _ = self.flush(socket);
            self.take_early();
        }
    }

    /// Takes the early data that the library holds.
    fn take_early(&mut self) {
        if let Connection::Server(server) = &mut self.connection
            && let Some(mut early) = server.early_data()
        {
            // A buffer in memory is read: that cannot fail.
            let _ = early.read_to_end(&mut self.early);
        }
    }

    /// Whether decrypted input is available.
    pub(super) fn holds_input(&mut self) -> bool {
        let mut reader = self.connection.reader();
        !self.early.is_empty() || reader.fill_buf().is_ok_and(|bytes| !bytes.is_empty())
    }

    /// Whether there is decrypted input, or the end of the input or an error was found.
    pub(super) fn has_read_result(&mut self) -> bool {
        !self.early.is_empty() || !self.awaits_input()
    }

    /// Whether more has to be received before the library gives anything.
    fn awaits_input(&mut self) -> bool {
        let mut reader = self.connection.reader();
        let next = reader.fill_buf();
        next.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Whether the last read has left no input, neither here nor in the socket.
    pub(super) fn was_emptied(&mut self) -> bool {
        self.awaits_input() && self.early.is_empty() && self.was_short
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

    /// Encrypts bytes, and sends as much as the socket takes.
    pub(super) fn write(
        &mut self,
        socket: BorrowedFd<'_>,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        self.flush(socket)?;
        let taken = match self.connection {
            Connection::Server(_) => self.encrypt_in_records(slices)?,
            Connection::Client(_) => self.connection.writer().write_vectored(slices)?,
        };
        match self.flush(socket) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Encrypts bytes, in small records while the connection is new or was idle. Returns how many
    /// were taken.
    fn encrypt_in_records(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.records.begin(monotonic_ns() / 1_000_000);
        let mut writer = self.connection.writer();
        let mut room = [IoSlice::new(&[]); SLICES_MAX];
        let mut taken = 0;
        loop {
            let bytes_max = self.records.next_bytes_max();
            if taken == 0 && bytes_max == usize::MAX {
                return writer.write_vectored(slices);
            }
            let count = records::part(slices, taken, bytes_max, &mut room);
            let given: usize = room[..count].iter().map(|slice| slice.len()).sum();
            let written = writer.write_vectored(&room[..count])?;
            self.records.taken(written);
            taken += written;
            if written < given || given == 0 {
                return Ok(taken);
            }
        }
    }

    /// Sends encrypted bytes; `WouldBlock` if some are left.
    pub(super) fn flush(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut Sink(socket))?;
        }
        Ok(())
    }

    /// Whether there are encrypted bytes to send.
    pub(super) fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    /// Sends the peer the alert for an error, if possible; nothing follows it.
    fn fail(&mut self, socket: BorrowedFd<'_>, error: &rustls::Error) {
        self.is_closed = true;
        if !self.connection.is_handshaking()
            && let Some(alert) = alerts::alert_for(error)
        {
            alerts::end_by(&mut self.connection, alert);
        }
        let _ = self.flush(socket);
    }

    /// Sends the peer the end of the session.
    pub(super) fn close(&mut self, socket: BorrowedFd<'_>) {
        if !self.is_closed {
            self.is_closed = true;
            self.connection.send_close_notify();
        }
        // The connection is being closed, so the rest is not waited for.
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
