//! May a response be stored, and how long is it fresh (RFC 9111 sections 3 and 4.2)? Pure
//! functions over heads and times; no clock is read here.
//!
//! Where nginx's directives give their own rules (`X-Accel-Expires`, `proxy_cache_valid`,
//! `proxy_ignore_headers`), these come in as [`Rules`].

use turnpike_wire::date;
use turnpike_wire::message::Head;

use crate::control::{CacheControl, Scope, delta_seconds};
use crate::partial::Part;
use crate::why::WhyNotStored;

/// Statuses whose caching is understood (RFC 9110 section 15.1 and those with an explicit time).
const UNDERSTOOD: &[u16] = &[
    200, 203, 204, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 411,
    412, 413, 414, 415, 417, 421, 429, 451, 500, 501, 502, 503, 504, 505,
];

/// Statuses whose responses may be taken to be fresh for a while without saying so (RFC 9110
/// section 15.1).
const HEURISTICALLY_CACHEABLE: &[u16] =
    &[200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501];

/// How long a response is taken to be fresh that does not say so, but says when it last changed
/// (RFC 9111 section 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// The share of the time since its last change, in millionths.
    pub fraction_ppm: u32,
    /// No longer than this, in seconds.
    pub seconds_max: u64,
}

/// What the configuration says about storing.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// `X-Accel-Expires` is not looked at.
    pub ignore_accel_expires: bool,
    /// `Expires` is not looked at.
    pub ignore_expires: bool,
    /// `Cache-Control` is not looked at, and `CDN-Cache-Control`, which stands for it, is not.
    pub ignore_cache_control: bool,
    /// `CDN-Cache-Control` is not looked at.
    pub ignore_cdn_cache_control: bool,
    /// `Set-Cookie` does not keep a response from being stored.
    pub ignore_set_cookie: bool,
    /// `Vary` is not looked at.
    pub ignore_vary: bool,
    /// Status (0: any) and seconds, in order: how long what does not say so itself is fresh.
    pub valid: Vec<(u16, u64)>,
    /// The heuristic that goes before that where a response says when it last changed.
    pub heuristic: Option<Heuristic>,
}

/// What of the request bears on storing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// The request had an Authorization field.
    pub authorized: bool,
    /// The request said `no-store`, and the configuration honours that.
    pub no_store: bool,
    /// The method is one whose responses are stored only where they say themselves how long they
    /// are fresh (RFC 9110 section 9.3.3).
    pub explicit_only: bool,
    /// When it was sent, in unix milliseconds.
    pub sent_ms: u64,
    /// When the response's head came, in unix milliseconds.
    pub received_ms: u64,
}

/// Whether a response may be used when it is stale (RFC 9111 section 4.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// As the configuration allows.
    Allowed,
    /// Only as the response itself says (RFC 5861): `s-maxage` counts as `proxy-revalidate`.
    OnlyByOrigin,
    /// Never without asking: `must-revalidate`, `proxy-revalidate`, `no-cache`.
    Never,
}

/// How old a response is, and until when it may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When it came, in unix milliseconds.
    pub received_ms: u64,
    /// How old it was then, in milliseconds (section 4.2.3).
    pub initial_age_ms: u64,
    /// Until when it is fresh, in unix milliseconds.
    pub fresh_until_ms: u64,
    /// How long after that it may be used while it is asked for anew, in milliseconds.
    pub while_revalidating_ms: u64,
    /// How long after that it may be used where asking fails, in milliseconds.
    pub if_error_ms: u64,
    /// Whether it may be used at all then.
    pub staleness: Staleness,
}

/// Where a lifetime comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifetime {
    /// Fresh until this time, whatever its age: nginx's own field, or the configuration.
    Until(u64),
    /// So many seconds, less its age (section 4.2.1).
    Seconds(u64),
    /// Stale when it came.
    None,
}

impl Timing {
    /// Whether it is fresh (section 4.2).
    pub fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms < self.fresh_until_ms
    }

    /// When it was made, in unix milliseconds, as far as can be told.
    pub fn made_ms(&self) -> u64 {
        self.received_ms.saturating_sub(self.initial_age_ms)
    }

    /// The age in seconds, for the Age field (sections 4.2.3 and 5.1).
    pub fn age_s(&self, now_ms: u64) -> u64 {
        let resident_ms = now_ms.saturating_sub(self.received_ms);
        self.initial_age_ms.saturating_add(resident_ms) / 1000
    }

    /// How long it is fresh yet, in seconds; less than 0 where it is stale.
    pub fn fresh_for_s(&self, now_ms: u64) -> i64 {
        let (until, now) = (i128::from(self.fresh_until_ms), i128::from(now_ms));
        (until - now).div_euclid(1000) as i64
    }

    /// Whether the response allows to be used while it is asked for anew (RFC 5861 section 3).
    pub fn may_serve_while_revalidating(&self, now_ms: u64) -> bool {
        self.staleness != Staleness::Never
            && self.while_revalidating_ms > 0
            && now_ms
                < self
                    .fresh_until_ms
                    .saturating_add(self.while_revalidating_ms)
    }

    /// Whether the response allows to be used where asking fails (RFC 5861 section 4).
    pub fn may_serve_if_error(&self, now_ms: u64) -> bool {
        self.staleness != Staleness::Never
            && self.if_error_ms > 0
            && now_ms < self.fresh_until_ms.saturating_add(self.if_error_ms)
    }

    /// Whether the configuration may have it used stale (section 4.2.4).
    pub fn configuration_may_serve_stale(&self) -> bool {
        self.staleness == Staleness::Allowed
    }
}

/// Whether a response may be stored by a shared cache, and how long it is fresh.
///
/// # Errors
/// Why it may not.
pub fn judge(asked: &Asked, head: &Head, rules: &Rules) -> Result<Timing, WhyNotStored> {
    match head.status {
        206 if Part::of(head).is_none() => return Err(WhyNotStored::Partial),
        304 | 0..200 => return Err(WhyNotStored::Status),
        _ => {}
    }
    if asked.no_store {
        return Err(WhyNotStored::RequestNoStore);
    }
    let (control, is_targeted) = control_of(head, rules);
    let accel = match rules.ignore_accel_expires {
        true => None,
        false => accel_expires(head, asked.received_ms)?,
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

/// What the response says to this cache, and whether it says so in CDN-Cache-Control, which takes
/// the place of Cache-Control and Expires (RFC 9213 section 2.2).
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

/// Whether a response allows to be used in place of one with a status that says of the server that
/// it cannot do its work now (RFC 5861 section 4). nginx passes a 500 on, and so is it here: what
/// is wrong there is often wrong with the request.
pub fn may_replace_status(head: &Head, timing: &Timing, rules: &Rules, status: u16) -> bool {
    matches!(status, 502..=504)
        && control_of(head, rules).0.stale_if_error.is_some()
        && timing.staleness != Staleness::Never
}

/// Fields that must not be used again without asking, or not by others: they are not stored, the
/// rest is (`no-cache="..."`, section 5.2.2.4; `private="..."`, section 5.2.2.7).
pub fn remove_withheld(head: &mut Head, rules: &Rules) {
    let (control, _) = control_of(head, rules);
    for scope in [control.no_cache, control.private] {
        if let Scope::Fields(names) = scope {
            head.fields
                .retain(|entry| !names.contains(&entry.name.to_ascii_lowercase()));
        }
    }
}

/// nginx's field: seconds, or `@` and unix seconds; 0 forbids. Unreadable ones are ignored.
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

/// A point in time does not end at 2^31.
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
    // It might be stored and asked for every time; nginx does not, and it is seldom worth it.
    if control.no_cache == Scope::Whole {
        return Err(WhyNotStored::NoCache);
    }
    Ok(())
}

/// A response to an authorized request is for all only if it says so (section 3.5).
fn may_be_shared(control: &CacheControl, asked: &Asked) -> Result<(), WhyNotStored> {
    let says_so = control.public || control.must_revalidate || control.s_maxage.is_some();
    match asked.authorized && !says_so {
        true => Err(WhyNotStored::Authorization),
        false => Ok(()),
    }
}

/// A cookie is one client's, unless the response withholds it from storing.
fn sets_cookie(head: &Head, control: &CacheControl) -> bool {
    let withheld = |scope: &Scope| match scope {
        Scope::Fields(names) => names.iter().any(|name| name == b"set-cookie"),
        _ => false,
    };
    head.value(b"set-cookie").is_some()
        && !withheld(&control.no_cache)
        && !withheld(&control.private)
}

/// Section 4.2.1, then the configuration.
fn lifetime(
    control: &CacheControl,
    is_targeted: bool,
    head: &Head,
    rules: &Rules,
    asked: &Asked,
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
        // An unreadable date, "0" above all, lies in the past (section 5.3).
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

/// Section 4.2.2: a share of the time since the last change. `None`: it is not for this response.
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

/// Whether a date is in the zone of HTTP's dates (section 4.2); asctime's form names none.
fn is_in_gmt(date: &[u8]) -> bool {
    let zone = date.len().checked_sub(4).and_then(|at| date.get(at..));
    !date.contains(&b',') || zone.is_some_and(|zone| zone.eq_ignore_ascii_case(b" GMT"))
}

fn timing(
    control: &CacheControl,
    by_accel: bool,
    lifetime: Lifetime,
    head: &Head,
    asked: &Asked,
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
    // nginx's rule: who may be used while it is asked for may be used when that fails, too.
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

/// Section 4.2.3. A date says its second only: the response may have been made at the second's end.
fn initial_age_ms(head: &Head, asked: &Asked) -> u64 {
    const SECOND_MS: u64 = 1000;
    let date = head.value(b"date").and_then(date::parse);
    let apparent_ms = date
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(0, |seconds| {
            let latest_ms = seconds.saturating_mul(SECOND_MS) + (SECOND_MS - 1);
            asked.received_ms.saturating_sub(latest_ms)
        });
    // An unreadable Age is ignored, and of several the first holds (section 5.1).
    let age_s = head.value(b"age").and_then(first_of_list).unwrap_or(0);
    let delay_ms = asked.received_ms.saturating_sub(asked.sent_ms);
    apparent_ms.max(age_s * SECOND_MS + delay_ms)
}

fn first_of_list(value: &[u8]) -> Option<u64> {
    let first = value.split(|byte| *byte == b',').next()?;
    delta_seconds(first.trim_ascii())
}
