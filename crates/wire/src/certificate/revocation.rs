//! Certificate revocation lists (RFC 5280 section 5).

use super::Signature;
use super::time::time;
use crate::der::{BOOLEAN, INTEGER, OBJECT, SEQUENCE, skip, take, take_whole};

/// `[0]`, constructed: the list's own extensions.
const LIST_EXTENSIONS: u8 = 0xa0;

/// The number of the list: this extension does not change the set of revoked certificates.
const LIST_NUMBER: &[u8] = &[0x55, 0x1d, 20];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 35];

/// A certificate revocation list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevocationList<'a> {
    /// The signed bytes.
    pub signed: &'a [u8],
    pub signature: Signature<'a>,
    /// The content of the name of the CA whose certificates the list covers.
    pub issuer: &'a [u8],
    /// The time of issue, in Unix seconds.
    pub this_update_s: u64,
    /// The time of the next list, in Unix seconds.
    pub next_update_s: Option<u64>,
    /// Whether the list has a critical extension that this code does not know. It may then be a
    /// delta list, or cover only a part of the certificates.
    pub has_unknown_critical: bool,
    revoked: &'a [u8],
}

impl<'a> RevocationList<'a> {
    /// Reads a list from DER; `None` if the bytes are not a list.
    pub fn read(der: &'a [u8]) -> Option<RevocationList<'a>> {
        let (list, _) = take(der, SEQUENCE)?;
        let (signed, rest) = take_whole(list, SEQUENCE)?;
        let signature = Signature::read(rest)?;
        let (content, _) = take(signed, SEQUENCE)?;
        let rest = skip(content, INTEGER)?;
        let (algorithm, rest) = take(rest, SEQUENCE)?;
        let (issuer, rest) = take(rest, SEQUENCE)?;
        let (this_update_s, rest) = time(rest)?;
        let (next_update_s, rest) = match time(rest) {
            Some((seconds, rest)) => (Some(seconds), rest),
            None => (None, rest),
        };
        let (revoked, rest) = match take(rest, SEQUENCE) {
            Some(found) => found,
            None => (&[][..], rest),
        };
        let extensions = match take(rest, LIST_EXTENSIONS) {
            Some((content, _)) => take(content, SEQUENCE)?.0,
            None if rest.is_empty() => &[],
            None => return None,
        };
        (algorithm == signature.algorithm).then_some(RevocationList {
            signed,
            signature,
            issuer,
            this_update_s,
            next_update_s,
            has_unknown_critical: has_unknown_critical(extensions)?,
            revoked,
        })
    }

    /// Whether the certificate with this serial number is revoked; `None` if the list is malformed.
    pub fn revokes(&self, serial: &[u8]) -> Option<bool> {
        let mut list = self.revoked;
        while !list.is_empty() {
            let (entry, rest) = take(list, SEQUENCE)?;
            let (own, entry) = take(entry, INTEGER)?;
            if own == serial {
                return Some(true);
            }
            let (_, extensions) = time(entry)?;
            if let Some((content, _)) = take(extensions, SEQUENCE)
                && has_unknown_critical(content)?
            {
                // The entry may be about another CA's certificate.
                return None;
            }
            list = rest;
        }
        Some(false)
    }
}

fn has_unknown_critical(mut list: &[u8]) -> Option<bool> {
    while !list.is_empty() {
        let (extension, rest) = take(list, SEQUENCE)?;
        list = rest;
        let (object, extension) = take(extension, OBJECT)?;
        let is_critical = take(extension, BOOLEAN).is_some_and(|(content, _)| content != [0]);
        if is_critical && object != LIST_NUMBER && object != AUTHORITY_KEY {
            return Some(true);
        }
    }
    Some(false)
}
