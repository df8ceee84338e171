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
mod texts;

use std::fmt;

use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use turnpike_wire::certificate::Purpose;

pub use chain::is_signed;
use error::Fault;
pub use error::{ChainError, TrustError};
pub use failure::{Failure, Failures};
pub use handshake::{verify_tls12, verify_tls13};
pub use texts::chain;

/// The trusted certificates, and the revocation lists.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trust {
    anchors: Vec<CertificateDer<'static>>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
    /// Whether a certificate must be in no list, and its CA must have one.
    checks_revocation: bool,
    depth: usize,
}

impl Trust {
    /// Trusts the certificates of a PEM text. At most `depth` CA certificates may be between a
    /// peer's certificate and a trusted self-signed one.
    ///
    /// # Errors
    /// The text has nothing to trust, or something malformed.
    pub fn new(pem: &[u8], depth: usize) -> Result<Trust, TrustError> {
        let mut trust = Trust::none(depth);
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

    /// Trusts the certificates of another PEM text too. Its revocation lists are kept for
    /// [`Trust::revoke`].
    ///
    /// # Errors
    /// As for [`Trust::new`].
    pub fn add(&mut self, pem: &[u8]) -> Result<(), TrustError> {
        let read = texts::trusted(pem)?;
        for certificate in read.certificates {
            if !self.anchors.contains(&certificate) {
                self.anchors.push(certificate);
            }
        }
        self.revoked.extend(read.lists);
        Ok(())
    }

    /// Refuses the certificates in the lists of a PEM text, and those of CAs without a list. The
    /// certificates of the text are trusted, as by OpenSSL.
    ///
    /// # Errors
    /// The text has no list, or something malformed.
    pub fn revoke(&mut self, pem: &[u8]) -> Result<(), TrustError> {
        let known = self.revoked.len();
        self.add(pem)?;
        self.checks_revocation = true;
        if self.revoked.len() > known {
            Ok(())
        } else {
            Err(TrustError(Fault::NoList))
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

impl fmt::Debug for Trust {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Trust")
    }
}
