//! Counts requests in, and refuses.

use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::rooms::Room;
use turnpike_http::variables::{Template, VariableRow};
use turnpike_lane::counters::{Kind, Row};
use turnpike_lane::log::Level;

use super::zone::{Admission, CountZone, Guard};
use crate::common::address_refusal;
use crate::common::limits::{self, Keyed};
use crate::common::served::Served;

/// Longest key; nginx's.
const KEY_BYTES_MAX: usize = 255;

/// The variables.
pub(super) const VARIABLES: &[VariableRow] = &[VariableRow {
    name: "limit_conn_status",
    get: |exchange, out| {
        let text = limits::decision::<CountZone>(exchange);
        out.extend_from_slice(text.as_bytes());
        !text.is_empty()
    },
    set: None,
    summary: "The result of the concurrency limit: PASSED, REJECTED or REJECTED_DRY_RUN.",
}];

/// The metric.
pub(super) static REJECTIONS: Row = Row {
    name: "limit_conn_rejected",
    kind: Kind::Counter,
    unit: "requests",
    labels: &["zone"],
    help: "Requests that limit_conn rejected, by the zone whose limit was reached.",
};

/// A zone with its key, as the present configuration has it.
pub(super) struct Zone {
    pub(super) name: String,
    pub(super) key: Template,
    pub(super) counts: Arc<CountZone>,
}

/// One `limit_conn`.
pub(super) struct Limit {
    pub(super) zone: Arc<Zone>,
    /// Requests of one key at a time.
    pub(super) most: u32,
}

/// The limits of a location.
pub(super) struct Limits {
    pub(super) limits: Vec<Limit>,
    pub(super) log_level: Level,
    pub(super) status: u16,
    pub(super) dry_run: bool,
}

/// What came of asking the limits.
pub(super) enum LimitOutcome {
    /// No limit is reached.
    Within,
    /// A limit refuses it; whether that counts by the client's address.
    Refused { by_address: bool },
    /// A match had no verdict.
    Undecided,
}

impl Handler for Limits {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        match self.ask(exchange) {
            LimitOutcome::Within => Verdict::Declined,
            LimitOutcome::Refused { by_address } => {
                if by_address {
                    address_refusal::note(&mut exchange.rooms);
                }
                Verdict::Status(self.status)
            }
            LimitOutcome::Undecided => Verdict::Undecided,
        }
    }
}

impl Limits {
    /// Counts a request or a session in, once.
    pub(super) fn ask(&self, subject: &mut impl Served) -> LimitOutcome {
        if !limits::decision::<CountZone>(subject).is_empty() {
            return LimitOutcome::Within;
        }
        for limit in &self.limits {
            let count = |key: &[u8]| limit.zone.counts.count(key, limit.most);
            match limits::with_key(subject, &limit.zone.key, KEY_BYTES_MAX, count) {
                Keyed::Undecided => {
                    uncount(subject);
                    limits::decide::<CountZone>(subject, "");
                    return LimitOutcome::Undecided;
                }
                Keyed::NotCounted => {}
                Keyed::Counted(Admission::Within(guard)) => {
                    limits::decide::<CountZone>(subject, "PASSED");
                    subject.rooms_mut().get_mut::<Guards>().0.push(guard);
                }
                Keyed::Counted(Admission::NoRoom) => {
                    return self.refuse(subject, &limit.zone);
                }
                Keyed::Counted(Admission::Above) => {
                    let dry_run = if self.dry_run { ", dry run," } else { "" };
                    let name = &limit.zone.name;
                    subject.log(
                        self.log_level,
                        format_args!("limiting connections{dry_run} by zone \"{name}\""),
                    );
                    return self.refuse(subject, &limit.zone);
                }
            }
        }
        LimitOutcome::Within
    }

    fn refuse(&self, subject: &mut impl Served, zone: &Zone) -> LimitOutcome {
        uncount(subject);
        if self.dry_run {
            limits::decide::<CountZone>(subject, "REJECTED_DRY_RUN");
            return LimitOutcome::Within;
        }
        zone.counts.rejections.add();
        limits::decide::<CountZone>(subject, "REJECTED");
        LimitOutcome::Refused {
            by_address: address_refusal::is_address(&zone.key),
        }
    }
}

/// What a request is counted by, until it has ended and was logged.
#[derive(Default)]
struct Guards(Vec<Guard>);

impl Room for Guards {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn release(&mut self) {
        self.0.clear();
    }
}

/// Takes back that the request was counted by the limits before.
fn uncount(subject: &mut impl Served) {
    if subject.rooms().get::<Guards>().is_some() {
        subject.rooms_mut().get_mut::<Guards>().0.clear();
    }
}
