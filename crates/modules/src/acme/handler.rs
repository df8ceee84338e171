//! The answer to a challenge over HTTP, and the variables.

use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::response::Body;
use turnpike_http::variables::Evaluate;

use super::certificate::Certificate;
use super::challenges;
use crate::common::by_location::ByLocation;

/// Answers requests of an authority for tokens. All other requests go on, also those for unknown
/// tokens: another program may answer them.
pub(super) struct Answer;

impl Handler for Answer {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let path = exchange.walk.path();
        if !path.starts_with(challenges::HTTP_PATH) || !exchange.is_get_or_head() {
            return Verdict::Declined;
        }
        let Some(authorization) = challenges::http_answer(path) else {
            return Verdict::Declined;
        };
        let response = &mut exchange.response;
        response.set_status(200);
        response.set_content_type(b"text/plain");
        response.set_content_length(Some(authorization.len() as u64));
        response.set_body(Body::Shared(authorization.into()));
        Verdict::Respond
    }
}

/// `$acme_certificate` and `$acme_certificate_key`: PEM behind `data:`, as `ssl_certificate` has
/// it.
pub(super) struct Value {
    pub(super) certificates: ByLocation<Arc<Certificate>>,
    pub(super) part: Part,
}

/// The part of a certificate that a variable has.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Chain,
    Key,
}

impl Evaluate<Exchange> for Value {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        let certificate = self.certificates.of(exchange);
        let Some(issued) = certificate.and_then(|certificate| certificate.issued()) else {
            return false;
        };
        out.extend_from_slice(b"data:");
        out.extend_from_slice(match self.part {
            Part::Chain => issued.chain_pem.as_bytes(),
            Part::Key => issued.key_pem.as_bytes(),
        });
        true
    }
}
