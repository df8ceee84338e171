//! Certificates with their keys: the choice among those of a server, and those whose names have
//! variables in them, which are read when a connection needs them.

use std::pin::Pin;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SignatureAlgorithm};

use super::cipher_name;
use crate::template::Template;
use crate::variables::Subject;

/// The certificates of a server, in the order of the configuration.
#[derive(Debug)]
pub struct Certificates(pub CertifiedKeys);

/// The names of a certificate and of its key: of files, or `data:` and PEM.
pub type CertificateNames = [Vec<u8>; 2];

/// Certificates with their keys, the best first.
pub type CertifiedKeys = Vec<Arc<CertifiedKey>>;

/// The result of reading certificates: one for each pair of names, or the message for the log.
pub type Loaded = Result<CertifiedKeys, String>;

/// How far reading is.
pub enum Loading {
    /// Nothing had to be read, or it has failed already.
    Done(Loaded),
    /// Another thread reads.
    Later(Pin<Box<dyn Future<Output = Loaded>>>),
}

/// Where certificates are read that are named when a connection is there.
pub trait CertificateSource: Send + Sync {
    /// Reads them, off the lane where files are to be read.
    fn load(&self, names: Vec<CertificateNames>) -> Loading;
}

/// Certificates whose names have variables in them.
pub struct CertificatesByName {
    /// The names of each certificate and of its key.
    pub templates: Vec<[Template; 2]>,
    pub source: Arc<dyn CertificateSource>,
}

impl CertificatesByName {
    /// The names that variables give now.
    pub fn names<S: Subject>(&self, subject: &S) -> Vec<CertificateNames> {
        let names = self.templates.iter();
        let names = names.map(|pair| [pair[0].value(subject), pair[1].value(subject)]);
        names.collect()
    }

    /// Reads those that variables name now.
    pub fn load<S: Subject>(&self, subject: &S) -> Loading {
        self.source.load(self.names(subject))
    }
}

impl Loading {
    /// Waits for it.
    ///
    /// # Errors
    /// What the log says.
    pub async fn done(self) -> Loaded {
        match self {
            Loading::Done(loaded) => loaded,
            Loading::Later(loading) => loading.await,
        }
    }
}

impl ResolvesServerCert for Certificates {
    /// The first that the client can check.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        let usable = |identity: &&Arc<CertifiedKey>| {
            identity.key.choose_scheme(schemes).is_some()
                && offers(hello.cipher_suites(), identity.key.algorithm())
        };
        let first = self.0.iter().find(usable).or_else(|| self.0.first());
        first.cloned()
    }
}

/// Whether a client offers a suite that can be used with such a key: those of TLS 1.3 can with
/// every key, others name its kind.
fn offers(suites: &[CipherSuite], algorithm: SignatureAlgorithm) -> bool {
    let kind = match algorithm {
        SignatureAlgorithm::RSA => "ECDHE-RSA-",
        _ => "ECDHE-ECDSA-",
    };
    suites.iter().any(|suite| {
        let name = cipher_name((*suite).into()).unwrap_or_default();
        name.starts_with("TLS_AES_") || name.starts_with("TLS_CHACHA20_") || name.starts_with(kind)
    })
}
