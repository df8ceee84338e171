//! Asks the zones, and delays or refuses.

use std::fmt;
use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Delay, Handler, Verdict};
use turnpike_http::variables::{Template, VariableRow};
use turnpike_lane::counters::{Kind, Row};
use turnpike_lane::log::Level;

use super::zone::{RateCheck, RateZone};
use crate::common::address_refusal;
use crate::common::limits::{self, Keyed};

/// Longest key; nginx's.
const KEY_BYTES_MAX: usize = 65_535;

/// The variables.
pub(super) const VARIABLES: &[VariableRow] = &[VariableRow {
    name: "limit_req_status",
    get: |exchange, out| {
        let text = limits::decision::<RateZone>(exchange);
        out.extend_from_slice(text.as_bytes());
        !text.is_empty()
    },
    set: None,
    summary: "The result of the rate limit: PASSED, DELAYED, REJECTED, DELAYED_DRY_RUN or \
        REJECTED_DRY_RUN.",
}];

/// The metric.
pub(super) static REJECTIONS: Row = Row {
    name: "limit_req_rejected",
    kind: Kind::Counter,
    unit: "requests",
    labels: &["zone"],
    help: "Requests that limit_req rejected, by the zone whose limit was reached.",
};

/// A zone with its key and rate, as the present configuration has them.
pub(super) struct Zone {
    pub(super) name: String,
    pub(super) key: Template,
    /// Thousandths of a request per second.
    pub(super) rate: i64,
    pub(super) rates: Arc<RateZone>,
}

/// One `limit_req`.
pub(super) struct Limit {
    pub(super) zone: Arc<Zone>,
    /// Excess that is let in, in thousandths of a request.
    pub(super) burst: i64,
    /// Excess that is not delayed.
    pub(super) delay: i64,
}

/// The limits of a location.
pub(super) struct Limits {
    pub(super) limits: Vec<Limit>,
    pub(super) log_level: Level,
    pub(super) delay_log_level: Level,
    pub(super) status: u16,
    pub(super) dry_run: bool,
}

/// What came of asking the bucket of a request's key.
enum BucketOutcome {
    /// Within the limit, which was the last one; so much is in excess.
    Within(i64),
    /// Within the limit; the bucket of this key is held.
    Held(Vec<u8>),
    /// Above the limit; so much would be in excess.
    Above(i64),
    /// The zone has no room.
    NoRoom,
}

impl Handler for Limits {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !limits::decision::<RateZone>(exchange).is_empty() {
            return Verdict::Declined;
        }
        // Buckets that were asked and are held until the last one has answered.
        let mut held: Vec<(&Limit, Vec<u8>)> = Vec::new();
        let mut last = None;
        let count = self.limits.len();
        for (number, limit) in self.limits.iter().enumerate() {
            let zone = &limit.zone;
            let is_last = number + 1 == count;
            let now_ms = exchange.lane.clock.now_ms();
            let ask = |key: &[u8]| {
                let rates = &zone.rates;
                match rates.ask(key, zone.rate, limit.burst, now_ms, is_last) {
                    // Of the last one, nothing is held.
                    RateCheck::Within(excess) if is_last => BucketOutcome::Within(excess),
                    RateCheck::Within(_) => BucketOutcome::Held(key.to_vec()),
                    RateCheck::Above(excess) => BucketOutcome::Above(excess),
                    RateCheck::NoRoom => BucketOutcome::NoRoom,
                }
            };
            match limits::with_key(exchange, &zone.key, KEY_BYTES_MAX, ask) {
                Keyed::Undecided => {
                    for (limit, key) in &held {
                        limit.zone.rates.release(key);
                    }
                    return Verdict::Undecided;
                }
                Keyed::NotCounted => {}
                Keyed::Counted(BucketOutcome::Within(excess)) => last = Some((limit, excess)),
                Keyed::Counted(BucketOutcome::Held(key)) => held.push((limit, key)),
                Keyed::Counted(BucketOutcome::Above(excess)) => {
                    return self.refuse(exchange, &held, limit, Some(excess));
                }
                Keyed::Counted(BucketOutcome::NoRoom) => {
                    return self.refuse(exchange, &held, limit, None);
                }
            }
        }
        if held.is_empty() && last.is_none() {
            return Verdict::Declined;
        }
        self.let_in(exchange, &held, last)
    }
}

impl Limits {
    fn refuse(
        &self,
        exchange: &mut Exchange,
        held: &[(&Limit, Vec<u8>)],
        limit: &Limit,
        excess: Option<i64>,
    ) -> Verdict {
        if let Some(excess) = excess {
            let dry_run = if self.dry_run { ", dry run" } else { "" };
            let (excess, name) = (Thousandths(excess), &limit.zone.name);
            exchange.log(
                self.log_level,
                format_args!("limiting requests{dry_run}, excess: {excess} by zone \"{name}\""),
            );
        }
        for (limit, key) in held {
            limit.zone.rates.release(key);
        }
        if self.dry_run {
            limits::decide::<RateZone>(exchange, "REJECTED_DRY_RUN");
            return Verdict::Declined;
        }
        limit.zone.rates.rejections.add();
        limits::decide::<RateZone>(exchange, "REJECTED");
        if address_refusal::is_address(&limit.zone.key) {
            address_refusal::note(&mut exchange.rooms);
        }
        Verdict::Status(self.status)
    }

    /// Counts the request everywhere; the longest delay of all limits is taken.
    fn let_in(
        &self,
        exchange: &mut Exchange,
        held: &[(&Limit, Vec<u8>)],
        last: Option<(&Limit, i64)>,
    ) -> Verdict {
        let mut longest = last.and_then(|(limit, excess)| limit.delayed(excess));
        let now_ms = exchange.lane.clock.now_ms();
        for (limit, key) in held.iter().rev() {
            let excess = limit.zone.rates.account(key, limit.zone.rate, now_ms);
            let delayed = limit.delayed(excess);
            let current_ms = longest.as_ref().map_or(0, |delayed| delayed.delay_ms);
            if delayed
                .as_ref()
                .is_some_and(|delayed| delayed.delay_ms > current_ms)
            {
                longest = delayed;
            }
        }
        let Some(delayed) = longest.filter(|delayed| delayed.delay_ms > 0) else {
            limits::decide::<RateZone>(exchange, "PASSED");
            return Verdict::Declined;
        };
        let dry_run = if self.dry_run { ", dry run" } else { "" };
        let (excess, name) = (Thousandths(delayed.excess), delayed.name);
        exchange.log(
            self.delay_log_level,
            format_args!("delaying request{dry_run}, excess: {excess}, by zone \"{name}\""),
        );
        if self.dry_run {
            limits::decide::<RateZone>(exchange, "DELAYED_DRY_RUN");
            return Verdict::Declined;
        }
        limits::decide::<RateZone>(exchange, "DELAYED");
        Verdict::Wait(Box::new(Delay {
            delay_ms: delayed.delay_ms,
            verdict: Verdict::Declined,
        }))
    }
}

/// A delay with its reason.
struct Delayed<'l> {
    delay_ms: u64,
    excess: i64,
    name: &'l str,
}

impl Limit {
    fn delayed(&self, excess: i64) -> Option<Delayed<'_>> {
        let over = excess.checked_sub(self.delay).filter(|over| *over > 0)?;
        let delay_ms = over.saturating_mul(1000) / self.zone.rate.max(1);
        Some(Delayed {
            delay_ms: u64::try_from(delay_ms).unwrap_or(0),
            excess,
            name: &self.zone.name,
        })
    }
}

/// Shows thousandths with a point.
struct Thousandths(i64);

impl fmt::Display for Thousandths {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
