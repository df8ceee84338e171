//! Values that are computed of others, as in the module set_misc: `set_escape_uri` and its like.

use std::io::Write;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256};
use md5::{Digest, Md5};
use turnpike_http::base64;
use turnpike_http::exchange::Exchange;
use turnpike_wire::hex;
use turnpike_wire::target::{Escape, escape};

/// Longest random text; the module's.
const RANDOM_BYTES_MAX: usize = 64;

/// Letters and digits.
const ALPHANUMERIC: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// What a function makes of its arguments; empty where it cannot take them.
#[derive(Clone, Copy)]
pub(super) enum Function {
    /// The second argument where the first is empty.
    IfEmpty,
    /// Of one text.
    Text(fn(&[u8]) -> Vec<u8>),
    /// A keyed hash: of a secret and a text.
    Keyed(hmac::Algorithm),
    /// A random text of these letters, with so many of them.
    RandomText(&'static [u8]),
    /// A random number between two, both included.
    RandomNumber,
}

impl Function {
    /// The function of a directive; `None`: it has none.
    pub(super) fn of(directive: &str) -> Option<Self> {
        Some(match directive {
            "set_if_empty" => Self::IfEmpty,
            "set_escape_uri" => Self::Text(escape_uri),
            "set_unescape_uri" => Self::Text(unescape_uri),
            "set_quote_json_str" => Self::Text(quote_json),
            "set_encode_base64" => Self::Text(|text| base64::encode(text).into_bytes()),
            "set_decode_base64" => Self::Text(|text| base64::decode(text).unwrap_or_default()),
            "set_encode_base64url" => Self::Text(encode_base64url),
            "set_decode_base64url" => Self::Text(decode_base64url),
            "set_encode_hex" => Self::Text(|text| hex::text(text).into_bytes()),
            "set_decode_hex" => Self::Text(|text| hex::bytes(text).unwrap_or_default()),
            "set_md5" => Self::Text(|text| hex::text(&Md5::digest(text)).into_bytes()),
            "set_sha1" => Self::Text(sha1),
            "set_hmac_sha1" => Self::Keyed(HMAC_SHA1_FOR_LEGACY_USE_ONLY),
            "set_hmac_sha256" => Self::Keyed(HMAC_SHA256),
            "set_secure_random_alphanum" => Self::RandomText(ALPHANUMERIC),
            "set_secure_random_lcalpha" => Self::RandomText(LOWER),
            "set_random" => Self::RandomNumber,
            _ => return None,
        })
    }

    /// Whether the variable's own value comes before the arguments.
    pub(super) fn takes_own_value(self, arguments: usize) -> bool {
        match self {
            Self::IfEmpty => true,
            Self::Text(_) => arguments == 0,
            Self::Keyed(_) | Self::RandomText(_) | Self::RandomNumber => false,
        }
    }

    /// The value for these arguments.
    pub(super) fn compute(self, exchange: &Exchange, arguments: &[Vec<u8>]) -> Vec<u8> {
        match (self, arguments) {
            (Self::IfEmpty, [own, other]) if own.is_empty() => other.clone(),
            (Self::IfEmpty, [own, _]) => own.clone(),
            (Self::Text(of), [text]) => of(text),
            (Self::Keyed(algorithm), [secret, text]) => {
                let key = hmac::Key::new(algorithm, secret);
                hmac::sign(&key, text).as_ref().to_vec()
            }
            (Self::RandomText(letters), [count]) => random_text(letters, count).unwrap_or_default(),
            (Self::RandomNumber, [from, to]) => {
                random_number(exchange.lane.random(), from, to).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}

fn escape_uri(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::new();
    escape(text, Escape::Component, &mut escaped);
    escaped
}

/// A plus sign is a space, as in forms.
fn unescape_uri(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => match hex::byte(after) {
                Some(value) => {
                    plain.push(value);
                    rest = &after[2..];
                }
                None => plain.push(byte),
            },
            b'+' => plain.push(b' '),
            byte => plain.push(byte),
        }
    }
    plain
}

/// A string of JSON (RFC 8259 section 7); `null` for an empty text.
fn quote_json(text: &[u8]) -> Vec<u8> {
    if text.is_empty() {
        return b"null".to_vec();
    }
    let mut quoted = vec![b'"'];
    for &byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend_from_slice(&[b'\\', byte]),
            b'\n' => quoted.extend_from_slice(b"\\n"),
            b'\r' => quoted.extend_from_slice(b"\\r"),
            b'\t' => quoted.extend_from_slice(b"\\t"),
            0x08 => quoted.extend_from_slice(b"\\b"),
            0x0c => quoted.extend_from_slice(b"\\f"),
            // Writing to a Vec cannot fail.
            0..0x20 => drop(write!(quoted, "\\u{byte:04x}")),
            byte => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}

fn sha1(text: &[u8]) -> Vec<u8> {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, text);
    hex::text(hash.as_ref()).into_bytes()
}

/// The alphabet of RFC 4648 section 5, without padding.
fn encode_base64url(text: &[u8]) -> Vec<u8> {
    let encoded = base64::encode(text);
    let translated = encoded.bytes().map(|byte| match byte {
        b'+' => b'-',
        b'/' => b'_',
        byte => byte,
    });
    translated.filter(|byte| *byte != b'=').collect()
}

fn decode_base64url(text: &[u8]) -> Vec<u8> {
    let translated = text.iter().map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        byte => *byte,
    });
    let translated: Vec<u8> = translated.collect();
    base64::decode(&translated).unwrap_or_default()
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn random_text(letters: &[u8], count: &[u8]) -> Option<Vec<u8>> {
    let count = usize::try_from(number(count)?).ok()?;
    if count == 0 || count > RANDOM_BYTES_MAX {
        return None;
    }
    let mut text = Vec::with_capacity(count);
    while text.len() < count {
        let mut bytes = [0; RANDOM_BYTES_MAX];
        aws_lc_rs::rand::fill(&mut bytes).ok()?;
        // Bytes beyond the last multiple would make the first letters more frequent.
        let fair = 256 / letters.len() * letters.len();
        let bytes = bytes.iter().map(|byte| usize::from(*byte));
        let fair = bytes.filter(|byte| *byte < fair);
        text.extend(fair.map(|byte| letters[byte % letters.len()]));
    }
    text.truncate(count);
    Some(text)
}

fn random_number(random: u64, from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let (from, to) = (number(from)?, number(to)?);
    let (from, to) = (from.min(to), from.max(to));
    let count = u128::from(to - from) + 1;
    let offset = ((u128::from(random) * count) >> 64) as u64;
    Some((from + offset).to_string().into_bytes())
}
