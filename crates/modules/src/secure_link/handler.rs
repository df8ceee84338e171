//! The variables `$secure_link` and `$secure_link_expires`.

use md5::{Digest, Md5};
use turnpike_conf::value;
use turnpike_http::base64;
use turnpike_http::exchange::Exchange;
use turnpike_http::variables::{Evaluate, Template};
use turnpike_wire::hex;

use crate::common::by_location::ByLocation;
use crate::common::constant_time;

/// Longest signature in base64.
const SIGNATURE_BYTES_MAX: usize = 24;

/// How the links of a location are signed.
pub(super) enum Signature {
    /// `secure_link` and `secure_link_md5`.
    Expressions {
        /// Where the signature is.
        place: Template,
        signed: Template,
    },
    /// `secure_link_secret`.
    Secret(Vec<u8>),
}

/// `$secure_link`.
pub(super) struct Link(pub(super) ByLocation<Signature>);

/// `$secure_link_expires`.
pub(super) struct Expires(pub(super) ByLocation<Signature>);

impl Evaluate<Exchange> for Link {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        match self.0.of(exchange).as_deref() {
            None => false,
            Some(Signature::Expressions { place, signed }) => {
                let text = place.value(exchange);
                let now_s = exchange.lane.clock.unix_seconds();
                match judge(&text, &signed.value(exchange), now_s) {
                    Some(holds) => {
                        out.push(if holds { b'1' } else { b'0' });
                        true
                    }
                    None => false,
                }
            }
            Some(Signature::Secret(secret)) => {
                let target = exchange.request().head().origin();
                match link(target, secret) {
                    Some(link) => {
                        out.extend_from_slice(link);
                        true
                    }
                    None => false,
                }
            }
        }
    }
}

impl Evaluate<Exchange> for Expires {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        let Some(signature) = self.0.of(exchange) else {
            return false;
        };
        let Signature::Expressions { place, .. } = &*signature else {
            return false;
        };
        let text = place.value(exchange);
        match parts(&text) {
            Some((_, Some((written, _)))) => {
                out.extend_from_slice(written);
                true
            }
            _ => false,
        }
    }
}

/// Whether a rightly signed link still holds; `None` where the signature is wrong.
pub(super) fn judge(text: &[u8], signed: &[u8], now_s: u64) -> Option<bool> {
    let (signature, expires) = parts(text)?;
    if signature.len() > SIGNATURE_BYTES_MAX {
        return None;
    }
    let plain: Vec<u8> = signature
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => *byte,
        })
        .collect();
    let given = base64::decode(&plain)?;
    let holds = expires.is_none_or(|(_, expires_s)| expires_s >= now_s);
    constant_time::equal(&given, &Md5::digest(signed)).then_some(holds)
}

/// What was written behind the comma, and the time that it says.
type Expiry<'t> = (&'t [u8], u64);

/// The signature, and the time until when the link holds where one is given.
fn parts(text: &[u8]) -> Option<(&[u8], Option<Expiry<'_>>)> {
    let Some(comma) = text.iter().position(|byte| *byte == b',') else {
        return Some((text, None));
    };
    let written = &text[comma + 1..];
    let number = value::number(std::str::from_utf8(written).ok()?)?;
    let expires_s = u64::try_from(number)
        .ok()
        .filter(|expires_s| *expires_s > 0)?;
    Some((&text[..comma], Some((written, expires_s))))
}

/// The link in `/prefix/signature/link`, where the signature is right.
pub(super) fn link<'t>(target: &'t [u8], secret: &[u8]) -> Option<&'t [u8]> {
    let mut segments = target.get(1..)?.splitn(3, |byte| *byte == b'/');
    let (_, signature, link) = (segments.next()?, segments.next()?, segments.next()?);
    if signature.len() != 32 || link.is_empty() {
        return None;
    }
    let given = hex::bytes(signature)?;
    let mut hash = Md5::new();
    hash.update(link);
    hash.update(secret);
    constant_time::equal(&given, &hash.finalize()).then_some(link)
}
