//! The verification of peers' certificates: chains up to a trusted certificate, revocation lists
//! (RFC 5280 section 6), and the signatures that prove that a peer has its key.
//!
//! The rules and the error numbers are OpenSSL's, since configurations, logs and upstream programs
//! rely on them. So certificates of version 1 are accepted, and so is a trusted certificate that is
//! not a CA's. Unsupported content is refused: name constraints of a CA, and critical extensions.

mod chain;
mod error;
mod failure;
mod handshake;
#[cfg(test)]
mod tests;

use std::fmt;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use turnpike_wire::certificate::{self, Certificate, Purpose, RevocationList};

pub use chain::is_signed;
pub use error::TrustError;
pub use failure::{Failure, Failures};
pub use handshake::{verify_tls12, verify_tls13};

/// The trusted certificates, and the revocation lists.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trust {
    anchors: Vec<CertificateDer<'static>>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
    depth: usize,
}

impl Trust {
    /// Trusts the certificates of a PEM text. At most `depth` CA certificates may be between a
    /// peer's certificate and a trusted self-signed one.
    ///
    /// # Errors
    /// The text has no certificate, or a malformed one.
    pub fn new(pem: &[u8], depth: usize) -> Result<Trust, TrustError> {
        let mut trust = Trust {
            depth,
            ..Trust::default()
        };
        trust.add(pem)?;
        Ok(trust)
    }

    /// Trusts no certificate.
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
    pub fn add(&mut self, pem: &[u8]) -> Result<(), TrustError> {
        let read = all_certificates(pem)?;
        for certificate in read {
            if Certificate::read(&certificate).is_none() {
                return Err(TrustError::MalformedCertificate);
            }
            if !self.anchors.contains(&certificate) {
                self.anchors.push(certificate);
            }
        }
        Ok(())
    }

    /// Refuses the certificates in the lists of a PEM text, and those of CAs without a list.
    ///
    /// # Errors
    /// The text has no list, or a malformed one.
    pub fn revoke(&mut self, pem: &[u8]) -> Result<(), TrustError> {
        let known = self.revoked.len();
        for list in CertificateRevocationListDer::pem_slice_iter(pem) {
            let list = list.map_err(TrustError::Pem)?;
            if RevocationList::read(&list).is_none() {
                return Err(TrustError::MalformedList);
            }
            self.revoked.push(list);
        }
        match self.revoked.len() > known {
            true => Ok(()),
            false => Err(TrustError::NoList),
        }
    }

    /// The trusted certificates.
    pub fn anchors(&self) -> &[CertificateDer<'static>] {
        &self.anchors
    }

    /// Verifies a peer's certificate, followed by its other certificates, for this purpose at this
    /// time (Unix seconds).
    ///
    /// # Errors
    /// The faults.
    pub fn verify(
        &self,
        shown: &[CertificateDer<'_>],
        purpose: Purpose,
        now_s: u64,
    ) -> Result<(), Failures> {
        self.chain(shown, purpose, now_s).map(drop)
    }

    /// As [`Trust::verify`], with the chain as the result: the peer's certificate, that of its
    /// issuer, and so on, up to a trusted one, in DER.
    ///
    /// # Errors
    /// The faults.
    pub fn chain<'a>(
        &'a self,
        shown: &'a [CertificateDer<'a>],
        purpose: Purpose,
        now_s: u64,
    ) -> Result<Vec<&'a [u8]>, Failures> {
        chain::verify(self, shown, purpose, now_s)
    }
}

/// The certificates of a PEM text; there is at least one.
///
/// # Errors
/// The text has no certificate, or is not PEM.
pub fn all_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let read: Vec<_> = certificates(pem).collect::<Result<_, _>>()?;
    match read.is_empty() {
        true => Err(TrustError::NoCertificate),
        false => Ok(read),
    }
}

/// The certificates of a PEM text. If OpenSSL has added trust settings to one, only the certificate
/// is used.
pub fn certificates(
    pem: &[u8],
) -> impl Iterator<Item = Result<CertificateDer<'static>, TrustError>> {
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
        let certificate = certificate.map_err(TrustError::Pem)?;
        let own = certificate::without_rest(&certificate);
        let own = own.ok_or(TrustError::MalformedCertificate)?.to_vec();
        Ok(CertificateDer::from(own))
    })
}

impl fmt::Debug for Trust {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Trust")
    }
}
