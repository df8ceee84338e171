//! TLS to peers: the configuration, once for all connections, and the errors. `lane::transport`
//! holds the sessions.

mod session;
#[cfg(test)]
mod tests;
mod verify;

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, SupportedProtocolVersion};
use turnpike_lane::trust::Trust;

pub(crate) use session::Refusal;
use verify::Verifier;

/// The sessions that a connector keeps; two tickets each for about a hundred names.
const SESSIONS_MAX: usize = 256;

/// The TLS settings of a location for its peers.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// Whether to verify the peer's certificate and its name.
    pub verify: bool,
    /// PEM: trusted certificates; needed for verification.
    pub trusted: Vec<u8>,
    /// The most CA certificates between a peer's and a trusted one.
    pub verify_depth: usize,
    /// PEM: revocation lists; if empty, revocation is not checked.
    pub revoked: Vec<u8>,
    /// Our own certificate with its chain, and its key.
    pub identity: Option<Arc<CertifiedKey>>,
    /// Whether to send the name (SNI, RFC 6066).
    pub server_name: bool,
    /// Whether to resume sessions.
    pub session_reuse: bool,
    /// Protocol versions.
    pub versions: TlsVersions,
    /// Protocols to offer (ALPN, RFC 7301), the best first; if empty, none is offered.
    pub protocols: Vec<Vec<u8>>,
}

/// The allowed versions of TLS; older ones are not supported.
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
    /// Trusted certificates cannot be read.
    Trusted(String),
    /// The revocation lists cannot be read.
    Revoked(String),
    /// No version is allowed.
    NoVersion,
    /// The library refused the settings.
    Library(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Trusted(why) => write!(out, "cannot read trusted certificates: {why}"),
            TlsError::Revoked(why) => write!(out, "cannot read revoked certificates: {why}"),
            TlsError::NoVersion => out.write_str("no version of TLS is left"),
            TlsError::Library(why) => write!(out, "cannot set TLS up: {why}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// The source of TLS sessions. It is made when a configuration is read; all lanes share it, with
/// the sessions for resumption.
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    verify: bool,
    session_reuse: bool,
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
        let verifier = Verifier::new(trust(settings)?, provider.signature_verification_algorithms);
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &settings.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let key = SingleCertAndKey::from(Arc::clone(identity));
                builder.with_client_cert_resolver(Arc::new(key))
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
            session_reuse: settings.session_reuse,
        })
    }

    /// The same connector with another certificate of ours. Sessions are not shared with it: a
    /// resumed one would stand for the certificate that it was made with.
    #[must_use]
    pub fn with_identity(&self, identity: Arc<CertifiedKey>) -> TlsConnector {
        let mut config = ClientConfig::clone(&self.config);
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(identity));
        if self.session_reuse {
            config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        }
        TlsConnector {
            config: Arc::new(config),
            verify: self.verify,
            session_reuse: self.session_reuse,
        }
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

/// The trusted certificates; `None` if peers are not verified.
fn trust(settings: &TlsSettings) -> Result<Option<Trust>, TlsError> {
    if !settings.verify {
        return Ok(None);
    }
    let trust = Trust::new(&settings.trusted, settings.verify_depth);
    let mut trust = trust.map_err(TlsError::Trusted)?;
    if !settings.revoked.is_empty() {
        trust.revoke(&settings.revoked).map_err(TlsError::Revoked)?;
    }
    Ok(Some(trust))
}
