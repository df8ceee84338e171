//! The signature in a handshake that proves that the peer has its certificate's key.
//!
//! Our own reader takes the key from the certificate: the library's reader refuses version 1, which
//! OpenSSL writes if no extensions are requested.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::{CertificateError, DigitallySignedStruct, Error};
use turnpike_wire::certificate::{Certificate, PublicKey};

/// Verifies the signature of a TLS 1.2 handshake (RFC 5246 section 7.4.8): its scheme does not
/// include the curve.
///
/// # Errors
/// The signature is not that of the certificate's key.
pub fn verify_tls12(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = key(certificate)?;
    let schemes = algorithms.mapping.iter();
    let mut known = schemes.filter(|(scheme, _)| *scheme == signed.scheme);
    let algorithms = known.next().map_or(&[][..], |(_, algorithms)| *algorithms);
    let of_key = algorithms
        .iter()
        .find(|algorithm| *algorithm.public_key_alg_id() == *key.algorithm);
    let bad = || Error::InvalidCertificate(CertificateError::BadSignature);
    let algorithm = of_key.ok_or_else(bad)?;
    let verified = algorithm.verify_signature(key.bits, message, signed.signature());
    verified.map_err(|_| bad())?;
    Ok(HandshakeSignatureValid::assertion())
}

/// Verifies the signature of a TLS 1.3 handshake (RFC 8446 section 4.4.3).
///
/// # Errors
/// The signature is not that of the certificate's key.
pub fn verify_tls13(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let info = SubjectPublicKeyInfoDer::from(key(certificate)?.info);
    verify_tls13_signature_with_raw_key(message, &info, signed, algorithms)
}

fn key<'a>(certificate: &'a CertificateDer<'_>) -> Result<PublicKey<'a>, Error> {
    let read = Certificate::read(certificate);
    let read = read.ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
    Ok(read.key)
}
