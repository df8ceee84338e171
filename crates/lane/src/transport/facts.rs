//! What the kernel knows of a connection, for whoever serves a request and does not hold the
//! transport.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use super::Transport;
use crate::sys::socket::{self, PeerAddress};
use crate::sys::socket_option::{self, TcpInfo};

/// Questions to the kernel about a transport's socket that few requests ask. Nothing can be read
/// from the socket or done to it through this. Once the transport is gone, the answers are errors
/// or those of another socket.
#[derive(Clone, Copy)]
pub struct SocketFacts {
    /// `None`: there is no socket.
    number: Option<RawFd>,
}

impl SocketFacts {
    /// The facts of no socket: every answer is an error.
    pub const NONE: SocketFacts = SocketFacts { number: None };

    fn number(self) -> io::Result<RawFd> {
        self.number
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// The address that the peer connected to.
    ///
    /// # Errors
    /// What getsockname(2) says; `NotConnected` where there is no socket.
    pub fn local_address(self) -> io::Result<PeerAddress> {
        socket::local_address_of(self.number()?)
    }

    /// State of the TCP connection.
    ///
    /// # Errors
    /// What getsockopt(2) says; `NotConnected` where there is no socket.
    pub fn tcp_info(self) -> io::Result<TcpInfo> {
        socket_option::tcp_info_of(self.number()?)
    }
}

impl Transport {
    /// What the kernel knows of the socket, for as long as this transport lives.
    pub fn facts(&self) -> SocketFacts {
        SocketFacts {
            number: Some(self.as_raw_fd()),
        }
    }
}
