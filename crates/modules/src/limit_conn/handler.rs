//! Counts requests in, and refuses.

use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::variables::{Template, VariableRow};
use turnpike_lane::counters::{Kind, Row};
use turnpike_lane::log::Level;

use super::zone::{Admission, CountZone};
use crate::limits::{self, Limited};

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
pub(super) enum Asked {
    /// No limit is reached.
    Within,
    /// A limit refuses it.
    Refused,
    /// A match had no verdict.
    Undecided,
}

impl Handler for Limits {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        match self.ask(exchange) {
            Asked::Within => Verdict::Declined,
            Asked::Refused => Verdict::Status(self.status),
            Asked::Undecided => Verdict::Status(500),
        }
    }
}

impl Limits {
    /// Counts a request or a session in, once.
    pub(super) fn ask(&self, subject: &mut impl Limited) -> Asked {
        if !limits::decision::<CountZone>(subject).is_empty() {
            return Asked::Within;
        }
        let mut guards = Vec::new();
        for limit in &self.limits {
            let key = limits::key(subject, &limit.zone.key, KEY_BYTES_MAX);
            if subject.is_undecided() {
                limits::decide::<CountZone>(subject, "");
                return Asked::Undecided;
            }
            let Some(key) = key else {
                continue;
            };
            limits::decide::<CountZone>(subject, "PASSED");
            match limit.zone.counts.count(&key, limit.most) {
                Admission::Within(guard) => guards.push(guard),
                Admission::NoRoom => return self.refuse(subject, &limit.zone.counts),
                Admission::Above => {
                    let dry_run = if self.dry_run { ", dry run," } else { "" };
                    let name = &limit.zone.name;
                    subject.log(
                        self.log_level,
                        format_args!("limiting connections{dry_run} by zone \"{name}\""),
                    );
                    return self.refuse(subject, &limit.zone.counts);
                }
            }
        }
        if !guards.is_empty() {
            subject.rooms_mut().hold(guards);
        }
        Asked::Within
    }

    fn refuse(&self, subject: &mut impl Limited, counts: &CountZone) -> Asked {
        if self.dry_run {
            limits::decide::<CountZone>(subject, "REJECTED_DRY_RUN");
            return Asked::Within;
        }
        counts.rejections.add();
        limits::decide::<CountZone>(subject, "REJECTED");
        Asked::Refused
    }
}
