//! The kernel's data about a connection, for code that serves a request and does not hold the
//! transport.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use super::Transport;
use crate::sys::socket::{self, PeerAddress};
use crate::sys::socket_option::{self, TcpInfo};

/// Queries about a transport's socket that few requests need. They cannot read from the socket or
/// change it. After the transport is gone, the results are errors or belong to another socket.
#[derive(Clone, Copy)]
pub struct SocketFacts {
    /// `None` if there is no socket.
    number: Option<RawFd>,
}

impl SocketFacts {
    /// The facts without a socket: every query is an error.
    pub const NONE: SocketFacts = SocketFacts { number: None };

    fn number(self) -> io::Result<RawFd> {
        self.number
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// The address that the peer connected to.
    ///
    /// # Errors
    /// The error of getsockname(2); `NotConnected` without a socket.
    pub fn local_address(self) -> io::Result<PeerAddress> {
        socket::local_address_of(self.number()?)
    }

    /// The state of the TCP connection.
    ///
    /// # Errors
    /// The error of getsockopt(2); `NotConnected` without a socket.
    pub fn tcp_info(self) -> io::Result<TcpInfo> {
        socket_option::tcp_info_of(self.number()?)
    }
}

impl Transport {
    /// The facts of the socket, valid while this transport lives.
    pub fn facts(&self) -> SocketFacts {
        SocketFacts {
            number: Some(self.as_raw_fd()),
        }
    }
}
