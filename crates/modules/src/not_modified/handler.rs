//! What this family does with a request.

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::response::Body;
use turnpike_wire::date;
use turnpike_wire::message::{Known, Method};

use crate::common::conditions::{Comparison, is_unmodified, matches_tag};

/// Looks at the conditions of a request when its answer is known.
pub(super) struct Conditions {
    /// `if_modified_since`: `None` off, `Some(true)` exact.
    pub(super) exact: Option<bool>,
}

/// What the conditions make of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Send,
    NotModified,
    PreconditionFailed,
}

impl Filter for Conditions {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        if exchange.response.status() != 200 || exchange.response.is_unconditional() {
            return None;
        }
        match judge(exchange, self.exact) {
            Judgement::Send => None,
            Judgement::PreconditionFailed => {
                exchange.response.fields_mut().clear();
                Some(412)
            }
            Judgement::NotModified => {
                let response = &mut exchange.response;
                response.replace_status(304);
                response.withhold();
                response.set_ranges_allowed(false);
                response.fields_mut().remove(b"Content-Encoding");
                response.fields_mut().remove(b"Accept-Ranges");
                // A stream is not sent either; it is ended when the head is sent.
                if !matches!(response.body(), Body::Stream(_)) {
                    response.set_body(Body::Empty);
                }
                response.set_head_only(true);
                None
            }
        }
    }

    fn is_same_for_all(&self) -> bool {
        true
    }
}

/// Judges in the order of RFC 9110 section 13.2.2.
fn judge(exchange: &Exchange, exact: Option<bool>) -> Judgement {
    let known = |name| exchange.known_field(name);
    let response = &exchange.response;
    let modified = response.last_modified();
    let method = exchange.method();
    // These select no representation that a condition could be about (section 13.2.1).
    if matches!(method, Method::Options | Method::Trace | Method::Connect) {
        return Judgement::Send;
    }
    let holds = match (known(Known::IfMatch), known(Known::IfUnmodifiedSince)) {
        (None, None) => true,
        // The date is not looked at then (section 13.1.4).
        (Some(list), _) => matches_tag(list, response.etag(), Comparison::Strong),
        (None, Some(since)) => is_unmodified(since, modified),
    };
    if !holds {
        return Judgement::PreconditionFailed;
    }
    let is_read = matches!(method, Method::Get | Method::Head);
    let is_other = match (known(Known::IfNoneMatch), known(Known::IfModifiedSince)) {
        // The date is not looked at then (section 13.1.3).
        (Some(list), _) => !matches_tag(list, response.etag(), Comparison::Weak),
        (None, Some(since)) if is_read => is_modified(since, modified.or(response.dated()), exact),
        (None, _) => true,
    };
    match is_other {
        true => Judgement::Send,
        false if is_read => Judgement::NotModified,
        false => Judgement::PreconditionFailed,
    }
}

/// `exact` is `if_modified_since`: `None` looks at no date, `Some(true)` only at the very same.
fn is_modified(since: &[u8], modified: Option<i64>, exact: Option<bool>) -> bool {
    let (Some(modified), Some(exact)) = (modified, exact) else {
        return true;
    };
    let Some(since) = date::parse_alone(since) else {
        return true;
    };
    since != modified && (exact || since < modified)
}
