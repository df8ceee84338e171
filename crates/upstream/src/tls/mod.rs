//! TLS towards peers: what is configured, once for all connections, and what a refusal means. The
//! sessions themselves are `lane::transport`'s.

mod pinned;
mod session;
#[cfg(test)]
mod tests;
mod verify;

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use pinned::KnownOrSigned;
pub(crate) use session::Refusal;
use verify::AcceptAny;

/// Sessions that a connector remembers; two tickets each for a hundred names.
const SESSIONS_MAX: usize = 256;

/// What a location says about TLS to its peers.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// Whether the peer's certificate must be good for its name.
    pub verify: bool,
    /// PEM: certificates that are trusted; needed to verify.
    pub trusted: Vec<u8>,
    /// PEM: revoked certificates; empty checks none.
    pub revoked: Vec<u8>,
    /// PEM: our own certificate with those that lead to it, and its key.
    pub identity: Option<TlsIdentity>,
    /// Whether the name is sent (SNI, RFC 6066).
    pub server_name: bool,
    /// Whether sessions are resumed.
    pub session_reuse: bool,
    /// Protocol versions.
    pub versions: TlsVersions,
    /// Protocols to offer (ALPN, RFC 7301), the best first; empty offers none.
    pub protocols: Vec<Vec<u8>>,
}

/// A certificate of ours.
#[derive(Clone, Debug)]
pub struct TlsIdentity {
    /// PEM: the certificate, then those that lead to it.
    pub certificate: Vec<u8>,
    /// PEM: its key, unencrypted.
    pub key: Vec<u8>,
}

/// Versions of TLS that may be spoken; older ones cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsVersions {
    /// RFC 5246.
    pub tls12: bool,
    /// RFC 8446.
    pub tls13: bool,
}

impl Default for TlsVersions {
    fn default() -> Self {
        Self {
            tls12: true,
            tls13: true,
        }
    }
}

/// Why TLS cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// There is no trusted certificate, though peers are to be verified.
    NoTrusted,
    /// Trusted certificates cannot be read.
    Trusted(String),
    /// The list of revoked certificates cannot be read.
    Revoked(String),
    /// Our own certificate cannot be read.
    Certificate(String),
    /// Our own key cannot be read, or is another certificate's.
    Key(String),
    /// No version is left.
    NoVersion,
    /// The library refused the settings.
    Library(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::NoTrusted => out.write_str("no trusted certificates"),
            TlsError::Trusted(why) => write!(out, "cannot read trusted certificates: {why}"),
            TlsError::Revoked(why) => write!(out, "cannot read revoked certificates: {why}"),
            TlsError::Certificate(why) => write!(out, "cannot read the certificate: {why}"),
            TlsError::Key(why) => write!(out, "cannot use the certificate's key: {why}"),
            TlsError::NoVersion => out.write_str("no version of TLS is left"),
            TlsError::Library(why) => write!(out, "cannot set TLS up: {why}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// Begins TLS sessions. Made when a configuration is read; shared by all lanes, with the sessions
/// that may be resumed.
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    verify: bool,
}

impl TlsConnector {
    /// A connector with these settings.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn new(settings: &TlsSettings) -> Result<TlsConnector, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions(settings.versions)?)
            .map_err(|error| TlsError::Library(error.to_string()))?;
        let builder = if settings.verify {
            let verifier = verifier(settings, provider)?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        } else {
            let any = Arc::new(AcceptAny::new(provider));
            builder.dangerous().with_custom_certificate_verifier(any)
        };
        let mut config = match &settings.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = certificates(&identity.certificate).map_err(TlsError::Certificate)?;
                let key = PrivateKeyDer::from_pem_slice(&identity.key)
                    .map_err(|error| TlsError::Key(error.to_string()))?;
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| TlsError::Key(error.to_string()))?
            }
        };
        config.enable_sni = settings.server_name;
        config.alpn_protocols.clone_from(&settings.protocols);
        config.resumption = match settings.session_reuse {
            true => Resumption::in_memory_sessions(SESSIONS_MAX),
            false => Resumption::disabled(),
        };
        Ok(TlsConnector {
            config: Arc::new(config),
            verify: settings.verify,
        })
    }
}

impl fmt::Debug for TlsConnector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TlsConnector")
    }
}

fn versions(versions: TlsVersions) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let mut list = Vec::new();
    if versions.tls13 {
        list.push(&rustls::version::TLS13);
    }
    if versions.tls12 {
        list.push(&rustls::version::TLS12);
    }
    match list.is_empty() {
        true => Err(TlsError::NoVersion),
        false => Ok(list),
    }
}

fn verifier(
    settings: &TlsSettings,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let trusted = certificates(&settings.trusted).map_err(TlsError::Trusted)?;
    let mut roots = RootCertStore::empty();
    for certificate in &trusted {
        let added = roots.add(certificate.clone());
        added.map_err(|error| TlsError::Trusted(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(TlsError::NoTrusted);
    }
    let mut builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    if !settings.revoked.is_empty() {
        let lists = CertificateRevocationListDer::pem_slice_iter(&settings.revoked);
        let lists: Result<Vec<_>, _> = lists.collect();
        let lists = lists.map_err(|error| TlsError::Revoked(error.to_string()))?;
        builder = builder.with_crls(lists);
    }
    let built = builder.build();
    let roots = built.map_err(|error| TlsError::Revoked(error.to_string()))?;
    match settings.revoked.is_empty() {
        true => Ok(Arc::new(KnownOrSigned::new(roots, trusted))),
        // Nobody could say of itself that it was revoked.
        false => Ok(roots),
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let list = list.map_err(|error| error.to_string())?;
    match list.is_empty() {
        true => Err("no certificate in it".to_owned()),
        false => Ok(list),
    }
}
