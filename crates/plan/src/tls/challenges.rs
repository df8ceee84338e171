//! Certificates that answer an authority's challenge in the handshake itself (tls-alpn-01, RFC
//! 8737). They belong to the process, not to a plan: an order goes on during a reload.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use turnpike_lane::transport::Greeting;

use super::{Offer, ServerIdentity};

/// The protocol of such a handshake (RFC 8737 section 6.2). Nothing is said in it.
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// The answers by the names that clients ask for. An order has one for each of its identifiers.
static SHOWN: LazyLock<RwLock<Answers>> = LazyLock::new(RwLock::default);

type Answers = HashMap<Box<[u8]>, Arc<ServerIdentity>>;

/// An answer to a challenge, shown while this lives.
#[derive(Debug)]
pub struct ShownChallenge(Box<[u8]>);

impl ShownChallenge {
    /// Shows a certificate to whoever asks for this name, in lower case, by that protocol.
    ///
    /// # Errors
    /// The library's.
    pub fn new(name: &[u8], certificate: CertifiedKey) -> Result<ShownChallenge, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certificate)));
        config.alpn_protocols = vec![ACME_TLS.to_vec()];
        config.send_tls13_tickets = 0;
        let identity = Arc::new(ServerIdentity {
            config: Arc::new(config),
            speaks_tls13: true,
            by_name: None,
            clients: None,
            statuses: None,
            quic: None,
        });
        let mut shown = SHOWN.write().unwrap_or_else(PoisonError::into_inner);
        shown.insert(name.into(), identity);
        Ok(ShownChallenge(name.into()))
    }
}

impl Drop for ShownChallenge {
    fn drop(&mut self) {
        let mut shown = SHOWN.write().unwrap_or_else(PoisonError::into_inner);
        shown.remove(&self.0);
    }
}

/// The answer to a ClientHello that offers that protocol alone; `None`: it is any other one.
pub fn challenged(greeting: &Greeting, offer: &Offer) -> Option<Arc<ServerIdentity>> {
    let hello = greeting.hello();
    let mut protocols = hello.alpn()?;
    if protocols.next() != Some(ACME_TLS) || protocols.next().is_some() {
        return None;
    }
    let shown = SHOWN.read().unwrap_or_else(PoisonError::into_inner);
    shown.get(offer.host()).cloned()
}
