//! The sender of a request: its connection, and the client that a trusted proxy names.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::transport::SocketFacts;
use turnpike_plan::proxy_header::ProxyHeader;
use turnpike_plan::tls::TlsSession;

use crate::plan::index::ListenIndex;

/// The properties of a connection.
#[derive(Clone, Copy)]
pub struct ConnectionFacts {
    /// Number of the connection, unique in the process (`$connection`).
    pub serial: u64,
    /// Where the connection comes from.
    pub peer: PeerAddress,
    /// The gate it was accepted on.
    pub listen: ListenIndex,
    /// What the kernel knows of the connection.
    pub socket: SocketFacts,
    /// Our address, where it is not the socket's.
    pub local: Option<SocketAddr>,
    /// Requests so far on this connection, the present one counted.
    pub requests: u64,
    /// Whether the request had come before the one in front of it was answered (`$pipe`).
    pub is_pipelined: bool,
    /// When it was accepted, in the lane's monotonic milliseconds.
    pub accepted_ms: u64,
    /// The same in nanoseconds.
    pub accepted_ns: u64,
}

/// The sender of a request.
#[derive(Clone)]
pub struct Requester {
    connection: ConnectionFacts,
    /// The peer that the request is for, where a trusted proxy names another than who connected.
    named_peer: Option<PeerAddress>,
    proxy_header: Option<Rc<ProxyHeader>>,
    tls: Option<Arc<TlsSession>>,
    is_plain_on_tls_port: bool,
    is_early: bool,
}

impl Requester {
    /// The one on a connection that is not secured.
    pub(crate) fn new(connection: ConnectionFacts) -> Self {
        Self {
            connection,
            named_peer: None,
            proxy_header: None,
            tls: None,
            is_plain_on_tls_port: false,
            is_early: false,
        }
    }

    /// The requester of a subrequest, which the connection may not outlive.
    pub(crate) fn of_subrequest(&self) -> Self {
        let mut copy = self.clone();
        copy.connection.socket = SocketFacts::NONE;
        copy
    }

    /// Number of the connection, unique in the process (`$connection`).
    pub fn serial(&self) -> u64 {
        self.connection.serial
    }

    /// The peer that the request is for: the one that connected, or that a trusted proxy names.
    pub fn peer(&self) -> PeerAddress {
        self.named_peer.unwrap_or(self.connection.peer)
    }

    /// The peer that connected.
    pub fn connection_peer(&self) -> PeerAddress {
        self.connection.peer
    }

    /// Whether a trusted proxy has named another peer than who connected.
    pub fn is_named(&self) -> bool {
        self.named_peer.is_some()
    }

    /// Sets the client that a trusted proxy names.
    pub fn set_named_peer(&mut self, peer: PeerAddress) {
        self.named_peer = Some(peer);
    }

    /// The gate that the connection was accepted on.
    pub fn listen(&self) -> ListenIndex {
        self.connection.listen
    }

    /// Our address, where it is not the socket's.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        self.connection.local
    }

    /// What the kernel knows of the connection.
    pub(crate) fn socket(&self) -> SocketFacts {
        self.connection.socket
    }

    /// Requests so far on the connection, the present one counted.
    pub fn requests(&self) -> u64 {
        self.connection.requests
    }

    /// Whether the request had come before the one in front of it was answered (`$pipe`).
    pub fn is_pipelined(&self) -> bool {
        self.connection.is_pipelined
    }

    /// When the connection was accepted, in the lane's monotonic milliseconds.
    pub fn accepted_ms(&self) -> u64 {
        self.connection.accepted_ms
    }

    /// What the PROXY protocol's header of the connection said.
    pub fn proxy_header(&self) -> Option<&ProxyHeader> {
        self.proxy_header.as_deref()
    }

    /// The TLS session of the connection; `None`: it is not secured.
    pub fn tls(&self) -> Option<&TlsSession> {
        self.tls.as_deref()
    }

    /// Whether the request came as early data of TLS, and the handshake was not complete when it
    /// was begun (RFC 8470): somebody may have recorded it and sent it again.
    pub fn is_early(&self) -> bool {
        self.is_early
    }

    /// Whether plain HTTP is spoken where TLS is expected.
    pub(crate) fn is_plain_on_tls_port(&self) -> bool {
        self.is_plain_on_tls_port
    }

    /// Sets the number of requests so far, and whether the present one was pipelined.
    pub(crate) fn set_request_count(&mut self, requests: u64, is_pipelined: bool) {
        self.connection.requests = requests;
        self.connection.is_pipelined = is_pipelined;
    }

    /// Sets whether the request came as early data of TLS.
    pub(crate) fn set_early_data(&mut self, is_early: bool) {
        self.is_early = is_early;
    }

    /// Sets the PROXY protocol's header of the connection; `None` if it has none.
    pub(crate) fn set_proxy_header(&mut self, header: &Option<Rc<ProxyHeader>>) {
        self.proxy_header.clone_from(header);
    }

    /// Sets the TLS session of the connection; `None` if it has none.
    pub(crate) fn set_tls(&mut self, tls: Option<&Arc<TlsSession>>) {
        self.tls = tls.cloned();
    }

    /// Sets whether plain HTTP is spoken where TLS is expected.
    pub(crate) fn set_plain_on_tls_port(&mut self, plain: bool) {
        self.is_plain_on_tls_port = plain;
    }

    /// The properties of the connection.
    pub(crate) fn connection(&self) -> &ConnectionFacts {
        &self.connection
    }

    /// Replaces the facts about the connection.
    pub(crate) fn set_connection(&mut self, connection: ConnectionFacts) {
        self.connection = connection;
    }

    /// Lets go of what belongs to the connection.
    pub(crate) fn leave_connection(&mut self) {
        self.proxy_header = None;
        self.tls = None;
        self.is_plain_on_tls_port = false;
        self.is_early = false;
    }

    /// Removes the client that a trusted proxy named: the next request may name another.
    pub(crate) fn clear_named_peer(&mut self) {
        self.named_peer = None;
    }
}
