//! What carries the bytes of a connection: the one place where plain and TLS differ.

use std::io::{self, Read as _};

use socket2::Socket;

use crate::tls::TlsSession;

/// A row of the transports.
pub(crate) enum Transport {
    /// The bytes as they are, over TCP or a unix socket.
    Plain,
    /// Records over the same sockets.
    Tls(Box<TlsSession>),
}

impl Transport {
    /// Does what must come before the first request; `true` when it is done.
    ///
    /// # Errors
    /// The socket's, `WouldBlock` included; `InvalidData` when the handshake is refused.
    pub(crate) fn establish(&mut self, socket: &Socket) -> io::Result<bool> {
        match self {
            Transport::Plain => Ok(true),
            Transport::Tls(session) => session.handshake(socket),
        }
    }

    /// Whether HTTP/2 was agreed on: by prior knowledge, or in the handshake.
    pub(crate) fn speaks_http2(&self) -> bool {
        match self {
            Transport::Plain => true,
            Transport::Tls(session) => session.protocol() == Some(b"h2"),
        }
    }

    /// Sends what is taken of `bytes`.
    ///
    /// # Errors
    /// The socket's, `WouldBlock` included.
    #[inline]
    pub(crate) fn send(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Plain => socket.send_with_flags(bytes, libc::MSG_NOSIGNAL),
            Transport::Tls(session) => session.send(socket, bytes),
        }
    }

    /// Sends what was taken earlier and is still here.
    ///
    /// # Errors
    /// The socket's, `WouldBlock` included.
    #[inline]
    pub(crate) fn flush(&mut self, socket: &Socket) -> io::Result<()> {
        match self {
            Transport::Plain => Ok(()),
            Transport::Tls(session) => session.flush(socket),
        }
    }

    /// Ends our side: the peer sees the end of the session and of the connection.
    pub(crate) fn end(&mut self, socket: &Socket) {
        if let Transport::Tls(session) = self {
            session.end(socket);
        }
        // A connection that is lost already is found out by the next read.
        let _ = socket.shutdown(std::net::Shutdown::Write);
    }

    /// Receives into `buffer`; 0 at the end of the stream.
    ///
    /// # Errors
    /// The socket's, `WouldBlock` included; `InvalidData` for bytes that are no TLS.
    #[inline]
    pub(crate) fn receive(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Plain => {
                let mut socket = socket;
                socket.read(buffer)
            }
            Transport::Tls(session) => session.receive(socket, buffer),
        }
    }

    /// Whether a receive of `count` bytes into `room` took all there was.
    #[inline]
    pub(crate) fn is_drained(&self, count: usize, room: usize) -> bool {
        match self {
            Transport::Plain => count < room,
            Transport::Tls(_) => false,
        }
    }
}
