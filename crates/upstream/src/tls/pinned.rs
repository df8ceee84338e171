//! A self-signed certificate that is itself among the trusted ones: a peer that shows exactly this
//! one, and has its key, is the peer that was meant. OpenSSL takes it so, and many a server inside
//! of a network has no other.
//!
//! The usual way does not know this: it wants an end entity's certificate, signed by a root.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use turnpike_wire::certificate::{self, SelfSigned};

/// Why a peer is refused that vouches for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnknownSelfSigned;

impl fmt::Display for UnknownSelfSigned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("self-signed certificate")
    }
}

impl std::error::Error for UnknownSelfSigned {}

impl From<UnknownSelfSigned> for Error {
    fn from(error: UnknownSelfSigned) -> Error {
        CertificateError::Other(OtherError(Arc::new(error))).into()
    }
}

/// Verifies by roots, and knows some certificates by themselves.
#[derive(Debug)]
pub(super) struct KnownOrSigned {
    roots: Arc<WebPkiServerVerifier>,
    known: Vec<(CertificateDer<'static>, SelfSigned)>,
}

impl KnownOrSigned {
    /// Of these trusted certificates, those that are self-signed are known by themselves.
    pub(super) fn new(
        roots: Arc<WebPkiServerVerifier>,
        trusted: Vec<CertificateDer<'static>>,
    ) -> KnownOrSigned {
        let known = trusted.into_iter().filter_map(|certificate| {
            let own = certificate::self_signed(&certificate)?;
            Some((certificate, own))
        });
        KnownOrSigned {
            roots,
            known: known.collect(),
        }
    }

    fn known(&self, shown: &CertificateDer<'_>) -> Option<&SelfSigned> {
        let found = self.known.iter().find(|(known, _)| known == shown);
        found.map(|(_, known)| known)
    }
}

impl ServerCertVerifier for KnownOrSigned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(known) = self.known(certificate) else {
            let roots = &self.roots;
            let verified = roots.verify_server_cert(certificate, others, name, ocsp, now);
            return match certificate::self_signed(certificate) {
                Some(_) if verified.is_err() => Err(UnknownSelfSigned.into()),
                _ => verified,
            };
        };
        let time = UnixTime::since_unix_epoch;
        if now.as_secs() < known.not_before_s {
            return Err(CertificateError::NotValidYetContext {
                time: now,
                not_before: time(Duration::from_secs(known.not_before_s)),
            }
            .into());
        }
        if now.as_secs() > known.not_after_s {
            return Err(CertificateError::ExpiredContext {
                time: now,
                not_after: time(Duration::from_secs(known.not_after_s)),
            }
            .into());
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.roots
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.roots
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.roots.supported_verify_schemes()
    }
}
