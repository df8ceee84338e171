//! One TLS session over a connection's socket. It moves bytes between the two when asked, and
//! waits for nothing.

use std::io::{self, BufRead as _, IoSlice, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConnection};
use turnpike_lane::sys::socket::{self, More};

use super::TlsConnector;
use super::pinned::UnknownSelfSigned;

/// A session.
pub(crate) struct Session {
    inner: Box<ClientConnection>,
}

/// What a handshake waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    Done,
    WantsRead,
    WantsWrite,
}

/// Why a handshake failed.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The connection broke.
    Socket(io::Error),
    /// The peer's certificate is not good.
    Certificate(String),
    /// The certificate is good, but for another name.
    Name,
    /// Peers do not understand one another.
    Protocol(String),
}

impl Session {
    /// A session with the peer of that name.
    pub(crate) fn new(connector: &TlsConnector, name: &str) -> Result<Session, HandshakeError> {
        let server = match ServerName::try_from(name.to_owned()) {
            Ok(name) => name,
            Err(_) if connector.verify => return Err(HandshakeError::Name),
            // The name matters to nobody, and as an address it is not sent.
            Err(_) => ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        };
        let inner = ClientConnection::new(Arc::clone(&connector.config), server)
            .map_err(|error| HandshakeError::Protocol(error.to_string()))?;
        Ok(Session {
            inner: Box::new(inner),
        })
    }

    /// Goes on with the handshake as far as the socket lets it.
    pub(crate) fn handshake(
        &mut self,
        socket: BorrowedFd<'_>,
    ) -> Result<Handshake, HandshakeError> {
        loop {
            match self.flush(socket) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Handshake::WantsWrite);
                }
                Err(error) => return Err(HandshakeError::Socket(error)),
            }
            if !self.inner.is_handshaking() {
                return Ok(Handshake::Done);
            }
            match self.inner.read_tls(&mut Socket(socket)) {
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
            if let Err(error) = self.inner.process_new_packets() {
                // The alert, where it can still be told.
                let _ = self.flush(socket);
                return Err(blame(&error));
            }
        }
    }

    /// Reads decrypted bytes behind what `buffer` holds. 0 is the end.
    pub(crate) fn read(
        &mut self,
        socket: BorrowedFd<'_>,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
    ) -> io::Result<usize> {
        loop {
            let taken = self.take(buffer, bytes_max);
            match taken {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            self.inner.read_tls(&mut Socket(socket))?;
            if let Err(error) = self.inner.process_new_packets() {
                let _ = self.flush(socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            // Answers to the peer's key updates; what does not leave now leaves later.
            let _ = self.flush(socket);
        }
    }

    /// Takes bytes to be encrypted, and sends what the socket takes.
    pub(crate) fn write(
        &mut self,
        socket: BorrowedFd<'_>,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        self.flush(socket)?;
        let taken = self.inner.writer().write_vectored(slices)?;
        match self.flush(socket) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends what is encrypted; `WouldBlock` when some of it is left.
    pub(crate) fn flush(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        while self.inner.wants_write() {
            self.inner.write_tls(&mut Socket(socket))?;
        }
        Ok(())
    }

    /// Whether encrypted bytes wait to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.inner.wants_write()
    }

    /// Tells the peer that nothing more comes.
    pub(crate) fn close(&mut self, socket: BorrowedFd<'_>) {
        self.inner.send_close_notify();
        // The connection is being closed: what the socket does not take now is not waited for.
        let _ = self.flush(socket);
    }

    fn take(&mut self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        let mut reader = self.inner.reader();
        let chunk = reader.fill_buf()?;
        let count = chunk.len().min(bytes_max);
        buffer.extend_from_slice(&chunk[..count]);
        reader.consume(count);
        Ok(count)
    }
}

fn blame(error: &rustls::Error) -> HandshakeError {
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => HandshakeError::Name,
        rustls::Error::InvalidCertificate(why) => HandshakeError::Certificate(verify_error(why)),
        other => HandshakeError::Protocol(other.to_string()),
    }
}

/// The number and words that OpenSSL has for it, since they are what logs are searched for.
fn verify_error(why: &CertificateError) -> String {
    let known = match why {
        CertificateError::UnknownIssuer => "20:unable to get local issuer certificate",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "10:certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "9:certificate is not yet valid"
        }
        CertificateError::Revoked => "23:certificate revoked",
        CertificateError::BadSignature => "7:certificate signature failure",
        CertificateError::UnknownRevocationStatus => "3:unable to get certificate CRL",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "26:unsuitable certificate purpose"
        }
        CertificateError::Other(why) if why.0.is::<UnknownSelfSigned>() => {
            "18:self-signed certificate"
        }
        other => return format!("1:{other}"),
    };
    known.to_owned()
}

/// A socket as the library wants it.
struct Socket<'a>(BorrowedFd<'a>);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        socket::receive(self.0, buffer)
    }
}

impl Write for Socket<'_> {
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
