//! The faults of a peer's certificate, with OpenSSL's numbers and messages.

use std::fmt;

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The issuer of a certificate of the chain is unknown.
    NoIssuer,
    /// The CA has no usable revocation list.
    NoList,
    /// The signature of a certificate is not its issuer's.
    Signature,
    /// The signature of a list is not the CA's.
    ListSignature,
    NotYetValid,
    Expired,
    ListNotYetValid,
    ListExpired,
    /// The peer's certificate is self-signed, and is not trusted.
    SelfSigned,
    /// The chain ends in a self-signed certificate that is not trusted.
    SelfSignedInChain,
    /// The issuer of the peer's certificate is unknown.
    NoIssuerOfFirst,
    /// As [`Failure::NoIssuerOfFirst`], if the peer has sent no other certificate.
    FirstNotVerified,
    TooLong,
    Revoked,
    /// The issuer of a certificate is not a CA.
    NotCa,
    /// There are more CAs below a CA than it allows.
    PathLength,
    Purpose,
    /// A critical extension is unknown.
    UnknownExtension,
    /// A CA has name constraints, which are not supported.
    NameConstraints,
    /// The peer's certificate is malformed.
    Malformed,
}

impl Failure {
    /// OpenSSL's number.
    pub fn number(self) -> u8 {
        match self {
            Failure::NoIssuer => 2,
            Failure::NoList => 3,
            Failure::Signature => 7,
            Failure::ListSignature => 8,
            Failure::NotYetValid => 9,
            Failure::Expired => 10,
            Failure::ListNotYetValid => 11,
            Failure::ListExpired => 12,
            Failure::SelfSigned => 18,
            Failure::SelfSignedInChain => 19,
            Failure::NoIssuerOfFirst => 20,
            Failure::FirstNotVerified => 21,
            Failure::TooLong => 22,
            Failure::Revoked => 23,
            Failure::NotCa => 79,
            Failure::PathLength => 25,
            Failure::Purpose => 26,
            Failure::UnknownExtension => 34,
            Failure::NameConstraints => 51,
            Failure::Malformed => 1,
        }
    }

    /// Whether `ssl_verify_client optional_no_ca` ignores it.
    pub fn is_of_trust(self) -> bool {
        matches!(self.number(), 2 | 18..=21)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Failure::NoIssuer => "unable to get issuer certificate",
            Failure::NoList => "unable to get certificate CRL",
            Failure::Signature => "certificate signature failure",
            Failure::ListSignature => "CRL signature failure",
            Failure::NotYetValid => "certificate is not yet valid",
            Failure::Expired => "certificate has expired",
            Failure::ListNotYetValid => "CRL is not yet valid",
            Failure::ListExpired => "CRL has expired",
            Failure::SelfSigned => "self-signed certificate",
            Failure::SelfSignedInChain => "self-signed certificate in certificate chain",
            Failure::NoIssuerOfFirst => "unable to get local issuer certificate",
            Failure::FirstNotVerified => "unable to verify the first certificate",
            Failure::TooLong => "certificate chain too long",
            Failure::Revoked => "certificate revoked",
            Failure::NotCa => "invalid CA certificate",
            Failure::PathLength => "path length constraint exceeded",
            Failure::Purpose => "unsuitable certificate purpose",
            Failure::UnknownExtension => "unhandled critical extension",
            Failure::NameConstraints => "unsupported name constraint type",
            Failure::Malformed => "unspecified certificate verification error",
        })
    }
}

/// The faults, in OpenSSL's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    /// The fault that ends a handshake unless faults are ignored.
    pub first: Failure,
    /// The fault that is reported if the handshake continues.
    pub last: Failure,
}
