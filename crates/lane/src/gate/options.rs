//! The socket parameters of the `listen` directive, as values.

use std::{fmt, net::SocketAddr};

use crate::sys::socket::{Family, Kind};

/// nginx's default backlog on Linux.
pub const BACKLOG_DEFAULT: i32 = 511;

/// The address of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenAddress {
    /// TCP over IPv4 or IPv6; port 0 lets the kernel choose.
    Tcp(SocketAddr),
    /// UDP over IPv4 or IPv6; port 0 lets the kernel choose.
    Udp(SocketAddr),
    /// A unix socket, by its path.
    Unix(Box<[u8]>),
}

impl ListenAddress {
    /// The socket family.
    pub fn family(&self) -> Family {
        match self {
            ListenAddress::Tcp(address) | ListenAddress::Udp(address) => match address {
                SocketAddr::V4(_) => Family::V4,
                SocketAddr::V6(_) => Family::V6,
            },
            ListenAddress::Unix(_) => Family::Unix,
        }
    }

    /// The socket kind.
    pub fn kind(&self) -> Kind {
        match self {
            ListenAddress::Tcp(_) | ListenAddress::Unix(_) => Kind::Stream,
            ListenAddress::Udp(_) => Kind::Datagram,
        }
    }

    /// The port, for TCP and UDP.
    pub fn port(&self) -> Option<u16> {
        match self {
            ListenAddress::Tcp(address) | ListenAddress::Udp(address) => Some(address.port()),
            ListenAddress::Unix(_) => None,
        }
    }
}

impl fmt::Display for ListenAddress {
    /// nginx's format: `0.0.0.0:80`, `[::1]:80`, `unix:/path`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) | ListenAddress::Udp(address) => address.fmt(formatter),
            ListenAddress::Unix(path) => {
                write!(formatter, "unix:{}", String::from_utf8_lossy(path))
            }
        }
    }
}

/// Whether an address has one socket, or one per lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reuseport {
    /// One socket for all lanes.
    #[default]
    None,
    /// One per lane; the kernel chooses by a hash of the connection's addresses.
    Hash,
    /// One per lane; our program chooses (see [`crate::steering`]).
    Steer,
}

/// Keep-alive probes (`so_keepalive=`). `None` means the system's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Keepalive {
    /// Whether probes are sent.
    pub on: bool,
    /// The idle time before the first probe, in seconds.
    pub idle_s: Option<u32>,
    /// The time between probes, in seconds.
    pub interval_s: Option<u32>,
    /// The number of unanswered probes that end the connection.
    pub count: Option<u32>,
}

/// The socket parameters of a `listen` directive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListenOptions {
    /// The most connections that wait to be accepted; -1 for the system's limit.
    pub backlog: i32,
    /// Whether to accept only connections with input.
    pub deferred: bool,
    /// One socket, or one per lane.
    pub reuseport: Reuseport,
    /// Whether the socket is one of Multipath TCP (RFC 8684).
    pub multipath: bool,
    /// The most pending TCP Fast Open requests, if it is on (RFC 7413).
    pub fast_open_queue: Option<u32>,
    /// The requested size of the receive buffer, in bytes.
    pub receive_buffer_bytes: Option<u32>,
    /// The requested size of the send buffer, in bytes.
    pub send_buffer_bytes: Option<u32>,
    /// Whether an IPv6 socket refuses IPv4.
    pub ipv6_only: bool,
    /// Keep-alive probes, if the directive sets them.
    pub keepalive: Option<Keepalive>,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions {
            backlog: BACKLOG_DEFAULT,
            deferred: false,
            reuseport: Reuseport::None,
            multipath: false,
            fast_open_queue: None,
            receive_buffer_bytes: None,
            send_buffer_bytes: None,
            ipv6_only: true,
            keepalive: None,
        }
    }
}
