//! Validation (RFC 9111 section 4.3): the conditional request, the effect of a 304, and requests
//! that invalidate stored responses.

use turnpike_wire::date;
use turnpike_wire::message::Head;

use crate::control::CacheControl;
use crate::freshness::Timing;
use crate::head::remove_unstorable;

/// Fields of a 304 that do not replace stored ones: they describe the stored bytes (section 3.2).
const KEPT_FIELDS: &[&[u8]] = &[b"content-length", b"content-encoding", b"content-range"];

/// A stored head after a 304: its fields replaced by those of the same name (section 3.2).
pub fn freshened(stored: &Head, update: &Head) -> Head {
    let mut update = update.clone();
    remove_unstorable(&mut update);
    let is_kept = |name: &[u8]| {
        KEPT_FIELDS
            .iter()
            .any(|kept| name.eq_ignore_ascii_case(kept))
    };
    update.fields.retain(|entry| !is_kept(entry.name));
    let mut head = Head::response(stored.status, stored.reason());
    head.version = stored.version;
    for (name, value) in stored.fields.iter() {
        // Its age is that of the 304, which may have none.
        if update.value(name).is_none() && !name.eq_ignore_ascii_case(b"age") {
            head.fields.add(name, value);
        }
    }
    for (name, value) in update.fields.iter() {
        head.fields.add(name, value);
    }
    head
}

/// Whether a 304 (or the response to HEAD) is about a stored response (section 4.3.4): a validator
/// in it must be the stored one's. Without a validator it is about the response of the request.
pub fn is_about(stored: &Head, update: &Head) -> bool {
    if let Some(tag) = update.value(b"etag") {
        return stored
            .value(b"etag")
            .is_some_and(|own| weak(own) == weak(tag));
    }
    match (
        update.value(b"last-modified"),
        stored.value(b"last-modified"),
    ) {
        (Some(modified), Some(own)) => date::parse(modified) == date::parse(own),
        (Some(_), None) => false,
        (None, _) => true,
    }
}

fn weak(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The effect of the response to a HEAD request on a stored response to GET (section 4.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadVerdict {
    /// The stored response is valid: its fields are updated.
    Update,
    /// The stored response is outdated: it is no longer used without validation.
    Invalidate,
}

/// Compares validators and length of a HEAD response with a stored response's (section 4.3.5).
pub fn judge_head(stored: &Head, head: &Head) -> HeadVerdict {
    let same = |name: &[u8]| match head.value(name) {
        None => true,
        Some(value) => stored.value(name).is_some_and(|own| own == value),
    };
    let is_same = [&b"etag"[..], b"last-modified", b"content-length"]
        .iter()
        .all(|name| same(name));
    if is_same {
        HeadVerdict::Update
    } else {
        HeadVerdict::Invalidate
    }
}

/// Whether a method may change the resource (RFC 9110 section 9.2.1: every method that is not
/// safe).
pub fn is_unsafe(method: &[u8]) -> bool {
    !matches!(
        method,
        b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"QUERY" | b"PROPFIND" | b"SEARCH"
    )
}

/// Whether the response to an unsafe request invalidates the stored one (section 4.4): it must not
/// be an error.
pub fn invalidates(method: &[u8], status: u16) -> bool {
    is_unsafe(method) && matches!(status, 200..400)
}

/// Whether a request whose own Cache-Control is obeyed may be answered with a stored response
/// (section 5.2.1).
pub fn request_allows(control: &CacheControl, timing: &Timing, now_ms: u64) -> bool {
    if control.no_cache != crate::control::Scope::None || control.no_store {
        return false;
    }
    if control
        .max_age
        .is_some_and(|age_s| timing.age_s(now_ms) > age_s)
    {
        return false;
    }
    let fresh_for_ms = timing.fresh_until_ms.saturating_sub(now_ms);
    if control
        .min_fresh
        .is_some_and(|seconds| fresh_for_ms < seconds * 1000)
    {
        return false;
    }
    if timing.is_fresh(now_ms) {
        return true;
    }
    let stale_ms = now_ms - timing.fresh_until_ms;
    timing.configuration_may_serve_stale()
        && control
            .max_stale
            .is_some_and(|seconds| stale_ms <= seconds.saturating_mul(1000))
}
