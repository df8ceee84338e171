//! TLS with clients: with what a server block serves it, and what client and server have agreed
//! on. The bytes themselves are `lane::transport`'s.

mod clients;
mod names;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustls::{HandshakeKind, ServerConfig};
use turnpike_lane::transport::{Greeting, Transport};
use turnpike_lane::trust::Trust;

pub use clients::{ClientCertificate, ClientRefusal, VerifyClient};
pub use names::{cipher_name, group_name, has_cipher, version_name};

/// The name of HTTP/2 in the TLS handshake.
pub const HTTP2: &[u8] = b"h2";

/// TLS of a server block.
#[derive(Clone)]
pub enum ServerTls {
    /// Sessions go on with this.
    Serve(Arc<ServerIdentity>),
    /// Handshakes are refused (`ssl_reject_handshake`).
    Reject,
}

/// With what the sessions of a server go on.
pub struct ServerIdentity {
    /// What the handshake needs.
    pub config: Arc<ServerConfig>,
    /// CAs whose certificates clients may show; `None`: clients are not asked for one.
    pub clients: Option<Trust>,
}

impl ServerIdentity {
    /// The same, with HTTP/2 for clients to choose.
    pub fn with_http2(&self) -> ServerIdentity {
        let mut config = ServerConfig::clone(&self.config);
        offer_http2(&mut config);
        ServerIdentity {
            config: Arc::new(config),
            clients: self.clients.clone(),
        }
    }
}

/// What a client's hello asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The server that is asked for (SNI, RFC 6066), in lower case; empty: none.
    pub server_name: Box<[u8]>,
    /// Numbers of the cipher suites, in the client's order.
    pub ciphers: Box<[u16]>,
    /// Numbers of the groups for the key exchange, in the client's order.
    pub groups: Box<[u16]>,
}

/// What may have been begun by TLS.
pub trait HasTlsSession {
    /// What its session has agreed on; `None`: it came without TLS.
    fn tls_session(&self) -> Option<&TlsSession>;
}

/// What a session has agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSession {
    /// As `$ssl_protocol` has it.
    pub version: &'static str,
    /// The cipher suite, by OpenSSL's name.
    pub cipher: &'static str,
    /// The group of the key exchange, by OpenSSL's name; empty: the session was resumed without.
    pub group: &'static str,
    /// The protocol that was agreed on (ALPN, RFC 7301); empty: none.
    pub protocol: Box<[u8]>,
    /// The server that was asked for, in lower case; empty: none.
    pub server_name: Box<[u8]>,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// Numbers of the cipher suites that the client offered, in its order.
    pub offered_ciphers: Box<[u16]>,
    /// Numbers of the groups that the client offered, in its order.
    pub offered_groups: Box<[u16]>,
    /// What the client has shown; `None`: nothing.
    pub client: Option<ClientCertificate>,
}

/// Lets clients choose HTTP/2 (RFC 9113 section 3.2), before anything else.
pub fn offer_http2(config: &mut ServerConfig) {
    if !config.alpn_protocols.iter().any(|name| name == HTTP2) {
        config.alpn_protocols.insert(0, HTTP2.to_vec());
    }
}

impl Offer {
    /// What a hello says.
    pub fn of(greeting: &Greeting) -> Offer {
        let hello = greeting.hello();
        let name = hello.server_name().unwrap_or_default();
        let groups = hello.named_groups().unwrap_or_default();
        Offer {
            server_name: name.to_ascii_lowercase().into_bytes().into(),
            ciphers: hello
                .cipher_suites()
                .iter()
                .map(|&suite| suite.into())
                .collect(),
            groups: groups.iter().map(|&group| group.into()).collect(),
        }
    }
}

impl TlsSession {
    /// What the session of a transport has agreed on, once its handshake is done; `None`: it has
    /// none. The client's certificate is checked by `clients`.
    pub fn of(transport: &Transport, offer: Offer, clients: Option<&Trust>) -> Option<TlsSession> {
        transport.with_session(|session| {
            let group = session.negotiated_key_exchange_group();
            TlsSession {
                version: session
                    .protocol_version()
                    .map_or("", |version| version_name(version.into())),
                cipher: session
                    .negotiated_cipher_suite()
                    .map_or("", |suite| cipher_name(suite.suite().into()).unwrap_or("")),
                group: group.map_or("", |group| group_name(group.name().into()).unwrap_or("")),
                protocol: session.alpn_protocol().unwrap_or_default().into(),
                server_name: offer.server_name,
                is_resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
                offered_ciphers: offer.ciphers,
                offered_groups: offer.groups,
                client: clients.and_then(|trust| {
                    ClientCertificate::check(session.peer_certificates()?, trust)
                }),
            }
        })
    }
}
