//! Opening a connection.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use turnpike_lane::sys::socket::{self, Family, Kind};
use turnpike_lane::sys::{readiness, socket_option};

use super::{Connection, INTEREST};
use crate::address::Address;
use crate::group::Picked;

/// How a connection is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectOptions<'a> {
    /// Our own address (`proxy_bind`); port 0 lets the kernel choose.
    pub bind: Option<&'a SocketAddr>,
    /// Whether that address may be one that is not ours (`IP_TRANSPARENT`).
    pub transparent: bool,
    /// Whether the kernel probes the peer while nothing is sent (`SO_KEEPALIVE`).
    pub socket_keepalive: bool,
    /// Size of the send buffer in bytes; 0 leaves it to the kernel.
    pub send_buffer_bytes: u32,
    /// Size of the receive buffer in bytes; 0 leaves it to the kernel.
    pub receive_buffer_bytes: u32,
    /// How long connecting may take, in milliseconds; 0 is without limit.
    pub timeout_ms: u64,
    /// Which location asks: groups that keep connections by location compare it.
    pub location: u32,
}

/// What must be the same for a connection to be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) peer: Address,
    bind: Option<SocketAddr>,
    location: u32,
}

impl ConnectOptions<'_> {
    pub(crate) fn key(&self, picked: &Picked) -> Key {
        Key {
            peer: picked.address().clone(),
            bind: self.bind.copied(),
            location: self.location,
        }
    }
}

impl Key {
    /// Whether a connection of this key serves where one of that key is wanted; `local` sets
    /// locations apart.
    pub(crate) fn serves(&self, wanted: &Key, local: bool) -> bool {
        let same = self.peer == wanted.peer && self.bind == wanted.bind;
        same && (!local || self.location == wanted.location)
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// No socket: descriptors or memory ran out.
    Socket(io::Error),
    /// Our own address cannot be taken.
    Bind(io::Error),
    /// The peer cannot be reached or refuses.
    Connect(io::Error),
    /// It took too long.
    TimedOut,
}

/// In nginx's words, as its log has them before `while connecting to upstream`.
impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (call, error) = match self {
            ConnectError::Socket(error) => ("socket()", error),
            ConnectError::Bind(error) => ("bind()", error),
            ConnectError::Connect(error) => ("connect()", error),
            ConnectError::TimedOut => {
                return out.write_str("upstream timed out (110: Connection timed out)");
            }
        };
        write!(out, "{call} failed {}", turnpike_lane::log::Errno(error))
    }
}

impl std::error::Error for ConnectError {}

impl Connection {
    /// Connects to a peer; must be called on the lane's runtime.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn open(
        picked: &Picked,
        options: &ConnectOptions<'_>,
        now_ms: u64,
    ) -> Result<Connection, ConnectError> {
        let key = options.key(picked);
        let (socket, under_way) = begin(picked.address(), options)?;
        let socket = readiness::register(socket, INTEREST).map_err(ConnectError::Socket)?;
        let connection = Connection {
            socket,
            key,
            opened_ms: now_ms,
            requests: Cell::new(1),
            bytes_sent: Cell::new(0),
            bytes_received: Cell::new(0),
        };
        if under_way {
            let established = connection.established(options.timeout_ms).await;
            established.map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut if error.raw_os_error().is_none() => ConnectError::TimedOut,
                _ => ConnectError::Connect(error),
            })?;
        }
        Ok(connection)
    }
}

/// A socket that connects, and whether it still does.
fn begin(address: &Address, options: &ConnectOptions<'_>) -> Result<(OwnedFd, bool), ConnectError> {
    let family = match address {
        Address::Inet(SocketAddr::V4(_)) => Family::V4,
        Address::Inet(SocketAddr::V6(_)) => Family::V6,
        Address::Unix(_) => Family::Unix,
    };
    let socket = socket::open(family, Kind::Stream).map_err(ConnectError::Socket)?;
    prepare(&socket, address, options)?;
    let connected = match address {
        Address::Inet(address) => socket::connect(socket.as_fd(), *address),
        Address::Unix(path) => socket::connect_unix(socket.as_fd(), path),
    };
    match connected {
        Ok(()) => Ok((socket, false)),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok((socket, true)),
        Err(error) => Err(ConnectError::Connect(error)),
    }
}

fn prepare(
    socket: &OwnedFd,
    address: &Address,
    options: &ConnectOptions<'_>,
) -> Result<(), ConnectError> {
    let socket = socket.as_fd();
    let option = ConnectError::Socket;
    if options.socket_keepalive {
        socket_option::set_keepalive(socket, true).map_err(option)?;
    }
    if options.receive_buffer_bytes > 0 {
        let bytes = options.receive_buffer_bytes;
        socket_option::set_receive_buffer_bytes(socket, bytes).map_err(option)?;
    }
    if options.send_buffer_bytes > 0 {
        let bytes = options.send_buffer_bytes;
        socket_option::set_send_buffer_bytes(socket, bytes).map_err(option)?;
    }
    let Address::Inet(peer) = address else {
        return Ok(());
    };
    // Head and body may leave in two calls, and the second must not wait for an acknowledgement.
    socket_option::set_no_delay(socket, true).map_err(option)?;
    let Some(own) = options.bind else {
        return Ok(());
    };
    if options.transparent {
        socket_option::set_transparent(socket, peer.is_ipv6()).map_err(ConnectError::Bind)?;
    }
    if own.port() == 0 {
        // The port is chosen by connect(2) then, which knows the peer: many more are free.
        socket_option::set_bind_without_port(socket).map_err(ConnectError::Bind)?;
    }
    socket::bind(socket, *own).map_err(ConnectError::Bind)
}
