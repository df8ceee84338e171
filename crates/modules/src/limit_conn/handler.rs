//! Counts requests in, and refuses.

use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::variables::{Template, VariableRow};
use turnpike_lane::log::Level;

use super::zone::{Admission, CountZone};
use crate::limits;

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

impl Handler for Limits {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !limits::decision::<CountZone>(exchange).is_empty() {
            return Verdict::Declined;
        }
        let mut guards = Vec::new();
        for limit in &self.limits {
            let key = limits::key(exchange, &limit.zone.key, KEY_BYTES_MAX);
            if exchange.is_undecided() {
                limits::decide::<CountZone>(exchange, "");
                return Verdict::Status(500);
            }
            let Some(key) = key else {
                continue;
            };
            limits::decide::<CountZone>(exchange, "PASSED");
            match limit.zone.counts.count(&key, limit.most) {
                Admission::Within(guard) => guards.push(guard),
                Admission::NoRoom => return self.refuse(exchange),
                Admission::Above => {
                    let dry_run = if self.dry_run { ", dry run," } else { "" };
                    let name = &limit.zone.name;
                    exchange.log(
                        self.log_level,
                        format_args!("limiting connections{dry_run} by zone \"{name}\""),
                    );
                    return self.refuse(exchange);
                }
            }
        }
        if !guards.is_empty() {
            exchange.rooms.hold(guards);
        }
        Verdict::Declined
    }
}

impl Limits {
    fn refuse(&self, exchange: &mut Exchange) -> Verdict {
        if self.dry_run {
            limits::decide::<CountZone>(exchange, "REJECTED_DRY_RUN");
            return Verdict::Declined;
        }
        limits::decide::<CountZone>(exchange, "REJECTED");
        Verdict::Status(self.status)
    }
}
