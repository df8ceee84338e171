//! What the `listen` directive says of a socket, as values.

use std::{fmt, net::SocketAddr};

use crate::sys::socket::{Family, Kind};

/// nginx's default backlog on Linux.
pub const BACKLOG_DEFAULT: i32 = 511;

/// Where a gate listens.
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
    /// The socket family it takes.
    pub fn family(&self) -> Family {
        match self {
            ListenAddress::Tcp(address) | ListenAddress::Udp(address) => match address {
                SocketAddr::V4(_) => Family::V4,
                SocketAddr::V6(_) => Family::V6,
            },
            ListenAddress::Unix(_) => Family::Unix,
        }
    }

    /// The kind of socket it takes.
    pub fn kind(&self) -> Kind {
        match self {
            ListenAddress::Tcp(_) | ListenAddress::Unix(_) => Kind::Stream,
            ListenAddress::Udp(_) => Kind::Datagram,
        }
    }

    /// The port, of TCP and UDP.
    pub fn port(&self) -> Option<u16> {
        match self {
            ListenAddress::Tcp(address) | ListenAddress::Udp(address) => Some(address.port()),
            ListenAddress::Unix(_) => None,
        }
    }
}

impl fmt::Display for ListenAddress {
    /// As nginx prints it: `0.0.0.0:80`, `[::1]:80`, `unix:/path`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) | ListenAddress::Udp(address) => address.fmt(formatter),
            ListenAddress::Unix(path) => {
                write!(formatter, "unix:{}", String::from_utf8_lossy(path))
            }
        }
    }
}

/// Whether an address has one socket or one a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reuseport {
    /// One socket for all lanes.
    #[default]
    None,
    /// One a lane; the kernel chooses by a hash of the connection's addresses.
    Hash,
    /// One a lane; our program chooses (see [`crate::steering`]).
    Steer,
}

/// Keep-alive probes (`so_keepalive=`). What is `None` is left at the system's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Keepalive {
    /// Whether probes are sent at all.
    pub on: bool,
    /// Idle time before the first one, in seconds.
    pub idle_s: Option<u32>,
    /// Time between them, in seconds.
    pub interval_s: Option<u32>,
    /// Unanswered ones that end the connection.
    pub count: Option<u32>,
}

/// The socket's parameters of a `listen` directive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListenOptions {
    /// Most connections that wait to be accepted; -1 for the system's limit.
    pub backlog: i32,
    /// Accept only connections that have sent something.
    pub deferred: bool,
    /// One socket or one a lane.
    pub reuseport: Reuseport,
    /// Most TCP Fast Open requests pending, when it is on (RFC 7413).
    pub fast_open_queue: Option<u32>,
    /// Wished receive buffer, in bytes.
    pub receive_buffer_bytes: Option<u32>,
    /// Wished send buffer, in bytes.
    pub send_buffer_bytes: Option<u32>,
    /// Whether an IPv6 socket leaves IPv4 alone.
    pub ipv6_only: bool,
    /// Keep-alive probes, when the directive says something about them.
    pub keepalive: Option<Keepalive>,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions {
            backlog: BACKLOG_DEFAULT,
            deferred: false,
            reuseport: Reuseport::None,
            fast_open_queue: None,
            receive_buffer_bytes: None,
            send_buffer_bytes: None,
            ipv6_only: true,
            keepalive: None,
        }
    }
}
