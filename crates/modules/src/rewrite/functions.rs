//! Values that are computed of others, as in the module set_misc: `set_escape_uri` and its like.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256};
use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use md5::{Digest, Md5};
use turnpike_conf::{Complaint, ConfError, View};
use turnpike_http::base64;
use turnpike_http::exchange::Exchange;
use turnpike_lane::log::Level;
use turnpike_plan::Quoted;
use turnpike_wire::hex;
use turnpike_wire::target::{Escape, escape};

use super::upstream_lists::UpstreamLists;

/// Longest random text; the module's.
const RANDOM_BYTES_MAX: usize = 64;

/// Letters and digits.
const ALPHANUMERIC: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// What a function makes of its arguments; empty where it cannot take them.
#[derive(Clone)]
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
    /// Base32 with this alphabet, with or without padding.
    EncodeBase32(Alphabet, bool),
    DecodeBase32(Alphabet),
    /// One number after the other, from one to another and again; what it was last.
    Rotate(Arc<AtomicI64>),
    /// A name out of one of these lists, which the first argument names.
    HashedUpstream(UpstreamLists),
    /// The day by the system's clock.
    Today,
    /// The time by the system's clock, or of GMT, in a format of strftime(3).
    Time {
        is_local: bool,
    },
}

/// The digits of base32.
pub(super) type Alphabet = [u8; 32];

/// The digits of RFC 4648 section 7, in the case that the module uses.
pub(super) const ALPHABET: Alphabet = *b"0123456789abcdefghijklmnopqrstuv";

/// What has not been rotated yet.
pub(super) const UNTURNED: i64 = i64::MIN;

/// What directives around a function say of it.
pub(super) struct Surroundings {
    alphabet: Alphabet,
    is_padded: bool,
    /// The functions of a block rotate together, as in the module.
    turned: Arc<AtomicI64>,
    lists: UpstreamLists,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            alphabet: ALPHABET,
            is_padded: true,
            turned: Arc::new(AtomicI64::new(UNTURNED)),
            lists: UpstreamLists::default(),
        }
    }
}

impl Surroundings {
    /// Reads the directives in force in a block, which sees these lists.
    ///
    /// # Errors
    /// The module's words for an alphabet that is none.
    pub(super) fn read(view: View<'_>, lists: UpstreamLists) -> Result<Self, ConfError> {
        let mut around = Self {
            lists,
            ..Self::default()
        };
        if let Some(entry) = view.nearest("set_base32_alphabet") {
            around.alphabet = entry.argument(0).as_bytes().try_into().map_err(|_| {
                let message = "\"set_base32_alphabet\" directive takes an alphabet of 32 bytes";
                view.error(entry.span, message)
            })?;
        }
        around.is_padded = view.flag("set_base32_padding") && view.flag("set_misc_base32_padding");
        Ok(around)
    }
}

impl Function {
    /// The function of a directive; `None`: it has none.
    pub(super) fn of(directive: &str, around: &Surroundings) -> Option<Self> {
        Some(match directive {
            "set_if_empty" => Self::IfEmpty,
            "set_escape_uri" => Self::Text(escape_uri),
            "set_unescape_uri" => Self::Text(unescape_uri),
            "set_quote_json_str" => Self::Text(quote_json),
            "set_quote_sql_str" => Self::Text(quote_sql),
            "set_quote_pgsql_str" => Self::Text(quote_pgsql),
            "set_encode_base32" => Self::EncodeBase32(around.alphabet, around.is_padded),
            "set_decode_base32" => Self::DecodeBase32(around.alphabet),
            "set_rotate" => Self::Rotate(Arc::clone(&around.turned)),
            "set_hashed_upstream" => Self::HashedUpstream(around.lists.clone()),
            "set_local_today" => Self::Today,
            "set_formatted_gmt_time" => Self::Time { is_local: false },
            "set_formatted_local_time" => Self::Time { is_local: true },
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
    pub(super) fn takes_own_value(&self, arguments: usize) -> bool {
        match self {
            Self::IfEmpty | Self::Rotate(_) => true,
            Self::Text(_) | Self::EncodeBase32(..) | Self::DecodeBase32(_) => arguments == 0,
            Self::Keyed(_) | Self::RandomText(_) | Self::RandomNumber => false,
            Self::HashedUpstream(_) | Self::Today | Self::Time { .. } => false,
        }
    }

    /// Looks at arguments that are the same for every request.
    ///
    /// # Errors
    /// The module's words for a list that is not there.
    pub(super) fn check(&self, first: Option<&[u8]>) -> Result<(), Complaint> {
        match (self, first) {
            (Self::HashedUpstream(lists), Some(name)) if lists.find(name).is_none() => {
                Err(absent_list(name).into())
            }
            _ => Ok(()),
        }
    }

    /// The value for these arguments; `None`: the request fails, for a reason that is logged.
    pub(super) fn compute(&self, exchange: &Exchange, arguments: &[Vec<u8>]) -> Option<Vec<u8>> {
        Some(match (self, arguments) {
            (Self::IfEmpty, [own, other]) if own.is_empty() => other.clone(),
            (Self::IfEmpty, [own, _]) => own.clone(),
            (Self::Text(of), [text]) => of(text),
            (Self::Keyed(algorithm), [secret, text]) => {
                let key = hmac::Key::new(*algorithm, secret);
                hmac::sign(&key, text).as_ref().to_vec()
            }
            (Self::RandomText(letters), [count]) => random_text(letters, count).unwrap_or_default(),
            (Self::RandomNumber, [from, to]) => {
                random_number(exchange.lane.random(), from, to).unwrap_or_default()
            }
            (Self::EncodeBase32(alphabet, is_padded), [text]) => {
                encode_base32(alphabet, *is_padded, text)
            }
            (Self::DecodeBase32(alphabet), [text]) => {
                decode_base32(alphabet, text).unwrap_or_default()
            }
            (Self::Rotate(turned), [own, from, to]) => {
                rotate(turned, own, from, to).unwrap_or_default()
            }
            (Self::HashedUpstream(lists), [name, text]) => match lists.find(name) {
                Some(list) => list.choose(text).to_vec(),
                None => {
                    exchange.log(Level::Error, format_args!("{}", absent_list(name)));
                    return None;
                }
            },
            (Self::Today, []) => time(b"%Y-%m-%d", true).unwrap_or_default(),
            (Self::Time { is_local }, [form]) => time(form, *is_local).unwrap_or_default(),
            _ => Vec::new(),
        })
    }
}

/// The module's words for a list that is not there.
fn absent_list(name: &[u8]) -> String {
    let name = Quoted(name);
    format!("set_hashed_upstream: upstream list \"{name}\" not defined yet")
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

/// A string of MySQL.
fn quote_sql(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for &byte in text {
        let letter = match byte {
            0 => b'0',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            0x1a => b'Z',
            b'\'' | b'"' | b'\\' => byte,
            _ => {
                quoted.push(byte);
                continue;
            }
        };
        quoted.extend_from_slice(&[b'\\', letter]);
    }
    quoted.push(b'\'');
    quoted
}

/// A string of PostgreSQL, in which backslashes escape.
fn quote_pgsql(text: &[u8]) -> Vec<u8> {
    let quoted = quote_sql(text);
    if text.is_empty() {
        quoted
    } else {
        [b"E", quoted.as_slice()].concat()
    }
}

/// RFC 4648 section 6, with another alphabet.
pub(super) fn encode_base32(alphabet: &Alphabet, is_padded: bool, text: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(text.len().div_ceil(5) * 8);
    for group in text.chunks(5) {
        let mut bytes = [0; 8];
        bytes[3..3 + group.len()].copy_from_slice(group);
        let bits = u64::from_be_bytes(bytes);
        let digits = (group.len() * 8).div_ceil(5);
        for place in 0..8 {
            let digit = (bits >> (35 - 5 * place)) & 31;
            match place < digits {
                true => encoded.push(alphabet[digit as usize]),
                false if is_padded => encoded.push(b'='),
                false => {}
            }
        }
    }
    encoded
}

pub(super) fn decode_base32(alphabet: &Alphabet, text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.iter().take_while(|byte| **byte != b'=') {
        let digit = alphabet.iter().position(|own| own == byte)?;
        bits = bits << 5 | u32::try_from(digit).ok()?;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
        bits &= (1 << count) - 1;
    }
    Some(bytes)
}

/// The number after the variable's own one, or after the last one of all.
pub(super) fn rotate(turned: &AtomicI64, own: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let number = |text| i64::try_from(number(text)?).ok();
    let (from, to) = (number(from)?, number(to)?);
    let (from, to) = (from.min(to), from.max(to));
    let next = |last: i64| match last.checked_add(1) {
        Some(next) if (from..=to).contains(&next) => next,
        _ => from,
    };
    let found = match number(own) {
        Some(own) => {
            turned.store(next(own), Ordering::Relaxed);
            next(own)
        }
        None => {
            let turn = |last| Some(next(last));
            let last = turned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, turn);
            next(last.unwrap_or(UNTURNED))
        }
    };
    Some(found.to_string().into_bytes())
}

/// The time now; `None` for a form that is none.
fn time(form: &[u8], is_local: bool) -> Option<Vec<u8>> {
    let zone = if is_local {
        TimeZone::system()
    } else {
        TimeZone::UTC
    };
    let now = Timestamp::now().to_zoned(zone);
    let text = strtime::format(str::from_utf8(form).ok()?, &now).ok()?;
    Some(text.into_bytes())
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
