//! OCSP (RFC 6960): the request for the state of a certificate, and a reader of responses.
//!
//! The module computes no digest and verifies no signature, and it refuses input that does not
//! follow the RFC.

use crate::certificate::{Certificate, Name, Signature, time};
use crate::der::{
    GENERALIZED_TIME, INTEGER, NULL, OBJECT, OCTET_STRING, SEQUENCE, any, skip, take, take_whole,
    write,
};

/// The size of SHA-1's digests, which identify a certificate's issuer in a request.
pub const SHA1_BYTES: usize = 20;

/// ENUMERATED: the status of a response.
const ENUMERATED: u8 = 0x0a;

/// `[0]`, `[1]` and `[2]`, constructed.
const TAG_0: u8 = 0xa0;
const TAG_1: u8 = 0xa1;
const TAG_2: u8 = 0xa2;

/// `[0]` and `[2]`, primitive: a good certificate, and one that the responder does not know.
const GOOD: u8 = 0x80;
const UNKNOWN: u8 = 0x82;

/// 1.3.14.3.2.26: SHA-1.
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];

/// 1.3.6.1.5.5.7.48.1.1: a basic response.
const BASIC: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01];

/// What identifies a certificate: its issuer's name and key by their digests, and its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateId {
    /// SHA-1 of the issuer's name in DER.
    pub issuer_name: [u8; SHA1_BYTES],
    /// SHA-1 of the bits of the issuer's key.
    pub issuer_key: [u8; SHA1_BYTES],
    /// The content of the serial number.
    pub serial: Vec<u8>,
}

impl CertificateId {
    /// The request for the state of this certificate, in DER. It has no nonce, so that responders
    /// may answer from a cache (RFC 5019).
    pub fn request(&self) -> Vec<u8> {
        let algorithm = [write(OBJECT, SHA1), write(NULL, &[])].concat();
        let id = [
            write(SEQUENCE, &algorithm),
            write(OCTET_STRING, &self.issuer_name),
            write(OCTET_STRING, &self.issuer_key),
            write(INTEGER, &self.serial),
        ];
        let mut request = write(SEQUENCE, &id.concat());
        // CertID, Request, the list, TBSRequest, OCSPRequest.
        for _ in 0..4 {
            request = write(SEQUENCE, &request);
        }
        request
    }

    fn read(content: &[u8]) -> Option<Option<CertificateId>> {
        let (algorithm, rest) = take(content, SEQUENCE)?;
        let (object, _) = take(algorithm, OBJECT)?;
        let (name, rest) = take(rest, OCTET_STRING)?;
        let (key, rest) = take(rest, OCTET_STRING)?;
        let (serial, _) = take(rest, INTEGER)?;
        if object != SHA1 {
            return Some(None);
        }
        Some(Some(CertificateId {
            issuer_name: name.try_into().ok()?,
            issuer_key: key.try_into().ok()?,
            serial: serial.to_vec(),
        }))
    }
}

/// The state of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Good,
    Revoked,
    Unknown,
}

/// The state of one certificate, and from and until when the responder says it, in Unix seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Single {
    /// `None`: by other digests than SHA-1, which nobody asked for.
    pub id: Option<CertificateId>,
    pub state: State,
    pub this_update_s: u64,
    /// `None`: newer information is there at any time.
    pub next_update_s: Option<u64>,
}

/// The signer of a response: by name, or by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responder<'a> {
    Name(Name<'a>),
    /// SHA-1 of the bits of the key.
    Key(&'a [u8]),
}

/// A successful response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The signed bytes.
    pub signed: &'a [u8],
    pub signature: Signature<'a>,
    pub responder: Responder<'a>,
    pub responses: Vec<Single>,
    /// The certificates in DER that lead from the responder to the issuer.
    pub certificates: Vec<&'a [u8]>,
}

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The text breaks a rule of RFC 6960.
    Malformed,
    /// The responder's status (RFC 6960 section 4.2.1), which is not 0.
    Status(u8),
}

impl<'a> Response<'a> {
    /// Reads a response from DER.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn read(der: &'a [u8]) -> Result<Response<'a>, Refusal> {
        let malformed = Refusal::Malformed;
        let (content, _) = take(der, SEQUENCE).ok_or(malformed)?;
        let (status, content) = take(content, ENUMERATED).ok_or(malformed)?;
        match status {
            [0] => Response::successful(content).ok_or(malformed),
            [status] if *status != 0 => Err(Refusal::Status(*status)),
            _ => Err(malformed),
        }
    }

    fn successful(content: &'a [u8]) -> Option<Response<'a>> {
        let (content, _) = take(content, TAG_0)?;
        let (content, _) = take(content, SEQUENCE)?;
        let (object, content) = take(content, OBJECT)?;
        let (basic, _) = take(content, OCTET_STRING)?;
        let (basic, _) = take(basic, SEQUENCE)?;
        let (signed, rest) = take_whole(basic, SEQUENCE)?;
        if object != BASIC {
            return None;
        }
        let signature = Signature::read(rest)?;
        let (_, rest) = take(rest, SEQUENCE)?;
        let (_, _, rest) = any(rest)?;
        let mut certificates = Vec::new();
        if let Some((list, _)) = take(rest, TAG_0) {
            let (mut list, _) = take(list, SEQUENCE)?;
            while !list.is_empty() {
                let (certificate, rest) = take_whole(list, SEQUENCE)?;
                certificates.push(certificate);
                list = rest;
            }
        }
        let (data, _) = take(signed, SEQUENCE)?;
        let data = skip(data, TAG_0)?;
        let (responder, data) = responder(data)?;
        let (_, data) = take(data, GENERALIZED_TIME)?;
        let (mut list, _) = take(data, SEQUENCE)?;
        let mut responses = Vec::new();
        while !list.is_empty() {
            let (single, rest) = take(list, SEQUENCE)?;
            responses.push(Single::read(single)?);
            list = rest;
        }
        Some(Response {
            signed,
            signature,
            responder,
            responses,
            certificates,
        })
    }
}

fn responder(data: &[u8]) -> Option<(Responder<'_>, &[u8])> {
    if let Some((name, rest)) = take(data, TAG_1) {
        let (name, _) = take(name, SEQUENCE)?;
        return Some((Responder::Name(Name::of(name)), rest));
    }
    let (key, rest) = take(data, TAG_2)?;
    let (key, _) = take(key, OCTET_STRING)?;
    Some((Responder::Key(key), rest))
}

impl Single {
    fn read(content: &[u8]) -> Option<Single> {
        let (id, rest) = take(content, SEQUENCE)?;
        let id = CertificateId::read(id)?;
        let (tag, _, rest) = any(rest)?;
        let state = match tag {
            GOOD => State::Good,
            TAG_1 => State::Revoked,
            UNKNOWN => State::Unknown,
            _ => return None,
        };
        let (this_update_s, rest) = time(rest)?;
        let next_update_s = match take(rest, TAG_0) {
            Some((next, _)) => Some(time(next)?.0),
            None => None,
        };
        Some(Single {
            id,
            state,
            this_update_s,
            next_update_s,
        })
    }
}

impl Responder<'_> {
    /// Whether a certificate is the responder's; `key` is SHA-1 of the bits of the certificate's
    /// key.
    pub fn is(&self, certificate: &Certificate<'_>, key: &[u8; SHA1_BYTES]) -> bool {
        match self {
            Responder::Name(name) => *name == certificate.subject,
            Responder::Key(own) => *own == key,
        }
    }
}

#[cfg(test)]
mod tests;
