//! The client of a session: its connection or its flow of datagrams, read and written with waits on
//! the lane's runtime.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::rc::Rc;

use turnpike_lane::sys::socket::{self, Closed, More};
use turnpike_lane::sys::socket_option;
use turnpike_lane::transport::{HandshakeError, Transport};
use turnpike_lane::waiting::{RelayEnd, Waited};

use crate::flow::Flow;

/// A client. At most one read and one write at a time.
pub enum Client {
    /// At the other end of a connection.
    Connected(Connected),
    /// One that sends datagrams.
    Flow(Rc<Flow>),
}

/// A client's connection.
pub struct Connected {
    waited: Waited,
}

impl Client {
    /// The client at the other end of a transport.
    pub(crate) fn new(transport: Transport) -> Self {
        Self::Connected(Connected {
            waited: Waited::new(transport),
        })
    }

    /// Sends these, waiting while nothing is taken: as much as the connection takes, or all as one
    /// datagram. Returns how many bytes.
    ///
    /// # Errors
    /// What the socket says.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Connected(connected) => connected.write(bytes).await,
            Self::Flow(flow) => flow.send(bytes).await.map(|()| bytes.len()),
        }
    }
}

impl Connected {
    /// Gives the transport back; `None`: something still waits for it.
    pub(crate) fn into_transport(self) -> Option<Transport> {
        self.waited.into_transport()
    }

    /// The client's end of a relay.
    pub fn relay_end(&self) -> RelayEnd<'_> {
        RelayEnd::new(&self.waited)
    }

    /// What the client has closed; an error counts as everything.
    pub fn closed_by_peer(&self) -> Closed {
        let socket = self.waited.transport().as_fd();
        socket::closed_by_peer(socket).unwrap_or(Closed::Everything)
    }

    /// Whether bytes wait in the socket, those of TLS among them.
    pub fn has_input(&self) -> bool {
        let socket = self.waited.transport().as_fd();
        socket::peek(socket, &mut [0]).is_ok_and(|count| count > 0)
    }

    /// Whether there is no TLS session.
    pub fn is_plain(&self) -> bool {
        self.waited.transport().is_plain()
    }

    /// The transport itself.
    pub(crate) fn transport(&self) -> &Transport {
        self.waited.transport()
    }

    /// Ends the handshake of its TLS session.
    ///
    /// # Errors
    /// See [`HandshakeError`].
    pub(crate) async fn handshake(&self) -> Result<(), HandshakeError> {
        self.waited.handshake().await
    }

    /// Waits for bytes and appends up to `bytes_max` of them. 0 is the end.
    ///
    /// # Errors
    /// What the socket says.
    pub async fn read(&self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        self.waited.read(buffer, bytes_max).await
    }

    /// Sends what the socket takes of these, waiting while it takes nothing.
    ///
    /// # Errors
    /// What the socket says.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.waited.write(bytes).await
    }

    /// Sends without waiting, as far as the socket takes it.
    ///
    /// # Errors
    /// What the socket says.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let transport = self.waited.transport();
        transport.try_write(&[IoSlice::new(bytes)], More::No)
    }

    /// Sends small pieces at once. A unix socket has no such option.
    pub fn set_no_delay(&self) {
        let _ = socket_option::set_no_delay(self.waited.transport().as_fd(), true);
    }
}
