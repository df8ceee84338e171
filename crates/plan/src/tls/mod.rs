//! TLS with clients: the identity of a server block, and the parameters of a session.
//! `lane::transport` moves the bytes.

mod certificates;
mod challenges;
mod clients;
mod names;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::{HandshakeKind, ServerConfig};
use turnpike_lane::timeout::bounded;
use turnpike_lane::transport::{Greeting, Hello, Identify, Transport};
use turnpike_lane::trust::Trust;
use turnpike_quic::{Negotiated, ServerConfiguration};
use turnpike_wire::client_hello::ja4;
use turnpike_wire::host;

use crate::variables::VariableTable;

pub use certificates::{
    CertificateNames, CertificateSource, Certificates, CertificatesByName, CertifiedKeys, Loaded,
    Loading,
};
pub use challenges::{ACME_TLS, ShownChallenge, challenged};
pub use clients::{
    Asking, ClientCertificate, ClientFailure, ClientRefusal, StatusFailure, StatusSource,
    VerifyClient,
};
pub use names::{cipher_name, group_name, has_cipher, signature_name, version_name};

/// The name of HTTP/2 in the TLS handshake.
pub const HTTP2: &[u8] = b"h2";

/// The name of HTTP/3.
pub const HTTP3: &[u8] = b"h3";

/// The TLS of a server block.
#[derive(Clone)]
pub enum ServerTls {
    /// Sessions use this identity.
    Serve(Arc<ServerIdentity>),
    /// Handshakes are refused (`ssl_reject_handshake`).
    Reject,
}

impl ServerTls {
    /// The certificates that variables name; `None`: none are.
    pub fn by_name(&self) -> Option<&CertificatesByName> {
        match self {
            ServerTls::Serve(identity) => identity.by_name.as_deref(),
            ServerTls::Reject => None,
        }
    }
}

/// The identity of a server in its sessions.
#[derive(Clone)]
pub struct ServerIdentity {
    /// The configuration of the handshake.
    pub config: Arc<ServerConfig>,
    /// Whether that has TLS 1.3.
    pub speaks_tls13: bool,
    /// The certificates, where variables name them; `None`: `config` has them.
    pub by_name: Option<Arc<CertificatesByName>>,
    /// The CAs of clients' certificates; `None` if no certificate is requested.
    pub clients: Option<Arc<Trust>>,
    /// What knows whether clients' certificates are revoked; `None` if nobody is asked.
    pub statuses: Option<Arc<dyn StatusSource>>,
    /// The same for QUIC; `None`: the server has no address of it, or not what QUIC needs.
    pub quic: Option<ServerConfiguration>,
}

impl ServerIdentity {
    /// The same, but clients may choose HTTP/2.
    pub fn with_http2(&self) -> ServerIdentity {
        let mut config = ServerConfig::clone(&self.config);
        offer_http2(&mut config);
        ServerIdentity {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// The same, which clients of QUIC reach too, to speak this protocol.
    pub fn with_quic(&self, protocol: &[u8]) -> ServerIdentity {
        ServerIdentity {
            quic: ServerConfiguration::new(&self.config, vec![protocol.to_vec()]),
            ..self.clone()
        }
    }

    /// What a handshake needs that shows these certificates.
    pub fn with_certificates(&self, keys: CertifiedKeys) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.config);
        config.cert_resolver = Arc::new(Certificates(keys));
        Arc::new(config)
    }

    /// The same for a client of QUIC; `None`: there is no QUIC.
    pub fn quic_with(&self, keys: Option<CertifiedKeys>) -> Option<ServerConfiguration> {
        let quic = self.quic.as_ref()?;
        match keys {
            None => Some(quic.clone()),
            Some(keys) => quic.showing(Arc::new(Certificates(keys))),
        }
    }
}

/// The offers of a ClientHello.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The requested server (SNI, RFC 6066), in lower case; empty if there is none.
    pub server_name: Box<[u8]>,
    /// Bytes of the host at the start of the name, which a server is chosen by: it is without port
    /// and final dot. 0 if the name is no host, and later if no server of the address has it.
    pub host_bytes: u16,
    /// The numbers of the cipher suites, in the client's order.
    pub ciphers: Box<[u16]>,
    /// The numbers of the groups for the key exchange, in the client's order.
    pub groups: Box<[u16]>,
    /// The numbers of the signature algorithms, in the client's order.
    pub signatures: Box<[u16]>,
    /// The fingerprint of the client (JA4); `None` if its hello is not well formed, or no variable
    /// may ask for it.
    pub fingerprint: Option<Fingerprint>,
}

/// The variable whose value is the fingerprint of the client.
pub const FINGERPRINT_VARIABLE: &str = "ssl_ja4";

/// A ClientHello of which nothing has come. The client is identified if a variable may ask for it:
/// sorting and hashing its offers would cost each handshake else.
pub fn expect_hello<S>(variables: &VariableTable<S>) -> Hello {
    Hello::new(if variables.may_need(FINGERPRINT_VARIABLE) {
        Identify::Yes
    } else {
        Identify::No
    })
}

/// The fingerprint of a client (JA4), ASCII.
pub type Fingerprint = [u8; ja4::FINGERPRINT_BYTES];

/// A connection that may use TLS.
pub trait HasTlsSession {
    /// The parameters of its session; `None` without TLS.
    fn tls_session(&self) -> Option<&TlsSession>;
}

/// The parameters of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSession {
    /// The version, in the format of `$ssl_protocol`.
    pub version: &'static str,
    /// The cipher suite, by OpenSSL's name.
    pub cipher: &'static str,
    /// The group of the key exchange, by OpenSSL's name; empty if the session was resumed without
    /// one.
    pub group: &'static str,
    /// The negotiated protocol (ALPN, RFC 7301); empty if there is none.
    pub protocol: Box<[u8]>,
    /// The requested server, in lower case; empty if there is none.
    pub server_name: Box<[u8]>,
    /// Bytes of the host at the start of the name, whose server the handshake was with; 0 if no
    /// server of the address has it.
    pub host_bytes: u16,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// Numbers of the cipher suites that the client offered, in its order.
    pub offered_ciphers: Box<[u16]>,
    /// Numbers of the groups that the client offered, in its order.
    pub offered_groups: Box<[u16]>,
    /// Numbers of the signature algorithms that the client offered, in its order.
    pub offered_signatures: Box<[u16]>,
    /// The fingerprint of the client (JA4); `None` if its hello was not well formed, or no variable
    /// might ask for it.
    pub fingerprint: Option<Fingerprint>,
    /// The client's certificate; `None` if none was sent.
    pub client: Option<Box<ClientCertificate>>,
}

fn sha256(bytes: &[u8]) -> [u8; ja4::SHA256_BYTES] {
    let mut sum = [0; ja4::SHA256_BYTES];
    sum.copy_from_slice(digest(&SHA256, bytes).as_ref());
    sum
}

/// The host that a name in a handshake stands for; `None` if it is no host, as for requests.
pub fn host_of(name: &[u8]) -> Option<&[u8]> {
    let host = host::validate(name).ok()?;
    name.get(..host.len)
}

fn host_at(name: &[u8], bytes: u16) -> &[u8] {
    name.get(..usize::from(bytes)).unwrap_or_default()
}

/// Adds HTTP/2 (RFC 9113 section 3.2) as the first protocol that clients may choose.
pub fn offer_http2(config: &mut ServerConfig) {
    if !config.alpn_protocols.iter().any(|name| name == HTTP2) {
        config.alpn_protocols.insert(0, HTTP2.to_vec());
    }
}

impl Offer {
    /// The host that a server is chosen by; empty if there is none.
    pub fn host(&self) -> &[u8] {
        host_at(&self.server_name, self.host_bytes)
    }

    /// The same offers, made over QUIC: the fingerprint says so by its first letter.
    #[must_use]
    pub fn over_quic(mut self) -> Offer {
        if let Some(fingerprint) = &mut self.fingerprint {
            fingerprint[0] = b'q';
        }
        self
    }

    /// The session that a client requests, before anything is negotiated.
    pub fn session(&self) -> TlsSession {
        TlsSession {
            server_name: self.server_name.clone(),
            offered_ciphers: self.ciphers.clone(),
            offered_groups: self.groups.clone(),
            offered_signatures: self.signatures.clone(),
            fingerprint: self.fingerprint,
            ..TlsSession::default()
        }
    }

    /// The offers in a ClientHello.
    pub fn of(greeting: &Greeting) -> Offer {
        let hello = greeting.hello();
        let name = hello.server_name().unwrap_or_default();
        let groups = hello.named_groups().unwrap_or_default();
        let host = host_of(name.as_bytes()).unwrap_or_default();
        Offer {
            host_bytes: u16::try_from(host.len()).unwrap_or(0),
            server_name: name.to_ascii_lowercase().into_bytes().into(),
            ciphers: hello
                .cipher_suites()
                .iter()
                .map(|&suite| suite.into())
                .collect(),
            groups: groups.iter().map(|&group| group.into()).collect(),
            signatures: hello
                .signature_schemes()
                .iter()
                .map(|&scheme| scheme.into())
                .collect(),
            fingerprint: greeting.offers().map(|offers| offers.fingerprint(sha256)),
        }
    }
}

/// Judges the certificates of a client as this identity does; they may be none.
fn check_client(
    shown: &[CertificateDer<'_>],
    identity: &ServerIdentity,
) -> (Option<Box<ClientCertificate>>, Asking) {
    let statuses = identity.statuses.as_deref();
    let trust = identity.clients.as_ref();
    match trust.and_then(|trust| ClientCertificate::check(shown, trust, statuses)) {
        Some((client, asking)) => (Some(Box::new(client)), asking),
        None => (None, Asking::Done(Ok(()))),
    }
}

/// A session after its handshake.
pub enum Agreement {
    /// All is known of it.
    Complete(TlsSession),
    /// A responder is asked whether the client's certificate is revoked.
    Pending(Box<PendingSession>),
}

/// A session whose client has a certificate that may be revoked.
pub struct PendingSession {
    session: TlsSession,
    asked: Pin<Box<dyn Future<Output = Result<(), StatusFailure>>>>,
}

impl PendingSession {
    /// Waits until it is known whether the certificate is revoked. After `timeout_ms` (0: without
    /// limit) it counts as a bad one.
    pub async fn complete(self, timeout_ms: u64) -> TlsSession {
        let mut session = self.session;
        let status = bounded(timeout_ms, self.asked).await;
        session.take_status(status.unwrap_or(Err(StatusFailure::Unanswered)));
        session
    }
}

impl TlsSession {
    /// The host whose server the handshake was with; empty if no server of the address has the name
    /// that the client sent.
    pub fn negotiated_host(&self) -> &[u8] {
        host_at(&self.server_name, self.host_bytes)
    }

    /// The same session, with the client's certificate as another server judges it; `None`: there
    /// is none, or that server trusts the same as the one of the handshake.
    pub fn judged_by(&self, identity: &ServerIdentity) -> Option<TlsSession> {
        let client = self.client.as_ref()?.judged_by(identity)?;
        Some(TlsSession {
            client: Some(Box::new(client)),
            ..self.clone()
        })
    }

    /// The parameters of a connection of QUIC after its handshake with this identity.
    pub fn of_quic(negotiated: &Negotiated, offer: Offer, identity: &ServerIdentity) -> Agreement {
        let (client, asking) = check_client(&negotiated.certificates, identity);
        let group = negotiated.group.and_then(|group| group_name(group.into()));
        let session = TlsSession {
            version: version_name(negotiated.version.into()),
            cipher: cipher_name(negotiated.cipher.into()).unwrap_or(""),
            group: group.unwrap_or(""),
            protocol: negotiated.protocol.as_slice().into(),
            is_resumed: negotiated.is_resumed,
            client,
            ..offer.session()
        };
        let session = TlsSession {
            host_bytes: offer.host_bytes,
            ..session
        };
        session.agreed(asking)
    }

    /// The parameters of a transport's session after its handshake with this identity; empty if it
    /// has none.
    pub fn of(transport: &Transport, offer: Offer, identity: &ServerIdentity) -> Agreement {
        let checked = transport.with_session(|session| {
            check_client(session.peer_certificates().unwrap_or_default(), identity)
        });
        let (client, asking) = checked.unwrap_or((None, Asking::Done(Ok(()))));
        let agreed = transport.with_session(|session| {
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
                host_bytes: offer.host_bytes,
                is_resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
                offered_ciphers: offer.ciphers,
                offered_groups: offer.groups,
                offered_signatures: offer.signatures,
                fingerprint: offer.fingerprint,
                client,
            }
        });
        agreed.unwrap_or_default().agreed(asking)
    }

    fn agreed(mut self, asking: Asking) -> Agreement {
        match asking {
            Asking::Done(status) => {
                self.take_status(status);
                Agreement::Complete(self)
            }
            Asking::Later(asked) => Agreement::Pending(Box::new(PendingSession {
                session: self,
                asked,
            })),
        }
    }

    fn take_status(&mut self, status: Result<(), StatusFailure>) {
        if let (Some(client), Err(failure)) = (&mut self.client, status) {
            client.failure = Some(ClientFailure::Status(failure));
        }
    }
}
