//! TLS to peers: the configuration, once for all connections, and the errors. `lane::transport`
//! holds the sessions.

mod session;
#[cfg(test)]
mod tests;
mod verify;

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, KeyLog, SupportedCipherSuite, SupportedProtocolVersion};
use turnpike_lane::transport::alerting_suites;
use turnpike_lane::trust::{Trust, TrustError};

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
    /// PEM: revocation lists; `None`: revocation is not checked.
    pub revoked: Option<Vec<u8>>,
    /// Our own certificate with its chain, and its key.
    pub identity: Option<Arc<CertifiedKey>>,
    /// Whether to send the name (SNI, RFC 6066).
    pub server_name: bool,
    /// Whether to resume sessions.
    pub session_reuse: bool,
    /// Protocol versions; `None`: all that are supported.
    pub versions: Option<Vec<&'static SupportedProtocolVersion>>,
    /// Cipher suites, the best first; `None`: those of the library.
    pub suites: Option<Vec<SupportedCipherSuite>>,
    /// Groups for the key exchange, the best first; `None`: those of the library.
    pub groups: Option<Vec<&'static dyn SupportedKxGroup>>,
    /// Where the secrets of sessions are written; `None`: nowhere.
    pub key_log: Option<Arc<dyn KeyLog>>,
    /// Protocols to offer (ALPN, RFC 7301), the best first; if empty, none is offered.
    pub protocols: Vec<Vec<u8>>,
}

/// Why TLS cannot be set up.
#[derive(Debug)]
pub enum TlsError {
    /// Trusted certificates cannot be read.
    Trusted(TrustError),
    /// The revocation lists cannot be read.
    Revoked(TrustError),
    /// No version is allowed.
    NoVersion,
    /// The library refused the settings.
    Library(rustls::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Trusted(why) => write!(out, "cannot read trusted certificates {why}"),
            TlsError::Revoked(why) => write!(out, "cannot read revoked certificates {why}"),
            TlsError::NoVersion => out.write_str("no version of TLS is left"),
            TlsError::Library(why) => write!(out, "cannot set TLS up: {why}"),
        }
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TlsError::Trusted(why) | TlsError::Revoked(why) => Some(why),
            TlsError::Library(why) => Some(why),
            TlsError::NoVersion => None,
        }
    }
}

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
        let provider = Arc::new(provider(settings));
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions(settings)?)
            .map_err(TlsError::Library)?;
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
        if let Some(key_log) = &settings.key_log {
            config.key_log = Arc::clone(key_log);
        }
        config.resumption = if settings.session_reuse {
            Resumption::in_memory_sessions(SESSIONS_MAX)
        } else {
            Resumption::disabled()
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

fn provider(settings: &TlsSettings) -> CryptoProvider {
    let mut provider = default_provider();
    if let Some(suites) = &settings.suites {
        provider.cipher_suites.clone_from(suites);
    }
    provider.cipher_suites = alerting_suites(&provider.cipher_suites);
    if let Some(groups) = &settings.groups {
        provider.kx_groups.clone_from(groups);
    }
    provider
}

fn versions(settings: &TlsSettings) -> Result<&[&'static SupportedProtocolVersion], TlsError> {
    match &settings.versions {
        None => Ok(rustls::ALL_VERSIONS),
        Some(versions) if versions.is_empty() => Err(TlsError::NoVersion),
        Some(versions) => Ok(versions),
    }
}

/// The trusted certificates; `None` if peers are not verified.
fn trust(settings: &TlsSettings) -> Result<Option<Trust>, TlsError> {
    if !settings.verify {
        return Ok(None);
    }
    let trust = Trust::new(&settings.trusted, settings.verify_depth);
    let mut trust = trust.map_err(TlsError::Trusted)?;
    if let Some(revoked) = &settings.revoked {
        trust.revoke(revoked).map_err(TlsError::Revoked)?;
    }
    Ok(Some(trust))
}
