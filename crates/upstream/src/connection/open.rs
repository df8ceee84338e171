//! Opening a connection.

use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::log::Errno;
use turnpike_lane::sys::socket::{self, Family, Kind, More};
use turnpike_lane::sys::socket_option;
use turnpike_lane::transport::{HandshakeError, Transport};
use turnpike_lane::waiting::Waited;

use turnpike_lane::timeout::bounded;

use super::Connection;
use crate::address::Address;
use crate::peer::picked::Picked;
use crate::tls::{Refusal, TlsConnector};

/// The options of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectOptions<'a> {
    /// The local address (`proxy_bind`); port 0 lets the kernel choose.
    pub bind: Option<&'a SocketAddr>,
    /// Whether the local address may belong to another machine (`IP_TRANSPARENT`).
    pub transparent: bool,
    /// The name that a unix socket is given before it is connected; empty for none.
    pub unix_name: &'a [u8],
    /// Whether the kernel probes the peer while nothing is sent (`SO_KEEPALIVE`).
    pub socket_keepalive: bool,
    /// The size of the send buffer in bytes; 0 for the kernel's default.
    pub send_buffer_bytes: u32,
    /// The size of the receive buffer in bytes; 0 for the kernel's default.
    pub receive_buffer_bytes: u32,
    /// The time limit of connecting, in milliseconds; 0 for none.
    pub timeout_ms: u64,
    /// Whether bytes are sent as soon as the peer is connected to: they then carry the last
    /// acknowledgement of the handshake, which is a packet less, and the peer is woken once.
    pub sends_at_once: bool,
    /// The first bytes, before TLS: the PROXY protocol header for the client. A connection with
    /// such a header serves only that client. It must fit into the buffer of a new socket.
    pub proxy_header: &'a [u8],
    /// TLS, if the peer uses it.
    pub tls: Option<Tls<'a>>,
    /// Makes what the caller's protocol keeps with the connection while it is open. A kept
    /// connection serves no caller who differs in whether something is kept.
    pub protocol_state: Option<fn() -> Rc<dyn Any>>,
    /// The requesting location: groups that keep connections by location compare it.
    pub location: u32,
}

/// TLS to a peer.
#[derive(Clone, Copy, Debug)]
pub struct Tls<'a> {
    /// The connector of the session.
    pub connector: &'a Arc<TlsConnector>,
    /// The name to send, which the certificate must match if it is verified.
    pub name: &'a str,
    /// The protocols to offer (ALPN) instead of the connector's, the best first; if empty, the
    /// connector's are offered.
    pub protocols: &'a [Vec<u8>],
    /// The time limit of the handshake, in milliseconds; 0 for none.
    pub timeout_ms: u64,
}

/// The properties that must be equal for a connection to be reused.
pub(crate) struct Key {
    pub(crate) peer: Address,
    bind: Option<SocketAddr>,
    location: u32,
    has_proxy_header: bool,
    has_protocol_state: bool,
    tls: Option<(Arc<TlsConnector>, Box<str>)>,
}

impl Key {
    fn new(address: &Address, options: &ConnectOptions<'_>) -> Key {
        let tls = options.tls.as_ref();
        Key {
            peer: address.clone(),
            bind: options.bind.copied(),
            location: options.location,
            has_proxy_header: !options.proxy_header.is_empty(),
            has_protocol_state: options.protocol_state.is_some(),
            tls: tls.map(|tls| (Arc::clone(tls.connector), tls.name.into())),
        }
    }

    /// Whether a connection with this key serves only one client.
    pub(crate) fn has_proxy_header(&self) -> bool {
        self.has_proxy_header
    }

    /// Whether a connection with this key can be used; with `local`, locations must be equal.
    pub(crate) fn serves(
        &self,
        picked: &Picked,
        options: &ConnectOptions<'_>,
        local: bool,
    ) -> bool {
        let same_tls = match (&self.tls, &options.tls) {
            (None, None) => true,
            (Some((connector, name)), Some(tls)) => {
                Arc::ptr_eq(connector, tls.connector) && **name == *tls.name
            }
            _ => false,
        };
        !self.has_proxy_header
            && options.proxy_header.is_empty()
            && same_tls
            && self.has_protocol_state == options.protocol_state.is_some()
            && self.peer == *picked.address()
            && self.bind.as_ref() == options.bind
            && (!local || self.location == options.location)
    }
}

/// nginx's message about a server that did not answer in time.
pub const UPSTREAM_TIMED_OUT: &str = "upstream timed out (110: Connection timed out)";

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// No socket: out of descriptors or memory.
    Socket(io::Error),
    /// Binding to the local address failed.
    Bind(io::Error),
    /// The peer cannot be reached or refuses.
    Connect(io::Error),
    /// Connecting timed out.
    TimedOut,
    /// The TLS handshake timed out.
    HandshakeTimedOut,
    /// The peer closed the connection during the TLS handshake.
    HandshakeBroken(HandshakeError),
    /// The TLS handshake failed.
    Handshake(String),
    /// The peer's certificate is invalid: OpenSSL's number and message.
    Certificate(String),
    /// The peer's certificate is valid, but not for this name.
    Name(String),
}

impl ConnectError {
    /// The action in nginx's log message, after `while`.
    pub fn action(&self) -> &'static str {
        match self {
            ConnectError::Socket(_)
            | ConnectError::Bind(_)
            | ConnectError::Connect(_)
            | ConnectError::TimedOut => "connecting to upstream",
            ConnectError::HandshakeTimedOut
            | ConnectError::HandshakeBroken(_)
            | ConnectError::Handshake(_)
            | ConnectError::Certificate(_)
            | ConnectError::Name(_) => "SSL handshaking to upstream",
        }
    }

    /// Whether it is a time-out.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self,
            ConnectError::TimedOut | ConnectError::HandshakeTimedOut
        )
    }
}

/// nginx's message, before `while` and [`ConnectError::action`].
impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Socket(error) => write!(out, "socket() failed {}", Errno(error)),
            ConnectError::Bind(error) => write!(out, "bind() failed {}", Errno(error)),
            ConnectError::Connect(error) => write!(out, "connect() failed {}", Errno(error)),
            ConnectError::TimedOut | ConnectError::HandshakeTimedOut => {
                out.write_str(UPSTREAM_TIMED_OUT)
            }
            ConnectError::HandshakeBroken(error) => write!(out, "{error}"),
            ConnectError::Handshake(why) => write!(out, "SSL_do_handshake() failed ({why})"),
            ConnectError::Certificate(why) => {
                write!(out, "upstream SSL certificate verify error: ({why})")
            }
            ConnectError::Name(name) => {
                write!(out, "upstream SSL certificate does not match \"{name}\"")
            }
        }
    }
}

impl std::error::Error for ConnectError {}

impl Connection {
    /// Connects to a peer; must be called on the lane's runtime. The connection is boxed, since it
    /// is moved often.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn open(
        picked: &Picked,
        options: &ConnectOptions<'_>,
        now_ms: u64,
    ) -> Result<Box<Connection>, ConnectError> {
        let opened = Self::open_to(picked.address(), options, now_ms).await;
        opened.map(Box::new)
    }

    /// Starts to connect to a peer, and waits for nothing: see [`Connection::is_connecting`]. One
    /// that is spoken to by TLS, or after a header, needs [`Connection::finish_opening`].
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn start(
        picked: &Picked,
        options: &ConnectOptions<'_>,
        now_ms: u64,
    ) -> Result<Box<Connection>, ConnectError> {
        Self::start_to(picked.address(), options, now_ms).map(Box::new)
    }

    /// Connects to an address; must be called where tokio's runtime is entered.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn open_to(
        address: &Address,
        options: &ConnectOptions<'_>,
        now_ms: u64,
    ) -> Result<Connection, ConnectError> {
        let connection = Self::start_to(address, options, now_ms)?;
        connection.finish_opening(options).await?;
        Ok(connection)
    }

    /// Goes on with what [`Connection::start`] has begun: waits for the connection, sends the PROXY
    /// protocol header, makes the TLS handshake. Must be called where tokio's runtime is entered.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn finish_opening(&self, options: &ConnectOptions<'_>) -> Result<(), ConnectError> {
        if self.is_connecting() {
            self.established(options.timeout_ms).await?;
        }
        if !options.proxy_header.is_empty() || options.tls.is_some() {
            // The request comes behind other bytes.
            let sends = self.send_without_delay();
            sends.map_err(ConnectError::Socket)?;
        }
        self.send_proxy_header(options.proxy_header)?;
        match &options.tls {
            Some(tls) => self.handshake(tls).await,
            None => Ok(()),
        }
    }

    fn start_to(
        address: &Address,
        options: &ConnectOptions<'_>,
        now_ms: u64,
    ) -> Result<Connection, ConnectError> {
        let key = Key::new(address, options);
        let (socket, under_way) = begin(address, Kind::Stream, options)?;
        Ok(Connection {
            waited: Waited::new(Transport::plain(socket)),
            watched_socket: OnceCell::new(),
            key,
            protocol_state: options.protocol_state.map(|make| make()),
            opened_ms: now_ms,
            connecting: Cell::new(under_way),
            delays: Cell::new(matches!(address, Address::Inet(_))),
            requests: Cell::new(1),
            bytes_sent: Cell::new(0),
            bytes_received: Cell::new(0),
        })
    }

    /// Waits until connecting has finished, `timeout_ms` at most (0: without limit); must be
    /// called where tokio's runtime is entered.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn established(&self, timeout_ms: u64) -> Result<(), ConnectError> {
        // A send of nothing shows the state in one call: in progress, connected, or failed.
        let ask = || socket::send(self.as_fd(), &[], More::No).map(|_| ());
        let established = self.waited.when_writable(timeout_ms, ask).await;
        established.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut if error.raw_os_error().is_none() => ConnectError::TimedOut,
            _ => ConnectError::Connect(error),
        })?;
        self.connecting.set(false);
        Ok(())
    }

    /// Sends the PROXY protocol header.
    fn send_proxy_header(&self, proxy_header: &[u8]) -> Result<(), ConnectError> {
        if proxy_header.is_empty() {
            return Ok(());
        }
        match socket::send(self.as_fd(), proxy_header, More::No) {
            Ok(sent) if sent == proxy_header.len() => Ok(()),
            Ok(_) => Err(ConnectError::Connect(io::ErrorKind::WriteZero.into())),
            Err(error) => Err(ConnectError::Connect(error)),
        }
    }

    async fn handshake(&self, tls: &Tls<'_>) -> Result<(), ConnectError> {
        let named = |refusal| match refusal {
            Refusal::Certificate(why) => ConnectError::Certificate(why),
            Refusal::Name => ConnectError::Name(tls.name.to_owned()),
            Refusal::Protocol(why) => ConnectError::Handshake(why),
        };
        let session = tls.connector.session(tls.name, tls.protocols);
        let session = session.map_err(named)?;
        self.transport().secure(session);
        match bounded(tls.timeout_ms, self.waited.handshake()).await {
            Some(Ok(())) => Ok(()),
            Some(Err(HandshakeError::Tls(error))) => Err(named(Refusal::of(&error))),
            Some(Err(error)) => Err(ConnectError::HandshakeBroken(error)),
            None => Err(ConnectError::HandshakeTimedOut),
        }
    }
}

/// Starts to connect to a peer, without TLS, for a caller that waits by itself and sets
/// `TCP_NODELAY` when it needs it. Of the options, those of the local address, of buffers and of
/// the first bytes apply. Returns whether connecting is still in progress.
///
/// # Errors
/// See [`ConnectError`].
pub fn begin_connecting(
    picked: &Picked,
    kind: Kind,
    options: &ConnectOptions<'_>,
) -> Result<(OwnedFd, bool), ConnectError> {
    let (socket, under_way) = begin(picked.address(), kind, options)?;
    let under_way = under_way && (!is_local(picked.address()) || is_under_way(&socket)?);
    Ok((socket, under_way))
}

/// Whether the peer is on this machine: connect(2) says `EINPROGRESS` then too, but the kernel has
/// made the whole handshake when it returns, unless the peer's queue is full.
fn is_local(address: &Address) -> bool {
    matches!(address, Address::Inet(address) if address.ip().is_loopback())
}

/// Asks whether connecting is still in progress: a send of nothing shows it.
fn is_under_way(socket: &OwnedFd) -> Result<bool, ConnectError> {
    match socket::send(socket.as_fd(), &[], More::No) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(ConnectError::Connect(error)),
    }
}

/// Creates a socket and starts connecting; returns whether it is still in progress.
pub(super) fn begin(
    address: &Address,
    kind: Kind,
    options: &ConnectOptions<'_>,
) -> Result<(OwnedFd, bool), ConnectError> {
    let family = match address {
        Address::Inet(SocketAddr::V4(_)) => Family::V4,
        Address::Inet(SocketAddr::V6(_)) => Family::V6,
        Address::Unix(_) => Family::Unix,
    };
    let socket = socket::open(family, kind).map_err(ConnectError::Socket)?;
    prepare(&socket, kind, address, options)?;
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
    kind: Kind,
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
        return match options.unix_name {
            [] => Ok(()),
            name => socket::bind_unix_name(socket, name).map_err(ConnectError::Bind),
        };
    };
    if options.sends_at_once && kind == Kind::Stream {
        socket_option::let_handshake_wait(socket).map_err(option)?;
    }
    let Some(own) = options.bind else {
        return Ok(());
    };
    if options.transparent {
        socket_option::set_transparent(socket, peer.is_ipv6()).map_err(ConnectError::Bind)?;
    }
    if own.port() == 0 {
        // connect(2) then chooses the port for this peer: many more are free.
        socket_option::set_bind_without_port(socket).map_err(ConnectError::Bind)?;
    }
    socket::bind(socket, *own).map_err(ConnectError::Bind)
}
