//! Extensions of a certificate (RFC 5280 section 4.2).

use crate::der::{BIT_STRING, BOOLEAN, OBJECT, OCTET_STRING, SEQUENCE, any, number, take};

/// Contents of object identifiers.
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const NAME_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 30];
const CERTIFICATE_POLICIES: &[u8] = &[0x55, 0x1d, 32];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// Bits of the key usage, as in the first byte of the bit string.
const DIGITAL_SIGNATURE: u8 = 0x80;
const KEY_ENCIPHERMENT: u8 = 0x20;
const KEY_AGREEMENT: u8 = 0x08;
const KEY_CERT_SIGN: u8 = 0x04;
const CRL_SIGN: u8 = 0x02;

/// Tags of names: `[2]` a DNS name, `[7]` an address.
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

/// The purpose that a certificate is checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A server authenticates itself with it.
    Server,
    /// A client authenticates itself with it.
    Client,
}

/// 2.5.29.35, and `[0]` in it.
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 35];
const KEY_IDENTIFIER: u8 = 0x80;

/// 1.3.6.1.5.5.7.1.1, and in it 1.3.6.1.5.5.7.48.1 for OCSP, with `[6]` for an address.
const AUTHORITY_ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
const OCSP: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 48, 1];
const URI: u8 = 0x86;

/// 1.3.6.1.5.5.7.3.9: the key signs OCSP responses.
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];

/// The extensions of a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions<'a> {
    /// Whether the basic constraints mark the subject as a CA.
    pub is_ca: Option<bool>,
    /// The number of CAs that may follow in the chain before the last certificate.
    pub path_length: Option<u64>,
    /// Whether its CA limits the names below it.
    pub has_name_constraints: bool,
    /// Whether there is a critical extension that this code does not know.
    pub has_unknown_critical: bool,
    /// The number of the issuer's key (RFC 5280 section 4.2.1.1).
    pub authority_key: Option<&'a [u8]>,
    key_usage: Option<u8>,
    authority_access: Option<&'a [u8]>,
    extended_usage: Option<&'a [u8]>,
    names: Option<&'a [u8]>,
}

impl<'a> Extensions<'a> {
    /// Reads the content of the list; `None` if it does not follow the RFC.
    pub(super) fn read(mut list: &'a [u8]) -> Option<Extensions<'a>> {
        let mut read = Extensions::default();
        while !list.is_empty() {
            let (extension, rest) = take(list, SEQUENCE)?;
            list = rest;
            let (object, extension) = take(extension, OBJECT)?;
            let (is_critical, extension) = match take(extension, BOOLEAN) {
                Some((content, rest)) => (content != [0], rest),
                None => (false, extension),
            };
            let (value, _) = take(extension, OCTET_STRING)?;
            read.note(object, value, is_critical)?;
        }
        Some(read)
    }

    fn note(&mut self, object: &[u8], value: &'a [u8], is_critical: bool) -> Option<()> {
        match object {
            KEY_USAGE => {
                let (bits, _) = take(value, BIT_STRING)?;
                once(&mut self.key_usage, bits.get(1).copied().unwrap_or(0))?;
            }
            BASIC_CONSTRAINTS => {
                let (content, _) = take(value, SEQUENCE)?;
                let (is_ca, rest) = match take(content, BOOLEAN) {
                    Some((content, rest)) => (content != [0], rest),
                    None => (false, content),
                };
                once(&mut self.is_ca, is_ca)?;
                if !rest.is_empty() {
                    self.path_length = Some(number(rest)?.0);
                }
            }
            EXTENDED_KEY_USAGE => once(&mut self.extended_usage, take(value, SEQUENCE)?.0)?,
            SUBJECT_ALT_NAME => once(&mut self.names, take(value, SEQUENCE)?.0)?,
            AUTHORITY_KEY => {
                let (content, _) = take(value, SEQUENCE)?;
                self.authority_key = take(content, KEY_IDENTIFIER).map(|(number, _)| number);
            }
            AUTHORITY_ACCESS => {
                once(&mut self.authority_access, take(value, SEQUENCE)?.0)?;
            }
            NAME_CONSTRAINTS => self.has_name_constraints = true,
            // They matter only to a verifier that requires policies.
            CERTIFICATE_POLICIES => {}
            _ => self.has_unknown_critical |= is_critical,
        }
        Some(())
    }

    /// The address of the issuer's OCSP responder (RFC 5280 section 4.2.2.1).
    pub fn ocsp_responder(&self) -> Option<&'a [u8]> {
        let mut list = self.authority_access?;
        while !list.is_empty() {
            let (description, rest) = take(list, SEQUENCE)?;
            let (method, place) = take(description, OBJECT)?;
            if method == OCSP {
                return Some(take(place, URI)?.0);
            }
            list = rest;
        }
        None
    }

    /// Whether it is the certificate of a responder that its issuer has appointed (RFC 6960 section
    /// 4.2.2.2).
    pub fn may_sign_responses(&self) -> bool {
        let mut list = self.extended_usage.unwrap_or_default();
        while let Some((usage, rest)) = take(list, OBJECT) {
            if usage == OCSP_SIGNING {
                return true;
            }
            list = rest;
        }
        false
    }

    /// Whether its key may sign certificates.
    pub fn may_sign_certificates(&self) -> bool {
        self.key_usage.is_none_or(|bits| bits & KEY_CERT_SIGN != 0)
    }

    /// Whether its key may sign revocation lists.
    pub fn may_sign_lists(&self) -> bool {
        self.key_usage.is_none_or(|bits| bits & CRL_SIGN != 0)
    }

    /// Whether its key usages allow this purpose.
    pub fn is_for(&self, purpose: Purpose) -> bool {
        let (object, bits) = match purpose {
            Purpose::Server => (
                SERVER_AUTH,
                DIGITAL_SIGNATURE | KEY_ENCIPHERMENT | KEY_AGREEMENT,
            ),
            Purpose::Client => (CLIENT_AUTH, DIGITAL_SIGNATURE | KEY_AGREEMENT),
        };
        self.key_usage.is_none_or(|own| own & bits != 0) && self.has_extended(object)
    }

    /// Whether a CA with these key usages may issue certificates for this purpose.
    pub fn may_lead_to(&self, purpose: Purpose) -> bool {
        self.has_extended(match purpose {
            Purpose::Server => SERVER_AUTH,
            Purpose::Client => CLIENT_AUTH,
        })
    }

    fn has_extended(&self, object: &[u8]) -> bool {
        let Some(mut list) = self.extended_usage else {
            return true;
        };
        while let Some((own, rest)) = take(list, OBJECT) {
            if own == object {
                return true;
            }
            list = rest;
        }
        false
    }

    /// The DNS names of its subject.
    pub fn dns_names(&self) -> impl Iterator<Item = &'a [u8]> {
        self.names_of(DNS_NAME)
    }

    /// The addresses of its subject, 4 or 16 bytes each.
    pub fn addresses(&self) -> impl Iterator<Item = &'a [u8]> {
        self.names_of(IP_ADDRESS)
    }

    fn names_of(&self, kind: u8) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut list = self.names.unwrap_or_default();
        std::iter::from_fn(move || {
            while let Some((tag, content, rest)) = any(list) {
                list = rest;
                if tag == kind {
                    return Some(content);
                }
            }
            None
        })
    }
}

/// An extension may occur once (RFC 5280 section 4.2).
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}
