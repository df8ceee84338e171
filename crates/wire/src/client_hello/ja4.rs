//! JA4, the fingerprint of a TLS client (FoxIO's public definition): what a ClientHello offers,
//! sorted so that a client that shuffles its extensions keeps its fingerprint.
//!
//! A fingerprint is not authenticated. A client can imitate another one.

#[cfg(test)]
mod tests;

use super::{
    EXTENSION_PROTOCOLS, EXTENSION_SERVER_NAME, EXTENSION_VERSIONS, RANDOM_BYTES, Reader,
    complete_body,
};
use crate::hex;

/// The bytes of a fingerprint.
pub const FINGERPRINT_BYTES: usize = PREFIX_BYTES + 2 * (1 + DIGEST_DIGITS);

/// The bytes of SHA-256, by which the lists are shortened.
pub const SHA256_BYTES: usize = 32;

const PREFIX_BYTES: usize = 10;
const DIGEST_DIGITS: usize = 12;

/// The digits that stand for an empty list.
const EMPTY_DIGEST: [u8; DIGEST_DIGITS] = [b'0'; DIGEST_DIGITS];

/// The largest number of a count: two digits.
const COUNT_MAX: usize = 99;

const EXTENSION_SIGNATURE_ALGORITHMS: u16 = 13;

/// The offers of a ClientHello that its fingerprint is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offers {
    /// Version, name, counts and protocol, such as `t13d1516h2`.
    prefix: [u8; PREFIX_BYTES],
    /// The cipher suites in ascending order, such as `1301,1302`; empty if there are none.
    ciphers: Vec<u8>,
    /// The extensions in ascending order, without name and protocols, and behind `_` the signature
    /// algorithms in the client's order; empty if there are no extensions.
    extensions: Vec<u8>,
}

impl Offers {
    /// Reads the offers of the ClientHello that the bytes begin with; `None` if they begin with
    /// none that is complete and whole.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Offers> {
        let body = complete_body(bytes).ok()??;
        Lists::read(&body).map(|lists| lists.offers())
    }

    /// The fingerprint. `sha256` is the digest of that name, which this crate does not have.
    #[must_use]
    pub fn fingerprint(
        &self,
        sha256: impl Fn(&[u8]) -> [u8; SHA256_BYTES],
    ) -> [u8; FINGERPRINT_BYTES] {
        let mut text = [b'_'; FINGERPRINT_BYTES];
        let (prefix, digests) = text.split_at_mut(PREFIX_BYTES);
        prefix.copy_from_slice(&self.prefix);
        for (place, list) in digests
            .chunks_exact_mut(1 + DIGEST_DIGITS)
            .zip([&self.ciphers, &self.extensions])
        {
            let digits = match list.as_slice() {
                [] => EMPTY_DIGEST,
                list => first_digits(&sha256(list)),
            };
            place[1..].copy_from_slice(&digits);
        }
        text
    }

    /// The fingerprint with lists in place of their digests, which FoxIO calls JA4_r.
    #[must_use]
    pub fn raw(&self) -> Vec<u8> {
        [&self.prefix, self.ciphers.as_slice(), &self.extensions].join(&b'_')
    }
}

fn first_digits(digest: &[u8; SHA256_BYTES]) -> [u8; DIGEST_DIGITS] {
    let mut digits = [0; DIGEST_DIGITS];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(digest) {
        pair.copy_from_slice(&hex::pair(*byte));
    }
    digits
}

/// The lists of a ClientHello, without the numbers that only keep servers tolerant (GREASE, RFC
/// 8701).
#[derive(Default)]
struct Lists<'a> {
    version: u16,
    ciphers: Vec<u16>,
    extensions: Vec<u16>,
    signature_algorithms: Vec<u16>,
    /// The first protocol of ALPN; empty if there is none.
    protocol: &'a [u8],
}

impl<'a> Lists<'a> {
    fn read(body: &'a [u8]) -> Option<Lists<'a>> {
        let mut reader = Reader(body);
        let mut lists = Lists {
            version: reader.number()?,
            ..Lists::default()
        };
        reader.take(RANDOM_BYTES)?;
        let session = reader.byte()?;
        reader.take(usize::from(session))?;
        let bytes = reader.number()?;
        lists.ciphers = numbers(reader.take(usize::from(bytes))?);
        let compressions = reader.byte()?;
        reader.take(usize::from(compressions))?;
        let Some(bytes) = reader.number() else {
            return Some(lists);
        };
        let mut extensions = Reader(reader.take(usize::from(bytes))?);
        while let Some(kind) = extensions.number() {
            let bytes = extensions.number()?;
            let value = extensions.take(usize::from(bytes))?;
            lists.add(kind, value)?;
        }
        Some(lists)
    }

    fn add(&mut self, kind: u16, value: &'a [u8]) -> Option<()> {
        if is_grease(kind) {
            return Some(());
        }
        self.extensions.push(kind);
        let mut value = Reader(value);
        match kind {
            EXTENSION_VERSIONS => {
                let bytes = value.byte()?;
                let versions = numbers(value.take(usize::from(bytes))?);
                self.version = versions.into_iter().max().unwrap_or(self.version);
            }
            EXTENSION_SIGNATURE_ALGORITHMS => {
                let bytes = value.number()?;
                self.signature_algorithms = numbers(value.take(usize::from(bytes))?);
            }
            EXTENSION_PROTOCOLS => {
                let bytes = value.number()?;
                let mut names = Reader(value.take(usize::from(bytes))?);
                let bytes = names.byte().unwrap_or_default();
                self.protocol = names.take(usize::from(bytes))?;
            }
            _ => {}
        }
        Some(())
    }

    fn offers(mut self) -> Offers {
        let prefix = self.prefix();
        self.ciphers.sort_unstable();
        self.extensions.sort_unstable();
        let mut extensions = self.extensions;
        extensions.retain(|kind| ![EXTENSION_SERVER_NAME, EXTENSION_PROTOCOLS].contains(kind));
        let mut extensions = list(&extensions);
        if !self.signature_algorithms.is_empty() {
            extensions.push(b'_');
            extensions.extend(list(&self.signature_algorithms));
        }
        Offers {
            prefix,
            ciphers: list(&self.ciphers),
            extensions,
        }
    }

    fn prefix(&self) -> [u8; PREFIX_BYTES] {
        let [version, release] = match self.version {
            0x0304 => *b"13",
            0x0303 => *b"12",
            0x0302 => *b"11",
            0x0301 => *b"10",
            0x0300 => *b"s3",
            0x0002 => *b"s2",
            _ => *b"00",
        };
        let named = if self.extensions.contains(&EXTENSION_SERVER_NAME) {
            b'd'
        } else {
            b'i'
        };
        let [cipher_tens, ciphers] = two_digits(self.ciphers.len());
        let [extension_tens, extensions] = two_digits(self.extensions.len());
        let [first, last] = ends(self.protocol);
        // The transport is TCP.
        [
            b't',
            version,
            release,
            named,
            cipher_tens,
            ciphers,
            extension_tens,
            extensions,
            first,
            last,
        ]
    }
}

/// The first and the last character of a protocol's name. Where one of them is no letter or digit,
/// the name is taken in hexadecimal.
fn ends(name: &[u8]) -> [u8; 2] {
    match (name.first(), name.last()) {
        (Some(first), Some(last)) => {
            if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
                [*first, *last]
            } else {
                [hex::pair(*first)[0], hex::pair(*last)[1]]
            }
        }
        _ => *b"00",
    }
}

fn two_digits(count: usize) -> [u8; 2] {
    let count = count.min(COUNT_MAX) as u8;
    [b'0' + count / 10, b'0' + count % 10]
}

/// The numbers in a list, without those of GREASE.
fn numbers(bytes: &[u8]) -> Vec<u16> {
    let pairs = bytes.chunks_exact(2);
    let numbers = pairs.map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    numbers.filter(|number| !is_grease(*number)).collect()
}

/// Whether a number is of GREASE (RFC 8701 section 2): two equal bytes that end with `a`.
fn is_grease(number: u16) -> bool {
    let [high, low] = number.to_be_bytes();
    high == low && low & 0x0f == 0x0a
}

/// Numbers in hexadecimal with commas between them.
fn list(numbers: &[u16]) -> Vec<u8> {
    let mut text = Vec::with_capacity(numbers.len() * 5);
    for number in numbers {
        if !text.is_empty() {
            text.push(b',');
        }
        for byte in number.to_be_bytes() {
            text.extend_from_slice(&hex::pair(byte));
        }
    }
    text
}
