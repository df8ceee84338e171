//! The reasons why a PEM text gives nothing to trust or to refuse.

use std::error::Error;
use std::fmt;

use rustls::pki_types::pem;

/// Why certificates or revocation lists could not be read from a text. The messages say "it": the
/// caller names the file before them.
#[derive(Debug)]
pub enum TrustError {
    /// The text is not PEM.
    Pem(pem::Error),
    /// There is no certificate in the text.
    NoCertificate,
    /// A certificate is not one of RFC 5280.
    MalformedCertificate,
    /// There is no revocation list in the text.
    NoList,
    /// A revocation list is not one of RFC 5280.
    MalformedList,
}

impl fmt::Display for TrustError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            TrustError::Pem(error) => return error.fmt(out),
            TrustError::NoCertificate => "no certificate in it",
            TrustError::MalformedCertificate => "a certificate in it is malformed",
            TrustError::NoList => "no list of revoked certificates in it",
            TrustError::MalformedList => "a list in it is malformed",
        })
    }
}

impl Error for TrustError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TrustError::Pem(error) => Some(error),
            _ => None,
        }
    }
}
