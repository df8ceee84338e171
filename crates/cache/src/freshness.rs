//! Whether a response may be stored, and how long it is fresh (RFC 9111 sections 3 and 4.2), as
//! pure functions of heads and times; they read no clock.
//!
//! [`Rules`] holds the effects of nginx's directives (`X-Accel-Expires`, `proxy_cache_valid`,
//! `proxy_ignore_headers`).

use turnpike_wire::date;
use turnpike_wire::message::Head;

use crate::control::{CacheControl, Scope, delta_seconds};
use crate::partial::Part;
use crate::why::WhyNotStored;

/// Statuses whose caching rules are known (RFC 9110 section 15.1, and others with an explicit
/// time).
const UNDERSTOOD: &[u16] = &[
    200, 203, 204, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 411,
    412, 413, 414, 415, 417, 421, 429, 451, 500, 501, 502, 503, 504, 505,
];

/// Statuses whose responses may be considered fresh without an explicit time (RFC 9110 section
/// 15.1).
const HEURISTICALLY_CACHEABLE: &[u16] =
    &[200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501];

/// The lifetime of a response without an explicit one that has a Last-Modified date (RFC 9111
/// section 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// The share of the time since its last change, in parts per million.
    pub fraction_ppm: u32,
    /// The maximum, in seconds.
    pub seconds_max: u64,
}

/// The configuration's rules for storing.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Whether to ignore `X-Accel-Expires`.
    pub ignore_accel_expires: bool,
    /// Whether to ignore `Expires`.
    pub ignore_expires: bool,
    /// Whether to ignore `Cache-Control` and its targeted form, `CDN-Cache-Control`.
    pub ignore_cache_control: bool,
    /// Whether to ignore `CDN-Cache-Control`.
    pub ignore_cdn_cache_control: bool,
    /// Whether to store a response despite `Set-Cookie`.
    pub ignore_set_cookie: bool,
    /// Whether to ignore `Vary`.
    pub ignore_vary: bool,
    /// Lifetimes of responses without an explicit one, in order: status (0: any) and seconds.
    pub valid: Vec<(u16, u64)>,
    /// The heuristic, which precedes `valid` for a response with a Last-Modified date.
    pub heuristic: Option<Heuristic>,
}

/// The properties of the request that affect storing.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFacts {
    /// The request had an Authorization field.
    pub authorized: bool,
    /// The request has `no-store`, and the configuration obeys it.
    pub no_store: bool,
    /// Whether the method's responses need an explicit lifetime to be stored (RFC 9110 section
    /// 9.3.3).
    pub explicit_only: bool,
    /// The time of sending, in Unix milliseconds.
    pub sent_ms: u64,
    /// The arrival of the response's head, in Unix milliseconds.
    pub received_ms: u64,
}

/// Whether a response may be used when it is stale (RFC 9111 section 4.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// If the configuration allows it.
    Allowed,
    /// Only if the response itself allows it (RFC 5861): `s-maxage` counts as `proxy-revalidate`.
    OnlyByOrigin,
    /// Never without validation: `must-revalidate`, `proxy-revalidate`, `no-cache`.
    Never,
}

/// The age of a response, and the times of its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The arrival, in Unix milliseconds.
    pub received_ms: u64,
    /// The age at arrival, in milliseconds (section 4.2.3).
    pub initial_age_ms: u64,
    /// The end of its freshness, in Unix milliseconds.
    pub fresh_until_ms: u64,
    /// The time after that in which it may be used while it is revalidated, in milliseconds.
    pub while_revalidating_ms: u64,
    /// The time after that in which it may be used if revalidation fails, in milliseconds.
    pub if_error_ms: u64,
    /// Whether it may be used when it is stale.
    pub staleness: Staleness,
}

/// The source of a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifetime {
    /// Fresh until this time, whatever its age: from nginx's own field, or the configuration.
    Until(u64),
    /// This many seconds, less its age (section 4.2.1).
    Seconds(u64),
    /// Stale on arrival.
    None,
}

impl Timing {
    /// Whether it is fresh (section 4.2).
    pub fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms < self.fresh_until_ms
    }

    /// The time of its creation, in Unix milliseconds, as far as known.
    pub fn made_ms(&self) -> u64 {
        self.received_ms.saturating_sub(self.initial_age_ms)
    }

    /// The age in seconds, for the Age field (sections 4.2.3 and 5.1).
    pub fn age_s(&self, now_ms: u64) -> u64 {
        let resident_ms = now_ms.saturating_sub(self.received_ms);
        self.initial_age_ms.saturating_add(resident_ms) / 1000
    }

    /// The time from which on [`Timing::age_s`] is another one than now, in Unix milliseconds.
    pub fn age_changes_ms(&self, now_ms: u64) -> u64 {
        let resident_ms = now_ms.saturating_sub(self.received_ms);
        let age_ms = self.initial_age_ms.saturating_add(resident_ms);
        now_ms.saturating_add(1000 - age_ms % 1000)
    }

    /// The remaining freshness in seconds; negative if it is stale.
    pub fn fresh_for_s(&self, now_ms: u64) -> i64 {
        let (until, now) = (i128::from(self.fresh_until_ms), i128::from(now_ms));
        (until - now).div_euclid(1000) as i64
    }

    /// Whether the response may be used while it is revalidated (RFC 5861 section 3).
    pub fn may_serve_while_revalidating(&self, now_ms: u64) -> bool {
        self.staleness != Staleness::Never
            && self.while_revalidating_ms > 0
            && now_ms
                < self
                    .fresh_until_ms
                    .saturating_add(self.while_revalidating_ms)
    }

    /// Whether the response may be used if revalidation fails (RFC 5861 section 4).
    pub fn may_serve_if_error(&self, now_ms: u64) -> bool {
        self.staleness != Staleness::Never
            && self.if_error_ms > 0
            && now_ms < self.fresh_until_ms.saturating_add(self.if_error_ms)
    }

    /// Whether the configuration may allow stale use (section 4.2.4).
    pub fn configuration_may_serve_stale(&self) -> bool {
        self.staleness == Staleness::Allowed
    }
}

/// Whether a shared cache may store a response, and how long it is fresh.
///
/// # Errors
/// The reason why not.
pub fn judge(asked: &RequestFacts, head: &Head, rules: &Rules) -> Result<Timing, WhyNotStored> {
    match head.status {
        206 if Part::of(head).is_none() => return Err(WhyNotStored::Partial),
        304 | 0..200 => return Err(WhyNotStored::Status),
        _ => {}
    }
    if asked.no_store {
        return Err(WhyNotStored::RequestNoStore);
    }
    let (control, is_targeted) = control_of(head, rules);
    let accel = if rules.ignore_accel_expires {
        None
    } else {
        accel_expires(head, asked.received_ms)?
    };
    if control.malformed {
        return Err(WhyNotStored::Malformed);
    }
    if accel.is_none() {
        forbidden(&control, head.status)?;
        may_be_shared(&control, asked)?;
    }
    if !rules.ignore_set_cookie && sets_cookie(head, &control) {
        return Err(WhyNotStored::SetCookie);
    }
    let lifetime = match accel {
        Some(until_ms) => Lifetime::Until(until_ms),
        None => lifetime(&control, is_targeted, head, rules, asked)?,
    };
    timing(&control, accel.is_some(), lifetime, head, asked)
}

/// The response's directives for this cache, and whether they come from CDN-Cache-Control, which
/// overrides Cache-Control and Expires (RFC 9213 section 2.2).
fn control_of(head: &Head, rules: &Rules) -> (CacheControl, bool) {
    if rules.ignore_cache_control {
        return (CacheControl::default(), false);
    }
    if !rules.ignore_cdn_cache_control
        && let Some(targeted) = CacheControl::parse_targeted(head.values(b"cdn-cache-control"))
    {
        return (targeted, true);
    }
    (CacheControl::parse(head.values(b"cache-control")), false)
}

/// Whether a response may replace an error status of the server (RFC 5861 section 4). As in nginx,
/// a 500 is passed on: its cause is often in the request.
pub fn may_replace_status(head: &Head, timing: &Timing, rules: &Rules, status: u16) -> bool {
    matches!(status, 502..=504)
        && control_of(head, rules).0.stale_if_error.is_some()
        && timing.staleness != Staleness::Never
}

/// Removes fields that must not be reused without validation, or by other clients; the rest is
/// stored (`no-cache="..."`, section 5.2.2.4; `private="..."`, section 5.2.2.7).
pub fn remove_withheld(head: &mut Head, rules: &Rules) {
    let (control, _) = control_of(head, rules);
    for scope in [control.no_cache, control.private] {
        if let Scope::Fields(names) = scope {
            head.fields
                .retain(|entry| !names.contains(&entry.name.to_ascii_lowercase()));
        }
    }
}

/// nginx's field: seconds, or `@` and Unix seconds; 0 forbids storing. Malformed ones are ignored.
fn accel_expires(head: &Head, received_ms: u64) -> Result<Option<u64>, WhyNotStored> {
    let Some(value) = head.value(b"x-accel-expires") else {
        return Ok(None);
    };
    if let Some(at) = value.strip_prefix(b"@") {
        return Ok(delta_seconds_long(at).map(|seconds| seconds.saturating_mul(1000)));
    }
    match delta_seconds(value) {
        Some(0) => Err(WhyNotStored::AccelExpires),
        Some(seconds) => Ok(Some(received_ms.saturating_add(seconds * 1000))),
        None => Ok(None),
    }
}

/// A point in time may exceed 2^31.
fn delta_seconds_long(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `no-store`, `private`, `no-cache` (sections 3 and 5.2.2).
fn forbidden(control: &CacheControl, status: u16) -> Result<(), WhyNotStored> {
    let understood = UNDERSTOOD.contains(&status);
    if control.must_understand && !understood {
        return Err(WhyNotStored::NotUnderstood);
    }
    if control.no_store && !(control.must_understand && understood) {
        return Err(WhyNotStored::NoStore);
    }
    if control.private == Scope::Whole {
        return Err(WhyNotStored::Private);
    }
    // It could be stored and always validated; nginx does not, and it rarely helps.
    if control.no_cache == Scope::Whole {
        return Err(WhyNotStored::NoCache);
    }
    Ok(())
}

/// The response to an authorized request may be shared only if it allows that (section 3.5).
fn may_be_shared(control: &CacheControl, asked: &RequestFacts) -> Result<(), WhyNotStored> {
    let says_so = control.public || control.must_revalidate || control.s_maxage.is_some();
    if asked.authorized && !says_so {
        Err(WhyNotStored::Authorization)
    } else {
        Ok(())
    }
}

/// A cookie belongs to one client, unless the response excludes it from storing.
fn sets_cookie(head: &Head, control: &CacheControl) -> bool {
    let withheld = |scope: &Scope| match scope {
        Scope::Fields(names) => names.iter().any(|name| name == b"set-cookie"),
        _ => false,
    };
    head.value(b"set-cookie").is_some()
        && !withheld(&control.no_cache)
        && !withheld(&control.private)
}

/// The lifetime by section 4.2.1, then by the configuration.
fn lifetime(
    control: &CacheControl,
    is_targeted: bool,
    head: &Head,
    rules: &Rules,
    asked: &RequestFacts,
) -> Result<Lifetime, WhyNotStored> {
    if let Some(seconds) = control.s_maxage.or(control.max_age) {
        return Ok(Lifetime::Seconds(seconds));
    }
    let received_s = (asked.received_ms / 1000) as i64;
    let date = head.value(b"date").and_then(date::parse);
    let date = date.unwrap_or(received_s);
    if !rules.ignore_expires
        && !is_targeted
        && let Some(expires) = head.value(b"expires")
    {
        // A malformed date, usually "0", is in the past (section 5.3).
        let Some(expires) = date::parse(expires).filter(|_| is_in_gmt(expires)) else {
            return Ok(Lifetime::None);
        };
        return Ok(match u64::try_from(expires.saturating_sub(date)) {
            Ok(seconds) if seconds > 0 => Lifetime::Seconds(seconds),
            _ => Lifetime::None,
        });
    }
    if asked.explicit_only {
        return Err(WhyNotStored::NoFreshness);
    }
    if let Some(seconds) = heuristic_s(control, head, rules, date) {
        return Ok(Lifetime::Seconds(seconds));
    }
    let mut rules = rules.valid.iter();
    match rules.find(|(status, _)| *status == 0 || *status == head.status) {
        Some((_, seconds)) if *seconds > 0 => Ok(Lifetime::Until(
            asked
                .received_ms
                .saturating_add(seconds.saturating_mul(1000)),
        )),
        _ => Err(WhyNotStored::NoFreshness),
    }
}

/// The share of the time since the last change, by section 4.2.2; `None` if it does not apply.
fn heuristic_s(control: &CacheControl, head: &Head, rules: &Rules, date: i64) -> Option<u64> {
    let heuristic = rules.heuristic?;
    if !HEURISTICALLY_CACHEABLE.contains(&head.status) && !control.public {
        return None;
    }
    let modified = head.value(b"last-modified").and_then(date::parse)?;
    let since_s = u64::try_from(date.saturating_sub(modified)).ok()?;
    let share_s = u128::from(since_s) * u128::from(heuristic.fraction_ppm) / 1_000_000;
    let seconds = u64::try_from(share_s).ok()?.min(heuristic.seconds_max);
    (seconds > 0).then_some(seconds)
}

/// Whether a date is in GMT, the zone of HTTP's dates (section 4.2); asctime's form has no zone.
fn is_in_gmt(date: &[u8]) -> bool {
    let zone = date.len().checked_sub(4).and_then(|at| date.get(at..));
    !date.contains(&b',') || zone.is_some_and(|zone| zone.eq_ignore_ascii_case(b" GMT"))
}

fn timing(
    control: &CacheControl,
    by_accel: bool,
    lifetime: Lifetime,
    head: &Head,
    asked: &RequestFacts,
) -> Result<Timing, WhyNotStored> {
    let initial_age_ms = initial_age_ms(head, asked);
    let fresh_until_ms = match lifetime {
        Lifetime::Until(until_ms) => until_ms,
        Lifetime::Seconds(seconds) => asked
            .received_ms
            .saturating_add(seconds.saturating_mul(1000))
            .saturating_sub(initial_age_ms),
        Lifetime::None => 0,
    };
    let revalidating_s = control.stale_while_revalidate.unwrap_or(0);
    // nginx's rule: a response that may be used during revalidation may also be used if that fails.
    let error_s = control.stale_if_error.unwrap_or(revalidating_s);
    let staleness = if by_accel {
        Staleness::Allowed
    } else if control.must_revalidate || control.proxy_revalidate {
        Staleness::Never
    } else if control.s_maxage.is_some() {
        Staleness::OnlyByOrigin
    } else {
        Staleness::Allowed
    };
    let is_of_use = fresh_until_ms > asked.received_ms || revalidating_s > 0 || error_s > 0;
    if !is_of_use && !by_accel {
        return Err(WhyNotStored::Expired);
    }
    Ok(Timing {
        received_ms: asked.received_ms,
        initial_age_ms,
        fresh_until_ms,
        while_revalidating_ms: revalidating_s.saturating_mul(1000),
        if_error_ms: error_s.saturating_mul(1000),
        staleness,
    })
}

/// The age by section 4.2.3. A date only has whole seconds: the response may have been created at
/// the end of its second.
fn initial_age_ms(head: &Head, asked: &RequestFacts) -> u64 {
    const SECOND_MS: u64 = 1000;
    let date = head.value(b"date").and_then(date::parse);
    let apparent_ms = date
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(0, |seconds| {
            let latest_ms = seconds.saturating_mul(SECOND_MS) + (SECOND_MS - 1);
            asked.received_ms.saturating_sub(latest_ms)
        });
    // A malformed Age is ignored, and the first of several counts (section 5.1).
    let age_s = head.value(b"age").and_then(first_of_list).unwrap_or(0);
    let delay_ms = asked.received_ms.saturating_sub(asked.sent_ms);
    apparent_ms.max(age_s * SECOND_MS + delay_ms)
}

fn first_of_list(value: &[u8]) -> Option<u64> {
    let first = value.split(|byte| *byte == b',').next()?;
    delta_seconds(first.trim_ascii())
}
