//! Adding the fields.

use std::io::Write;

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::response::Response;
use turnpike_wire::date;

use super::plan::{Added, Expires, Expiry, Field, Kind};

impl Filter for Added {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        exchange.response.show_withheld(true);
        let safe = is_safe(exchange.response.status());
        if let Some(expires) = &self.expires
            && safe
        {
            add_expires(expires, exchange);
        }
        let mut value = exchange.lane.take_scratch();
        for field in self.fields.iter().filter(|field| safe || field.always) {
            value.clear();
            field.value.evaluate(exchange, &mut value);
            put(field, &value, &mut exchange.response);
        }
        exchange.lane.keep_scratch(value);
        exchange.response.show_withheld(false);
        None
    }

    fn is_same_for_all(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.all(|field| field.value.constant().is_some())
            && !matches!(self.expires, Some(Expires::Variable(..)))
    }
}

/// Statuses of responses that carry what was asked for; the others need `always`.
pub(super) fn is_safe(status: u16) -> bool {
    matches!(
        status,
        200 | 201 | 204 | 206 | 301 | 302 | 303 | 304 | 307 | 308
    )
}

fn put(field: &Field, value: &[u8], response: &mut Response) {
    match field.kind {
        Kind::Other | Kind::CacheControl if value.is_empty() => {}
        Kind::CacheControl => {
            if renews_age(value) {
                renew(response);
            }
            response.fields_mut().add(&field.name, value);
        }
        Kind::Other => response.fields_mut().add(&field.name, value),
        Kind::EntityTag => {
            response.fields_mut().remove(b"ETag");
            response.etag_mut().clear();
            response.etag_mut().extend_from_slice(value);
        }
        Kind::LastModified => {
            response.fields_mut().remove(b"Last-Modified");
            response.set_last_modified(date::parse(value));
            // What is no date in the usual form is sent as it is written.
            let usual = response
                .last_modified()
                .is_some_and(|seconds| date::format(seconds).as_slice() == value);
            if !usual {
                response.set_last_modified(None);
                if !value.is_empty() {
                    response.fields_mut().add(&field.name, value);
                }
            }
        }
    }
}

/// Whether Cache-Control says how old a response may get, counted from when we send it.
pub(super) fn renews_age(control: &[u8]) -> bool {
    let mut directives = control.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    directives.any(|directive| {
        let name = directive.split(|byte| *byte == b'=').next();
        let name = name.unwrap_or_default().trim_ascii_end();
        name.eq_ignore_ascii_case(b"max-age") || name.eq_ignore_ascii_case(b"s-maxage")
    })
}

/// A new lifetime begins here: with the age of what a cache has stored, or its date, from which
/// recipients compute an age too (RFC 9111 section 4.2.3), it would be over at once.
fn renew(response: &mut Response) {
    response.set_made_unix_s(None);
    response.fields_mut().remove(b"Age");
}

fn add_expires(expires: &Expires, exchange: &mut Exchange) {
    let expiry = match expires {
        Expires::Fixed(expiry) => *expiry,
        Expires::Variable(template, modified) => {
            let text = template.value(exchange);
            let text = String::from_utf8_lossy(&text);
            match Expiry::parse(&text, *modified) {
                Ok(Expiry::Off) | Err(_) => return,
                Ok(expiry) => expiry,
            }
        }
    };
    let now = exchange.lane.clock.unix_seconds() as i64;
    let answer = ExpiryFields::of(expiry, now, exchange.response.last_modified());
    if answer.max_age.is_some() {
        renew(&mut exchange.response);
    }
    let mut control = exchange.lane.take_scratch();
    answer.write_control(&mut control);
    let fields = exchange.response.fields_mut();
    fields.replace(b"Expires", &answer.expires());
    fields.replace(b"Cache-Control", &control);
    exchange.lane.keep_scratch(control);
}

/// What the two fields say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ExpiryFields {
    /// Unix seconds.
    pub(super) at: i64,
    /// Seconds that the response may be kept; `None` is `no-cache`.
    pub(super) max_age: Option<i64>,
}

impl ExpiryFields {
    pub(super) fn of(expiry: Expiry, now: i64, last_modified: Option<i64>) -> Self {
        /// One second after the epoch; and the last second but four of 2037, which clients with
        /// 32-bit times still understand.
        const EPOCH: i64 = 1;
        const MAX: i64 = 2_145_916_555;
        const TEN_YEARS_S: i64 = 315_360_000;
        let until = |at: i64, negative: bool| {
            let age = at.saturating_sub(now);
            let max_age = (!negative && age >= 0).then_some(age);
            Self { at, max_age }
        };
        match expiry {
            Expiry::Off | Expiry::Epoch => Self {
                at: EPOCH,
                max_age: None,
            },
            Expiry::Max => Self {
                at: MAX,
                max_age: Some(TEN_YEARS_S),
            },
            Expiry::Access(0) | Expiry::Modified(0) => until(now, false),
            Expiry::Access(seconds) => until(now.saturating_add(seconds), seconds < 0),
            Expiry::Modified(seconds) => {
                let from = last_modified.unwrap_or(now);
                until(from.saturating_add(seconds), seconds < 0)
            }
            Expiry::Daily(seconds) => until(next_time(now, seconds), false),
        }
    }

    fn expires(&self) -> [u8; 29] {
        date::format(self.at)
    }

    fn write_control(&self, out: &mut Vec<u8>) {
        match self.max_age {
            None => out.extend_from_slice(b"no-cache"),
            // Writing to a vector cannot fail.
            Some(age) => _ = write!(out, "max-age={age}"),
        }
    }
}

/// When the local clock next shows so many seconds after midnight.
fn next_time(now: i64, seconds: i64) -> i64 {
    let zone = jiff::tz::TimeZone::system();
    let today = |days: i64| {
        let local = jiff::Timestamp::from_second(now)
            .ok()?
            .to_zoned(zone.clone());
        let span = jiff::Span::new()
            .try_days(days)
            .ok()?
            .try_seconds(seconds)
            .ok()?;
        let at = local.date().to_datetime(jiff::civil::Time::midnight());
        let at = at.checked_add(span).ok()?.to_zoned(zone.clone()).ok()?;
        Some(at.timestamp().as_second())
    };
    match today(0) {
        Some(at) if at > now => at,
        _ => today(1).unwrap_or(now),
    }
}
