//! A reader of X.509 certificates (RFC 5280), versions 1 to 3, and of certificate revocation lists.
//!
//! The reader reads what the server needs to check certificates and to show their content. It
//! verifies no signature. It refuses input that does not follow the RFC.

mod extensions;
mod name;
mod revocation;
mod time;

use crate::der::{BIT_STRING, INTEGER, SEQUENCE, octets_of_bits, skip, take, take_whole};
pub(crate) use time::time;

pub use extensions::{Extensions, Purpose};
pub use name::Name;
pub use revocation::RevocationList;

/// `[0]`, constructed: the version.
const VERSION: u8 = 0xa0;
/// `[1]` and `[2]`: unique identifiers, which are not used in practice.
const ISSUER_ID: u8 = 0x81;
const SUBJECT_ID: u8 = 0x82;
/// `[3]`, constructed: the extensions.
const EXTENSIONS: u8 = 0xa3;

/// A certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate<'a> {
    /// The signed bytes.
    pub signed: &'a [u8],
    /// The issuer's signature.
    pub signature: Signature<'a>,
    /// The version, 1 to 3.
    pub version: u64,
    /// The content octets of the serial number.
    pub serial: &'a [u8],
    pub issuer: Name<'a>,
    /// The start of the validity, in Unix seconds.
    pub not_before_s: u64,
    /// The end of the validity, in Unix seconds. The certificate is still valid in this second.
    pub not_after_s: u64,
    pub subject: Name<'a>,
    pub key: PublicKey<'a>,
    pub extensions: Extensions<'a>,
}

/// A public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey<'a> {
    /// The whole `SubjectPublicKeyInfo`.
    pub info: &'a [u8],
    /// The content of its `AlgorithmIdentifier`.
    pub algorithm: &'a [u8],
    /// The key itself.
    pub bits: &'a [u8],
}

/// A signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature<'a> {
    /// The content of its `AlgorithmIdentifier`.
    pub algorithm: &'a [u8],
    pub bits: &'a [u8],
}

/// A certificate in DER, and the bytes after it. The parts that every certificate has are looked
/// for, and not what is in them: `None` if they are not there.
pub fn split(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (own, rest) = take_whole(der, SEQUENCE)?;
    let (content, _) = take(own, SEQUENCE)?;
    let (signed, signature) = take(content, SEQUENCE)?;
    let (_, bits) = take(signature, SEQUENCE)?;
    take(bits, BIT_STRING)?;
    // The algorithm, the issuer, the validity, the subject and the key follow the number.
    let (_, mut parts) = take(skip(signed, VERSION)?, INTEGER)?;
    for _ in 0..5 {
        (_, parts) = take(parts, SEQUENCE)?;
    }
    Some((own, rest))
}

/// Whether the bytes are one sequence, as OpenSSL's trust settings and the parameters of keys are;
/// what is in it is not looked at.
pub fn is_sequence(der: &[u8]) -> bool {
    take(der, SEQUENCE).is_some_and(|(_, rest)| rest.is_empty())
}

impl<'a> Certificate<'a> {
    /// Reads a certificate from DER; `None` if the bytes are not a certificate.
    pub fn read(der: &'a [u8]) -> Option<Certificate<'a>> {
        let (certificate, _) = take(der, SEQUENCE)?;
        let (signed, rest) = take_whole(certificate, SEQUENCE)?;
        let signature = Signature::read(rest)?;
        let (rest, _) = take(signed, SEQUENCE)?;
        let (version, rest) = match take(rest, VERSION) {
            Some((content, rest)) => (crate::der::number(content)?.0.checked_add(1)?, rest),
            None => (1, rest),
        };
        let (serial, rest) = take(rest, INTEGER)?;
        let (algorithm, rest) = take(rest, SEQUENCE)?;
        let (issuer, rest) = take(rest, SEQUENCE)?;
        let (validity, rest) = take(rest, SEQUENCE)?;
        let (subject, rest) = take(rest, SEQUENCE)?;
        let (info, rest) = take_whole(rest, SEQUENCE)?;
        let rest = skip(skip(rest, ISSUER_ID)?, SUBJECT_ID)?;
        let extensions = match take(rest, EXTENSIONS) {
            Some((content, _)) => take(content, SEQUENCE)?.0,
            None if rest.is_empty() => &[],
            None => return None,
        };
        let (not_before_s, rest) = time(validity)?;
        let (not_after_s, _) = time(rest)?;
        // The signed part must name the algorithm too (RFC 5280 section 4.1.1.2).
        (algorithm == signature.algorithm).then_some(Certificate {
            signed,
            signature,
            version,
            serial,
            issuer: Name(issuer),
            not_before_s,
            not_after_s,
            subject: Name(subject),
            key: PublicKey::read(info)?,
            extensions: Extensions::read(extensions)?,
        })
    }

    /// Whether issuer and subject are the same. This does not check the signature.
    pub fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }
}

impl<'a> PublicKey<'a> {
    fn read(info: &'a [u8]) -> Option<PublicKey<'a>> {
        let (content, _) = take(info, SEQUENCE)?;
        let (algorithm, rest) = take(content, SEQUENCE)?;
        let (bits, _) = octets_of_bits(rest)?;
        Some(PublicKey {
            info,
            algorithm,
            bits,
        })
    }
}

impl<'a> Signature<'a> {
    /// The algorithm and the bits that follow the signed part.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Signature<'a>> {
        let (algorithm, rest) = take(bytes, SEQUENCE)?;
        let (bits, _) = octets_of_bits(rest)?;
        Some(Signature { algorithm, bits })
    }
}

#[cfg(test)]
mod tests;
