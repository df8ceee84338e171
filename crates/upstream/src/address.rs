//! The address of a peer.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The address of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP or UDP over IPv4 or IPv6.
    Inet(SocketAddr),
    /// The path of a unix socket.
    Unix(Arc<[u8]>),
}

impl Address {
    /// The address of a unix socket.
    pub fn unix(path: &[u8]) -> Address {
        Address::Unix(path.into())
    }
}

/// nginx's format: `127.0.0.1:8080`, `[::1]:8080`, `unix:/run/application`.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Inet(address) => address.fmt(out),
            Address::Unix(path) => write!(out, "unix:{}", String::from_utf8_lossy(path)),
        }
    }
}
