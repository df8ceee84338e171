//! Private keys encrypted with a password: PKCS#8 (RFC 5958) with PBES2 and PBKDF2 (RFC 8018), and
//! AES in CBC mode (RFC 3565). The caller decrypts them.

#[cfg(test)]
mod tests;

use crate::der::{INTEGER, OBJECT, OCTET_STRING, SEQUENCE, number, skip, take};

/// Content octets of object identifiers.
const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 12];
const HMAC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2];
const AES: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1];

/// The pseudorandom function of PBKDF2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prf {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

/// An encrypted key, with all parameters for its decryption except the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncryptedKey<'a> {
    pub salt: &'a [u8],
    pub iterations: u32,
    pub prf: Prf,
    /// The length of the AES key.
    pub key_bytes: usize,
    /// The initialization vector.
    pub iv: &'a [u8],
    pub data: &'a [u8],
}

impl<'a> EncryptedKey<'a> {
    /// Reads an encrypted key from DER; `None` if it is not one or uses another scheme.
    pub fn read(der: &'a [u8]) -> Option<EncryptedKey<'a>> {
        let (content, _) = take(der, SEQUENCE)?;
        let (algorithm, rest) = take(content, SEQUENCE)?;
        let (data, _) = take(rest, OCTET_STRING)?;
        let (derivation, rest) = take(of(algorithm, PBES2)?, SEQUENCE)?;
        let (cipher, _) = take(rest, SEQUENCE)?;
        let (salt, rest) = take(of(derivation, PBKDF2)?, OCTET_STRING)?;
        let (iterations, rest) = number(rest)?;
        let rest = skip(rest, INTEGER)?;
        let (cipher, iv) = take(cipher, OBJECT)?;
        Some(EncryptedKey {
            salt,
            iterations: u32::try_from(iterations).ok()?,
            prf: prf(rest)?,
            key_bytes: match cipher.strip_prefix(AES)? {
                [2] => 16,
                [22] => 24,
                [42] => 32,
                _ => return None,
            },
            iv: take(iv, OCTET_STRING)?.0,
            data,
        })
    }
}

/// The parameters of an algorithm, if it is `object`.
fn of<'a>(algorithm: &'a [u8], object: &[u8]) -> Option<&'a [u8]> {
    let (own, parameters) = take(algorithm, OBJECT)?;
    let (content, _) = take(parameters, SEQUENCE)?;
    (own == object).then_some(content)
}

fn prf(bytes: &[u8]) -> Option<Prf> {
    let Some((algorithm, _)) = take(bytes, SEQUENCE) else {
        return bytes.is_empty().then_some(Prf::Sha1);
    };
    let (object, _) = take(algorithm, OBJECT)?;
    match object.strip_prefix(HMAC)? {
        [7] => Some(Prf::Sha1),
        [9] => Some(Prf::Sha256),
        [10] => Some(Prf::Sha384),
        [11] => Some(Prf::Sha512),
        _ => None,
    }
}
