//! Questions to OCSP responders, and what their answers say (RFC 6960): for stapling, and for
//! certificates of clients.
//!
//! A responder that does not answer, or whose answer cannot be trusted, is an error; nothing here
//! takes the lack of an answer for a good one.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use bytes::Bytes;
use http::Request;
use turnpike_conf::{ConfError, View};
use turnpike_http::base64;
use turnpike_lane::trust;
use turnpike_plan::builder::Builder;
use turnpike_upstream::{TlsConnector, TlsSettings};
use turnpike_wire::certificate::Certificate;
use turnpike_wire::ocsp::{CertificateId, Refusal, Response, SHA1_BYTES, State};

use crate::common::own_request::Outlet;
use crate::upstream;

/// By how much clocks may differ, in seconds; nginx's number.
pub(super) const CLOCK_SLACK_S: u64 = 300;

/// What the addresses of responders begin with. Answers are signed, so TLS would prove nothing.
pub(super) const URL_START: &str = "http://";

/// A certificate whose state is asked for.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) id: CertificateId,
    /// The certificate of the issuer, in DER.
    issuer: Box<[u8]>,
}

/// The state of a certificate, as a responder says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) state: State,
    /// Until when the responder says so, in Unix seconds; `None`: newer information is there at
    /// any time.
    pub(super) until_s: Option<u64>,
}

/// The signers whose answers are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signers {
    /// The certificate's issuer, and responders that it has appointed.
    Issuer,
    /// The holder of any certificate in the answer, too.
    Anyone,
}

/// What reaches responders by the `resolver` in force.
///
/// # Errors
/// The resolver's words are wrong, or TLS cannot be set up.
pub(super) fn outlet<S>(view: View<'_>, builder: &mut Builder<'_, S>) -> Result<Outlet, ConfError> {
    let connector = TlsConnector::new(&TlsSettings::default());
    let connector = connector.map_err(|error| view.error(view.span(), error.to_string()))?;
    Ok(Outlet {
        names: upstream::names(view, builder)?,
        connector: connector.into(),
    })
}

impl Question {
    /// The question for a certificate, whose issuer has this one in DER. `None`: the issuer's
    /// cannot be read.
    pub(super) fn new(certificate: &Certificate<'_>, issuer: &[u8]) -> Option<Question> {
        let key = Certificate::read(issuer)?.key;
        Some(Question {
            id: CertificateId {
                issuer_name: sha1(&certificate.issuer.der()),
                issuer_key: sha1(key.bits),
                serial: certificate.serial.to_vec(),
            },
            issuer: issuer.into(),
        })
    }

    /// The certificate of the issuer, in DER.
    pub(super) fn issuer(&self) -> &[u8] {
        &self.issuer
    }

    /// Asks a responder; returns its answer in DER.
    ///
    /// # Errors
    /// What failed, for the log.
    pub(super) async fn ask(&self, outlet: &Outlet, responder: &str) -> Result<Vec<u8>, String> {
        let path = responder.trim_end_matches('/');
        let mut url = format!("{path}/");
        for byte in base64::encode(&self.id.request()).bytes() {
            if byte.is_ascii_alphanumeric() {
                url.push(char::from(byte))
            } else {
                let _ = write!(url, "%{byte:02X}");
            }
        }
        let request = Request::get(url).body(Bytes::new());
        let request = request.map_err(|error| error.to_string())?;
        let answer = outlet.send(&request).await?;
        match answer.head.status {
            200 => Ok(answer.body),
            status => Err(format!("OCSP responder answered with status {status}")),
        }
    }

    /// What an answer says at this time, in Unix seconds.
    ///
    /// # Errors
    /// Why it says nothing that can be trusted, for the log.
    pub(super) fn judge(&self, der: &[u8], by: Signers, now_s: u64) -> Result<Verdict, String> {
        let response = Response::read(der).map_err(|refusal| match refusal {
            Refusal::Malformed => "OCSP response is malformed".to_owned(),
            Refusal::Status(status) => format!("OCSP response not successful ({status})"),
        })?;
        if !self.is_signed(&response, by, now_s) {
            return Err("OCSP response is not signed by a responder of the issuer".to_owned());
        }
        let mut singles = response.responses.iter();
        let single = singles.find(|single| single.id.as_ref() == Some(&self.id));
        let single = single.ok_or("certificate status not found in the OCSP response")?;
        let until_s = single.next_update_s;
        let has_ended =
            until_s.is_some_and(|until_s| until_s.saturating_add(CLOCK_SLACK_S) < now_s);
        if single.this_update_s > now_s.saturating_add(CLOCK_SLACK_S) || has_ended {
            return Err("OCSP response is not valid now".to_owned());
        }
        let state = single.state;
        Ok(Verdict { state, until_s })
    }

    fn is_signed(&self, response: &Response<'_>, by: Signers, now_s: u64) -> bool {
        let Some(issuer) = Certificate::read(&self.issuer) else {
            return false;
        };
        let shown = response.certificates.iter();
        let shown = shown.filter_map(|der| Certificate::read(der));
        let mut signers = shown.chain(std::iter::once(issuer)).filter(|signer| {
            response.responder.is(signer, &sha1(signer.key.bits))
                && trust::is_signed(&signer.key, response.signed, &response.signature)
        });
        match by {
            Signers::Anyone => signers.next().is_some(),
            Signers::Issuer => signers.any(|signer| {
                signer.signed == issuer.signed || is_appointed(&signer, &issuer, now_s)
            }),
        }
    }
}

/// Whether a certificate is that of a responder which the issuer has appointed (RFC 6960 section
/// 4.2.2.2).
fn is_appointed(signer: &Certificate<'_>, issuer: &Certificate<'_>, now_s: u64) -> bool {
    signer.issuer == issuer.subject
        && signer.extensions.may_sign_responses()
        && (signer.not_before_s..=signer.not_after_s).contains(&now_s)
        && trust::is_signed(&issuer.key, signer.signed, &signer.signature)
}

fn sha1(bytes: &[u8]) -> [u8; SHA1_BYTES] {
    let mut sum = [0; SHA1_BYTES];
    sum.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref());
    sum
}

#[cfg(test)]
mod tests {
    //! What answers of OpenSSL's are good for.

    use super::{CLOCK_SLACK_S, Certificate, Question, Response, Signers, State};

    const GOOD: &[u8] = include_bytes!("../../../wire/src/ocsp/good.der");
    const REVOKED: &[u8] = include_bytes!("../../../wire/src/ocsp/revoked.der");
    const ISSUER: &[u8] = include_bytes!("../../../wire/src/ocsp/issuer.der");
    const END: &[u8] = include_bytes!("../../../wire/src/ocsp/end.der");

    #[test]
    fn an_answer_is_good_in_its_time_and_with_its_signature() {
        let end = Certificate::read(END).expect("a certificate");
        let question = Question::new(&end, ISSUER).expect("a question");
        let single = Response::read(GOOD).expect("an answer").responses.remove(0);
        let (from_s, until_s) = (single.this_update_s, single.next_update_s);
        let end_s = until_s.expect("an end") + CLOCK_SLACK_S;
        let times = [
            (from_s - CLOCK_SLACK_S - 1, false),
            (from_s - CLOCK_SLACK_S, true),
            (end_s, true),
            (end_s + 1, false),
        ];
        for (now_s, is_good) in times {
            let verdict = question.judge(GOOD, Signers::Issuer, now_s);
            assert_eq!(verdict.is_ok(), is_good, "{now_s}: {verdict:?}");
        }
        let state = |der: &[u8]| {
            question
                .judge(der, Signers::Issuer, from_s)
                .map(|it| it.state)
        };
        assert_eq!(state(GOOD), Ok(State::Good));
        assert_eq!(state(REVOKED), Ok(State::Revoked));
        // The certificate in the answer does not matter; each bit of the signed part does.
        let signed = Response::read(GOOD).expect("an answer").signed;
        let start = GOOD.windows(signed.len()).position(|part| part == signed);
        let start = start.expect("the signed part");
        for at in start..start + signed.len() {
            let mut changed = GOOD.to_vec();
            changed[at] ^= 1;
            assert!(state(&changed).is_err(), "byte {at}");
        }
        let other = Question::new(&Certificate::read(ISSUER).expect("a certificate"), ISSUER);
        let other = other
            .expect("a question")
            .judge(GOOD, Signers::Issuer, from_s);
        assert!(other.is_err_and(|why| why.contains("not found")));
    }
}
