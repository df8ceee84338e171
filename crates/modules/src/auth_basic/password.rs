//! Stored passwords: the schemes that crypt(3), Apache's htpasswd and LDAP's tools write.

use aws_lc_rs::digest;
use md5::{Digest, Md5};
use turnpike_http::base64;
use turnpike_lane::sys::crypt::{self, CryptError};

use crate::common::constant_time;

/// Bytes of a SHA-1 digest.
const SHA1_BYTES: usize = 20;

/// Rounds of the MD5 scheme; fixed by its format.
const MD5_ROUNDS: usize = 1000;

/// Longest salt of the MD5 scheme; the rest is ignored.
const MD5_SALT_BYTES_MAX: usize = 8;

/// The digits of crypt(3)'s base 64, which is not RFC 4648's.
const CRYPT_DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What came of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The password is right.
    Right,
    /// The password is wrong, or what is stored is broken.
    Wrong,
    /// What is stored is of no scheme that is known here, or broken.
    UnknownScheme,
}

/// Whether a comparison is quick enough for a lane: a plain text or a single hash.
pub(super) fn is_quick(stored: &[u8]) -> bool {
    stored.first() == Some(&b'{')
}

/// Compares a password with a stored one. Takes long unless [`is_quick`] says otherwise.
pub(super) fn verify(password: &[u8], stored: &[u8]) -> Outcome {
    let is_right = if let Some(plain) = stored.strip_prefix(b"{PLAIN}") {
        constant_time::equal(password, plain)
    } else if let Some(text) = stored.strip_prefix(b"{SSHA}") {
        salted_sha1(password, text)
    } else if let Some(text) = stored.strip_prefix(b"{SHA}") {
        base64::decode(text).is_some_and(|digest| constant_time::equal(&sha1(&[password]), &digest))
    } else if let Some(rest) = stored.strip_prefix(b"$apr1$") {
        apr1(password, rest)
    } else {
        return crypt(password, stored);
    };
    if is_right {
        Outcome::Right
    } else {
        Outcome::Wrong
    }
}

/// The schemes of crypt(3). What begins with `*` or `!` is a locked account in the system's own
/// files, and never a password.
fn crypt(password: &[u8], stored: &[u8]) -> Outcome {
    if matches!(stored.first(), None | Some(b'*' | b'!')) {
        return Outcome::Wrong;
    }
    match crypt::crypt(password, stored) {
        Ok(hash) if constant_time::equal(&hash, stored) => Outcome::Right,
        Err(CryptError::Stored) if is_of_a_scheme(stored) => Outcome::UnknownScheme,
        _ => Outcome::Wrong,
    }
}

/// Whether it names a scheme, as all do but the oldest.
fn is_of_a_scheme(stored: &[u8]) -> bool {
    matches!(stored.first(), Some(b'$' | b'_'))
}

fn salted_sha1(password: &[u8], text: &[u8]) -> bool {
    let Some(decoded) = base64::decode(text) else {
        return false;
    };
    let Some((digest, salt)) = decoded.split_at_checked(SHA1_BYTES) else {
        return false;
    };
    constant_time::equal(&sha1(&[password, salt]), digest)
}

fn sha1(parts: &[&[u8]]) -> [u8; SHA1_BYTES] {
    let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    parts.iter().for_each(|part| hash.update(part));
    let mut bytes = [0; SHA1_BYTES];
    bytes.copy_from_slice(hash.finish().as_ref());
    bytes
}

/// Apache's variant of the MD5 scheme: `rest` is `SALT$HASH`.
fn apr1(password: &[u8], rest: &[u8]) -> bool {
    let dollar = rest.iter().position(|byte| *byte == b'$');
    let (salt, hash) = match dollar {
        Some(dollar) => (&rest[..dollar], &rest[dollar + 1..]),
        None => return false,
    };
    let salt = &salt[..salt.len().min(MD5_SALT_BYTES_MAX)];
    constant_time::equal(&apr1_hash(password, salt), hash)
}

fn apr1_hash(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let mut digest = apr1_first(password, salt);
    for round in 0..MD5_ROUNDS {
        let mut hash = Md5::new();
        let (before, after) = if round % 2 == 1 {
            (password, digest.as_slice())
        } else {
            (digest.as_slice(), password)
        };
        hash.update(before);
        if round % 3 != 0 {
            hash.update(salt);
        }
        if round % 7 != 0 {
            hash.update(password);
        }
        hash.update(after);
        digest = hash.finalize().into();
    }
    let mut text = Vec::with_capacity(22);
    for [high, middle, low] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        let [high, middle, low] = [digest[high], digest[middle], digest[low]].map(u32::from);
        push_digits(high << 16 | middle << 8 | low, 4, &mut text);
    }
    push_digits(u32::from(digest[11]), 2, &mut text);
    text
}

/// The digest that the rounds begin with.
fn apr1_first(password: &[u8], salt: &[u8]) -> [u8; 16] {
    let mut inner = Md5::new();
    for part in [password, salt, password] {
        inner.update(part);
    }
    let inner: [u8; 16] = inner.finalize().into();
    let mut hash = Md5::new();
    hash.update(password);
    hash.update(b"$apr1$");
    hash.update(salt);
    for chunk in password.chunks(inner.len()) {
        hash.update(&inner[..chunk.len()]);
    }
    let mut bits = password.len();
    while bits > 0 {
        // The scheme mixes a zero byte where one would expect a byte of the digest.
        let byte = if bits & 1 == 1 { 0 } else { first(password) };
        hash.update([byte]);
        bits >>= 1;
    }
    hash.finalize().into()
}

fn first(bytes: &[u8]) -> u8 {
    bytes.first().copied().unwrap_or(0)
}

fn push_digits(mut value: u32, count: usize, text: &mut Vec<u8>) {
    for _ in 0..count {
        text.push(CRYPT_DIGITS[(value & 63) as usize]);
        value >>= 6;
    }
}
