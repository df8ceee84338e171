//! The record of all requests: their results, and the causes of failures.
//!
//! A kill of the serving process may lose the requests in flight: begun before the process was
//! dead, and failed after it was killed. Every other failure is an error; the kill of a master
//! explains none.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The time that a client on a busy machine may need to notice a closed keep-alive connection: a
/// request that it sends meanwhile is lost with the process that had the connection.
const NOTICE_US: u64 = 1_000_000;

/// Outside losses that are printed one by one.
const LISTED_MAX: usize = 20;

/// Microseconds since 1970: the common clock of all parts of a run.
pub(super) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// An action on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    Reload,
    LaneCount,
    Upgrade,
    Stall,
    /// Of the serving process.
    Kill,
    KillMaster,
    /// Of both, in either order, with a gap.
    KillBoth,
}

impl Act {
    pub(super) fn name(self) -> &'static str {
        match self {
            Act::Reload => "reload",
            Act::LaneCount => "lane count",
            Act::Upgrade => "upgrade",
            Act::Stall => "stall",
            Act::Kill => "kill",
            Act::KillMaster => "kill of the master",
            Act::KillBoth => "kill of both",
        }
    }
}

/// An act that was done, from its beginning until it was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deed {
    pub(super) act: Act,
    pub(super) from_us: u64,
    pub(super) until_us: u64,
    /// Whether it came to something: a server with other things to do refuses an upgrade.
    pub(super) is_done: bool,
}

/// A request that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) begun_us: u64,
    pub(super) ended_us: u64,
    pub(super) kind: String,
    /// The connection had carried another request before.
    pub(super) was_kept: bool,
    /// The client's, by which the server's log can be searched.
    pub(super) port: Option<u16>,
}

/// The report of one kind of client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) clients: &'static str,
    pub(super) offered: u64,
    pub(super) answered: u64,
    pub(super) failures: Vec<Failure>,
}

/// Losses of one account, sorted out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// In flight at a kill, by how they broke.
    pub(super) at_kills: BTreeMap<String, u64>,
    /// All other failures, by the action on the server at that time, and their kind.
    pub(super) otherwise: BTreeMap<(String, String), u64>,
}

impl Failure {
    /// Whether a kill explains it: the request was in flight, or went to a connection that had been
    /// kept alive by a process that was dead.
    fn is_lost_at(&self, deed: &Deed) -> bool {
        let notice_us = if self.was_kept { NOTICE_US } else { 0 };
        deed.act == Act::Kill
            && self.begun_us <= deed.until_us + notice_us
            && self.ended_us >= deed.from_us
    }
}

impl Losses {
    pub(super) fn at_kills_total(&self) -> u64 {
        self.at_kills.values().sum()
    }

    pub(super) fn otherwise_total(&self) -> u64 {
        self.otherwise.values().sum()
    }
}

impl Account {
    /// Sorts failures by the actions on the server during their requests.
    pub(super) fn losses(&self, deeds: &[Deed]) -> Losses {
        let mut losses = Losses::default();
        for failure in &self.failures {
            if deeds.iter().any(|deed| failure.is_lost_at(deed)) {
                *losses.at_kills.entry(failure.kind.clone()).or_default() += 1;
                continue;
            }
            let under_way: Vec<&Deed> = deeds
                .iter()
                .filter(|deed| failure.begun_us <= deed.until_us)
                .filter(|deed| failure.ended_us >= deed.from_us)
                .collect();
            let mut acts: Vec<&str> = under_way.iter().map(|deed| deed.act.name()).collect();
            acts.dedup();
            let acts = if acts.is_empty() {
                "nothing".to_owned()
            } else {
                acts.join(" + ")
            };
            let entry = losses.otherwise.entry((acts, failure.kind.clone()));
            *entry.or_default() += 1;
        }
        losses
    }

    /// Whether every request is accounted for: offered = answered + named losses.
    pub(super) fn is_balanced(&self) -> bool {
        self.offered == self.answered + self.failures.len() as u64
    }

    /// The first failures that no kill explains, for the search for their cause.
    pub(super) fn list(&self, deeds: &[Deed], started_us: u64) -> Vec<String> {
        let seconds = |us: u64| us.saturating_sub(started_us) as f64 / 1e6;
        let is_outside = |failure: &&Failure| !deeds.iter().any(|deed| failure.is_lost_at(deed));
        let line = |failure: &Failure| {
            let before = deeds.iter().filter(|deed| deed.from_us <= failure.ended_us);
            let last: Vec<String> = before
                .rev()
                .take(3)
                .map(|deed| format!("{} at {:.3}", deed.act.name(), seconds(deed.from_us)))
                .collect();
            let port = failure.port.map(|port| format!(" of port {port}"));
            format!(
                "{}: {}{} from {:.3} to {:.3} s; before it: {}",
                self.clients,
                failure.kind,
                port.unwrap_or_default(),
                seconds(failure.begun_us),
                seconds(failure.ended_us),
                last.join(", ")
            )
        };
        let outside = self.failures.iter().filter(is_outside);
        outside.take(LISTED_MAX).map(line).collect()
    }
}

#[cfg(test)]
mod tests;
