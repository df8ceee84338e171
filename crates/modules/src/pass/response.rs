//! What an upstream server answered becomes the exchange's response: fields are hidden, rewritten,
//! or taken as meant for us.

use std::sync::Arc;

use turnpike_conf::value;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Verdict;
use turnpike_http::response::{CharsetConversion, OmittedFields, Response};
use turnpike_http::sending::Sending;
use turnpike_wire::date;
use turnpike_wire::message::{Entry, Head, Known, Method, Version};

use super::ignored::Ignored;
use super::names::Names;
use super::origin::Origin;
use super::settings::Passing;
use crate::common::internal_target::InternalTarget;

/// What a location says of servers' responses: which fields are hidden and rewritten.
pub(crate) struct ResponseRules {
    pub(crate) origin: Arc<dyn Origin>,
    /// Fields of responses that the client does not see.
    pub(crate) hidden: Names,
    /// Fields of responses that are not meant for us.
    pub(crate) ignored: Ignored,
    /// Whether ranges of a response are served though the server does not offer them.
    pub(crate) forces_ranges: bool,
}

impl ResponseRules {
    /// Makes the exchange's response of a head that a server sent now, or before: everything but
    /// the body.
    pub(crate) fn put_head(&self, exchange: &mut Exchange, head: &Head) {
        put_head(exchange, self, head);
    }
}

/// Makes the exchange's response of the upstream head: everything but the body.
pub(crate) fn take_head(exchange: &mut Exchange, rules: &Passing) {
    let head = std::mem::take(exchange.upstream.head_mut());
    put_head(exchange, &rules.responses, &head);
    *exchange.upstream.head_mut() = head;
}

fn put_head(exchange: &mut Exchange, rules: &ResponseRules, head: &Head) {
    let response = &mut exchange.response;
    response.set_status(head.status);
    response.reason_mut().clear();
    response.reason_mut().extend_from_slice(head.reason());
    response.set_content_length(head.content_length());
    response.set_unconditional(true);
    let shown = |known: Known, name: &[u8]| {
        let sent = rules.origin.is_proxied() || head.known(known).is_some();
        sent && !rules.hidden.has(known, name)
    };
    response.set_omitted_fields(OmittedFields {
        server: shown(Known::Server, b"Server"),
        date: shown(Known::Date, b"Date"),
    });
    response.set_ranges_allowed(rules.forces_ranges);
    let mut seen = 0;
    for entry in head.fields.entries() {
        let own = head.is_connection_option(entry.name);
        if own || rules.hidden.has(entry.known, entry.name) {
            continue;
        }
        match entry.known {
            // A tunnel and the connection to the client say this themselves.
            Known::Upgrade if head.status == 101 => {}
            Known::Upgrade if head.connection.upgrade => {
                let version = exchange.request().head().version;
                offer_upgrade(version, &mut exchange.response, entry.value);
            }
            _ => pass_field(exchange, rules, entry, &mut seen),
        }
    }
    if rules.origin.is_typed_by_path() {
        exchange.choose_content_type();
    }
    charset(&mut exchange.response, rules, head);
    if rules.origin.names_via() {
        let mut value = exchange.lane.take_scratch();
        rules.origin.write_via(head.version, &mut value);
        exchange.response.fields_mut().add(b"Via", &value);
        exchange.lane.keep_scratch(value);
    }
}

/// Whether the response may be sent as it comes: `X-Accel-Buffering`.
pub(crate) fn reads_ahead(exchange: &Exchange, passing: &Passing) -> bool {
    match exchange.upstream.head().known(Known::XAccelBuffering) {
        Some(_) if passing.responses.ignored.buffering => passing.buffers.ahead,
        Some(text) if text.eq_ignore_ascii_case(b"no") => false,
        Some(text) if text.eq_ignore_ascii_case(b"yes") => true,
        _ => passing.buffers.ahead,
    }
}

/// Copies one field. Of those that a response has once, the first counts.
fn pass_field(exchange: &mut Exchange, rules: &ResponseRules, entry: Entry<'_>, seen: &mut u64) {
    let Entry { known, name, value } = entry;
    let bit = 1 << known as u64;
    let again = *seen & bit != 0;
    let response = &mut exchange.response;
    match known {
        // These are of the connection between us.
        Known::ContentLength
        | Known::Connection
        | Known::KeepAlive
        | Known::ProxyConnection
        | Known::Te
        | Known::TransferEncoding
        | Known::Upgrade => return,
        Known::ContentType
        | Known::LastModified
        | Known::Etag
        | Known::Location
        | Known::Refresh
        | Known::Date
        | Known::Server
        | Known::Expires
            if again =>
        {
            return;
        }
        Known::AcceptRanges if rules.forces_ranges => return,
        Known::ContentType => response.set_content_type(value),
        Known::Etag => {
            response.places_mut().etag = response.next_place();
            response.etag_mut().clear();
            response.etag_mut().extend_from_slice(value);
        }
        Known::LastModified => {
            // What is no date in the usual form (RFC 9110 section 5.6.7) is sent as it is written.
            match date::parse(value).filter(|_| is_usual_date(value)) {
                Some(seconds) => {
                    response.places_mut().last_modified = response.next_place();
                    response.set_last_modified(Some(seconds));
                }
                None => response.fields_mut().add(name, value),
            }
        }
        Known::Location => rewrite_redirect(exchange, rules, name, value, 0),
        Known::Refresh => match find_url(value) {
            Some(start) => rewrite_redirect(exchange, rules, name, value, start),
            None => response.fields_mut().add(name, value),
        },
        Known::SetCookie => {
            let mut cookie = exchange.lane.take_scratch();
            cookie.extend_from_slice(value);
            rules.origin.rewrite_cookie(exchange, &mut cookie);
            exchange.response.fields_mut().add(name, &cookie);
            exchange.lane.keep_scratch(cookie);
        }
        _ => response.fields_mut().add(name, value),
    }
    *seen |= bit & !1;
}

/// Passes on that the server would speak another protocol: a 426 says nothing without it (RFC 9110
/// section 15.5.22). It is named in a `Connection` of our own (section 7.8), and only HTTP/1.1 has
/// it.
fn offer_upgrade(version: Version, response: &mut Response, protocols: &[u8]) {
    if version == Version::Http11 {
        let fields = response.fields_mut();
        fields.add(b"Connection", b"upgrade");
        fields.add(b"Upgrade", protocols);
    }
}

/// Whether a value that is a date has the form in which we write dates.
fn is_usual_date(value: &[u8]) -> bool {
    value.len() == 29 && value.get(3) == Some(&b',') && value.ends_with(b" GMT")
}

fn rewrite_redirect(
    exchange: &mut Exchange,
    rules: &ResponseRules,
    name: &[u8],
    value: &[u8],
    kept: usize,
) {
    let mut text = exchange.lane.take_scratch();
    text.extend_from_slice(value);
    rules.origin.rewrite_redirect(exchange, kept, &mut text);
    if name.eq_ignore_ascii_case(b"Location") {
        let rewritten = text != value;
        if rewritten {
            // A path is made absolute when it is sent, as nginx does it.
            exchange.response.places_mut().location = exchange.response.next_place();
            exchange.response.location_mut().clear();
            exchange.response.location_mut().extend_from_slice(&text);
        } else {
            exchange.response.fields_mut().add(name, &text);
        }
    } else {
        exchange.response.fields_mut().add(name, &text);
    }
    exchange.lane.keep_scratch(text);
}

/// Where the URL of a `Refresh` value begins.
fn find_url(value: &[u8]) -> Option<usize> {
    let lower = value.to_ascii_lowercase();
    memchr::memmem::find(&lower, b"url=").map(|at| at + 4)
}

/// `X-Accel-Limit-Rate`: it holds for an answer from elsewhere (`X-Accel-Redirect`) too.
pub(crate) fn take_limit_rate(sending: &mut Sending, head: &Head, passing: &Passing) {
    let value = head.known(Known::XAccelLimitRate);
    let Some(value) = value.filter(|_| !passing.responses.ignored.limit_rate) else {
        return;
    };
    let text = std::str::from_utf8(value).ok();
    if let Some(rate) = text.and_then(value::size) {
        sending.set_limit_rate(rate);
    }
}

/// `X-Accel-Charset`.
fn charset(response: &mut Response, rules: &ResponseRules, head: &Head) {
    let value = head.known(Known::XAccelCharset);
    let Some(value) = value.filter(|_| !rules.ignored.charset) else {
        return;
    };
    let kind = response.content_type_mut();
    if memchr::memmem::find(kind, b"charset=").is_some() {
        response.set_charset_conversion(CharsetConversion::Instead(value.to_vec()));
    } else if kind.starts_with(b"text/") {
        kind.extend_from_slice(b"; charset=");
        kind.extend_from_slice(value);
        response.set_charset_conversion(CharsetConversion::Named);
    }
}

/// `X-Accel-Redirect`: the verdict that goes there. Some fields of the response go along.
pub(crate) fn accelerated_redirect(exchange: &mut Exchange, passing: &Passing) -> Option<Verdict> {
    if passing.responses.ignored.redirect {
        return None;
    }
    let target = exchange.upstream.head().known(Known::XAccelRedirect)?;
    let target = target.to_vec();
    let head = std::mem::take(exchange.upstream.head_mut());
    let mut seen = 0;
    exchange.response.clear();
    for entry in head.fields.entries() {
        let goes_along = matches!(
            entry.known,
            Known::ContentType
                | Known::SetCookie
                | Known::CacheControl
                | Known::Expires
                | Known::AcceptRanges
        ) || entry.name.eq_ignore_ascii_case(b"Content-Disposition");
        if goes_along {
            pass_field(exchange, &passing.responses, entry, &mut seen);
        }
    }
    *exchange.upstream.head_mut() = head;
    Some(go_to(exchange, &target))
}

fn go_to(exchange: &mut Exchange, target: &[u8]) -> Verdict {
    let Some(target) = InternalTarget::parse_untrusted(exchange, target) else {
        return Verdict::Status(404);
    };
    let is_path = matches!(target, InternalTarget::Path { .. });
    if is_path && exchange.method() != Method::Head {
        exchange.walk.ask_with(Method::Get);
    }
    target.redirect(&mut exchange.walk)
}

/// `..._intercept_errors`: the status that a page of ours answers for. `WWW-Authenticate` and
/// `Allow` are kept, since a 401 and a 405 say nothing without them.
pub(crate) fn intercepted(exchange: &mut Exchange, passing: &Passing) -> Option<u16> {
    let status = exchange.upstream.head().status;
    if !passing.origin.answers_for(status) {
        return Some(status);
    }
    if status < 300 || !passing.intercepts_errors {
        return None;
    }
    let pages = &exchange.location().settings.error_pages;
    if !pages.iter().any(|page| page.statuses.contains(&status)) {
        return None;
    }
    if matches!(status, 401 | 405) {
        let kept: &[u8] = match status {
            401 => b"WWW-Authenticate",
            _ => b"Allow",
        };
        let Exchange {
            upstream, response, ..
        } = exchange;
        for (name, value) in upstream.head().fields.iter() {
            if name.eq_ignore_ascii_case(kept) {
                response.fields_mut().add(name, value);
            }
        }
    }
    Some(status)
}
