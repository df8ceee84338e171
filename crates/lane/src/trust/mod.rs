//! Which certificates of peers are good: chains of certificates up to one that is trusted, and
//! lists of revoked ones (RFC 5280 section 6), and the signatures that prove that a peer has its
//! key.
//!
//! The rules and the numbers of what is wrong are OpenSSL's, since configurations, logs and
//! programs behind us rely on them. So certificates of version 1 are taken, and a certificate that
//! is trusted by itself. What is not understood is refused: names that a CA is limited to, and
//! critical extensions.

mod chain;
mod failure;
mod handshake;
#[cfg(test)]
mod tests;

use std::fmt;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use turnpike_wire::certificate::{self, Certificate, Purpose, RevocationList};

pub use failure::{Failure, Failures};
pub use handshake::{verify_tls12, verify_tls13};

/// Certificates that are trusted, and those that are revoked.
#[derive(Clone, Default)]
pub struct Trust {
    anchors: Vec<CertificateDer<'static>>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
    depth: usize,
}

impl Trust {
    /// Trust in the certificates of a PEM text, where at most `depth` certificates of CAs may stand
    /// between a peer's and a trusted one that has signed itself.
    ///
    /// # Errors
    /// The text has no certificate, or one that cannot be read.
    pub fn new(pem: &[u8], depth: usize) -> Result<Trust, String> {
        let mut trust = Trust {
            depth,
            ..Trust::default()
        };
        trust.add(pem)?;
        Ok(trust)
    }

    /// Trust in nobody.
    pub fn none(depth: usize) -> Trust {
        Trust {
            depth,
            ..Trust::default()
        }
    }

    /// Trusts the certificates of another PEM text too.
    ///
    /// # Errors
    /// As for [`Trust::new`].
    pub fn add(&mut self, pem: &[u8]) -> Result<(), String> {
        let read: Result<Vec<_>, _> = certificates(pem).collect();
        let read = read?;
        if read.is_empty() {
            return Err("no certificate in it".to_owned());
        }
        for certificate in read {
            if Certificate::read(&certificate).is_none() {
                return Err("a certificate in it is malformed".to_owned());
            }
            if !self.anchors.contains(&certificate) {
                self.anchors.push(certificate);
            }
        }
        Ok(())
    }

    /// Refuses the certificates that the lists of a PEM text name, and those of CAs without a list.
    ///
    /// # Errors
    /// The text has no list, or one that cannot be read.
    pub fn revoke(&mut self, pem: &[u8]) -> Result<(), String> {
        let known = self.revoked.len();
        for list in CertificateRevocationListDer::pem_slice_iter(pem) {
            let list = list.map_err(|error| error.to_string())?;
            if RevocationList::read(&list).is_none() {
                return Err("a list in it is malformed".to_owned());
            }
            self.revoked.push(list);
        }
        match self.revoked.len() > known {
            true => Ok(()),
            false => Err("no list of revoked certificates in it".to_owned()),
        }
    }

    /// What is trusted.
    pub fn anchors(&self) -> &[CertificateDer<'static>] {
        &self.anchors
    }

    /// Whether a peer's certificate, followed by those that it has sent too, is good for that
    /// purpose at that time (unix seconds).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn verify(
        &self,
        shown: &[CertificateDer<'_>],
        purpose: Purpose,
        now_s: u64,
    ) -> Result<(), Failures> {
        chain::verify(self, shown, purpose, now_s)
    }
}

/// The certificates of a PEM text. Of those to which OpenSSL has added trust settings, the
/// certificate alone is taken.
pub fn certificates(pem: &[u8]) -> impl Iterator<Item = Result<CertificateDer<'static>, String>> {
    let text = String::from_utf8_lossy(pem);
    let text = text.replace(
        "-----BEGIN TRUSTED CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----",
    );
    let text = text.replace(
        "-----END TRUSTED CERTIFICATE-----",
        "-----END CERTIFICATE-----",
    );
    let read: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    read.into_iter().map(|certificate| {
        let certificate = certificate.map_err(|error| error.to_string())?;
        let own = certificate::without_rest(&certificate).map(<[u8]>::to_vec);
        Ok(own.map_or(certificate, CertificateDer::from))
    })
}

impl fmt::Debug for Trust {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Trust")
    }
}
