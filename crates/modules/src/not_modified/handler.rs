//! What this family does with a request.

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::response::{Body, Response};
use turnpike_wire::date;
use turnpike_wire::h1::Known;

/// Looks at the conditions of a request when its answer is known.
pub(super) struct Conditions;

/// What the conditions make of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Send,
    NotModified,
    PreconditionFailed,
}

impl Filter for Conditions {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        if exchange.response.status != 200 || exchange.response.unconditional {
            return None;
        }
        match judge(exchange) {
            Judgement::Send => None,
            Judgement::PreconditionFailed => {
                exchange.response.fields.clear();
                Some(412)
            }
            Judgement::NotModified => {
                let response = &mut exchange.response;
                response.replace_status(304);
                withhold(response);
                response.ranges_allowed = false;
                response.fields.remove(b"Content-Encoding");
                response.fields.remove(b"Accept-Ranges");
                // A stream is not sent either, and is told so when the head is.
                if !matches!(response.body, Body::Stream(_)) {
                    response.body = Body::Empty;
                }
                response.head_only = true;
                None
            }
        }
    }
}

/// Takes away what a 304 does not say. It is kept aside for those who look at the response
/// later, in buffers that are used again.
fn withhold(response: &mut Response) {
    let withheld = &mut response.withheld;
    withheld.stands = true;
    std::mem::swap(&mut withheld.content_type, &mut response.content_type);
    response.content_type.clear();
    withheld.content_length = response.content_length.take();
    withheld.coding.clear();
    let coding = response.fields.values(b"Content-Encoding").next();
    withheld
        .coding
        .extend_from_slice(coding.unwrap_or_default());
}

fn judge(exchange: &Exchange) -> Judgement {
    let known = |name| exchange.known_field(name);
    let response = &exchange.response;
    let modified = response.last_modified;
    if let Some(since) = known(Known::IfUnmodifiedSince)
        && !is_unmodified(since, modified)
    {
        return Judgement::PreconditionFailed;
    }
    if let Some(list) = known(Known::IfMatch)
        && !matches_tag(list, &response.etag, Comparison::Strong)
    {
        return Judgement::PreconditionFailed;
    }
    let is_other = match (known(Known::IfNoneMatch), known(Known::IfModifiedSince)) {
        (None, None) => true,
        // The date is not looked at then (RFC 9110 section 13.1.3).
        (Some(list), _) => !matches_tag(list, &response.etag, Comparison::Weak),
        (None, Some(since)) => {
            let exact = exchange.location().settings.if_modified_since_exact;
            is_modified(since, modified.or(response.dated), exact)
        }
    };
    match is_other {
        true => Judgement::Send,
        false => Judgement::NotModified,
    }
}

fn is_unmodified(since: &[u8], modified: Option<i64>) -> bool {
    // A date that cannot be read lies before every change, as in nginx.
    modified.is_some_and(|modified| date::parse(since).unwrap_or(-1) >= modified)
}

/// `exact` is `if_modified_since`: `None` looks at no date, `Some(true)` only at the very same.
fn is_modified(since: &[u8], modified: Option<i64>, exact: Option<bool>) -> bool {
    let (Some(modified), Some(exact)) = (modified, exact) else {
        return true;
    };
    let since = date::parse(since).unwrap_or(-1);
    since != modified && (exact || since < modified)
}

/// How entity tags are compared (RFC 9110 section 8.8.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Strong,
    Weak,
}

/// Whether a list of entity tags has `etag`, or is `*`. An empty `etag` is none.
pub(super) fn matches_tag(list: &[u8], etag: &[u8], comparison: Comparison) -> bool {
    if list == b"*" {
        return true;
    }
    if etag.is_empty() {
        return false;
    }
    let etag = comparison.compared(etag);
    let mut rest = list;
    while !rest.is_empty() {
        rest = comparison.compared(rest);
        if let Some(after) = rest.strip_prefix(etag)
            && matches!(skip(after, b" \t").first(), None | Some(b','))
        {
            return true;
        }
        let comma = memchr::memchr(b',', rest).unwrap_or(rest.len());
        rest = skip(&rest[comma..], b" \t,");
    }
    false
}

impl Comparison {
    /// The text without the mark of weakness, where that does not count.
    fn compared(self, tag: &[u8]) -> &[u8] {
        match tag.strip_prefix(b"W/") {
            Some(opaque) if self == Self::Weak && !opaque.is_empty() => opaque,
            _ => tag,
        }
    }
}

fn skip<'a>(text: &'a [u8], bytes: &[u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !bytes.contains(byte));
    &text[end.unwrap_or(text.len())..]
}
