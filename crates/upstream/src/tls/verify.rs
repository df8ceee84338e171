//! The verification of a peer's certificate. `lane::trust` verifies the chain; the name is checked
//! here.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use turnpike_lane::trust::{Failure, Trust, verify_tls12, verify_tls13};
use turnpike_wire::certificate::{Certificate, Purpose};

/// Why a peer's certificate is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Untrusted(Failure);

impl fmt::Display for Untrusted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.0.number(), self.0)
    }
}

impl std::error::Error for Untrusted {}

impl From<Untrusted> for Error {
    fn from(error: Untrusted) -> Error {
        CertificateError::Other(OtherError(Arc::new(error))).into()
    }
}

/// The verifier of peers; each must have the key of its certificate.
#[derive(Debug)]
pub(super) struct Verifier {
    /// `None`: peers are not authenticated, and any certificate is accepted.
    trust: Option<Trust>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn new(trust: Option<Trust>, algorithms: WebPkiSupportedAlgorithms) -> Verifier {
        Verifier { trust, algorithms }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trust) = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        let shown = std::iter::once(certificate).chain(others);
        let shown: Vec<CertificateDer<'_>> = shown.cloned().collect();
        let verified = trust.verify(&shown, Purpose::Server, now.as_secs());
        verified.map_err(|failures| Untrusted(failures.first))?;
        if Certificate::read(certificate).is_some_and(|read| is_of(&read, name)) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::NotValidForName.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Whether a certificate is for that name: by its alternative names, or by its common name if it
/// has no alternative name of a host (RFC 6125 section 6.4.4).
pub(super) fn is_of(certificate: &Certificate<'_>, name: &ServerName<'_>) -> bool {
    let extensions = &certificate.extensions;
    match name {
        ServerName::DnsName(name) => {
            let name = name.as_ref().as_bytes();
            let mut names = extensions.dns_names().peekable();
            match names.peek() {
                Some(_) => names.any(|pattern| matches_host(pattern, name)),
                None => {
                    let common = certificate.subject.common_name();
                    common.is_some_and(|pattern| matches_host(pattern, name))
                }
            }
        }
        ServerName::IpAddress(address) => match IpAddr::from(*address) {
            IpAddr::V4(address) => extensions.addresses().any(|own| own == address.octets()),
            IpAddr::V6(address) => extensions.addresses().any(|own| own == address.octets()),
        },
        _ => false,
    }
}

/// Whether a name of a certificate matches a host: `*` matches a whole first label, if at least two
/// follow (RFC 6125 section 6.4.3).
fn matches_host(pattern: &[u8], host: &[u8]) -> bool {
    let host = host.strip_suffix(b".").unwrap_or(host);
    let Some(tail) = pattern.strip_prefix(b"*.") else {
        return pattern.eq_ignore_ascii_case(host);
    };
    let dot = host.iter().position(|byte| *byte == b'.');
    let rest = dot.map(|at| (&host[..at], &host[at + 1..]));
    tail.contains(&b'.')
        && rest.is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(tail))
}

#[cfg(test)]
mod tests {
    //! Tests of host names.

    use super::matches_host;

    #[test]
    fn a_star_matches_one_whole_label() {
        let cases = [
            ("a.test", "a.test", true),
            ("A.Test", "a.tEST", true),
            ("a.test", "a.test.", true),
            ("a.test", "b.test", false),
            ("*.a.test", "x.a.test", true),
            ("*.a.test", "x.y.a.test", false),
            ("*.a.test", "a.test", false),
            ("*.a.test", ".a.test", false),
            ("*.test", "a.test", false),
            ("x*.a.test", "xy.a.test", false),
            ("*", "test", false),
        ];
        for (pattern, host, expected) in cases {
            let found = matches_host(pattern.as_bytes(), host.as_bytes());
            assert_eq!(found, expected, "{pattern} {host}");
        }
    }
}
