//! What is wrong with a peer's certificate, by OpenSSL's numbers and words.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No trusted certificate is known of the CA that has issued one of the chain.
    NoIssuer,
    /// The CA has no list of revoked certificates, or one that cannot be used.
    NoList,
    /// The signature of a certificate is not its issuer's.
    Signature,
    /// The signature of a list is not the CA's.
    ListSignature,
    NotYetValid,
    Expired,
    ListNotYetValid,
    ListExpired,
    /// The peer's certificate vouches for itself, and is not trusted.
    SelfSigned,
    /// The chain ends in such a one.
    SelfSignedInChain,
    /// The CA of the peer's certificate is not known.
    NoIssuerOfFirst,
    /// As [`Failure::NoIssuerOfFirst`], where the peer has sent nothing else.
    FirstNotVerified,
    TooLong,
    Revoked,
    /// What has issued a certificate is no CA's.
    NotCa,
    /// More CAs stand below one than it allows.
    PathLength,
    Purpose,
    /// An extension that must be understood is not.
    UnknownExtension,
    /// A CA is limited to names in a way that is not understood.
    NameConstraints,
    /// The peer's certificate cannot be read.
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

    /// Whether `ssl_verify_client optional_no_ca` passes it over.
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

/// All that is wrong, in the order in which OpenSSL finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    /// What ends a handshake that does not go on in spite of it.
    pub first: Failure,
    /// What is known in the end where it does.
    pub last: Failure,
}
