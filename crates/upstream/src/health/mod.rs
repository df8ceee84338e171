//! Active checks: each peer of a group is checked periodically, and gets no requests while its
//! checks fail.
//!
//! The results belong to the peer, so they hold for all lanes and survive a reload. Several checks
//! may watch one group: a peer is healthy if all of them pass.

mod question;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::process::monotonic_ns;

pub use question::{Asks, CheckOutcome, CheckTls, DatagramQuestion, Question};

use crate::address::Address;
use crate::background::BackgroundTask;
use crate::connection::Connection;
use crate::group::Group;
use crate::peer::{FailReason, Peer};

/// The interval of checks, and the number of results that change a peer's health.
#[derive(Clone, Debug)]
pub struct CheckRules {
    /// The name of the conditions for the log; empty for the default conditions.
    pub name: String,
    /// The interval between two checks of one peer, in milliseconds.
    pub interval_ms: u64,
    /// The maximum random addition to the interval, in milliseconds.
    pub jitter_ms: u64,
    /// The failures in a row that make a peer unhealthy.
    pub fails: u32,
    /// The passes in a row that make it healthy.
    pub passes: u32,
    /// The port, if it is not the peer's.
    pub port: Option<u16>,
    /// Whether a peer gets no requests before its first pass.
    pub mandatory: bool,
    /// Whether a peer that was healthy before a reload need not pass a mandatory check again.
    pub persistent: bool,
    /// The maximum age of a reused connection, in milliseconds; 0 opens a new one for each check.
    pub keepalive_time_ms: u64,
}

impl Default for CheckRules {
    /// nginx's defaults.
    fn default() -> Self {
        Self {
            name: String::new(),
            interval_ms: 5000,
            jitter_ms: 0,
            fails: 1,
            passes: 1,
            port: None,
            mandatory: false,
            persistent: false,
            keepalive_time_ms: 0,
        }
    }
}

/// An active check of a group.
pub struct Check {
    pub group: Weak<Group>,
    /// The number of the check in its group, see [`Group::add_check`].
    pub number: u32,
    pub rules: CheckRules,
    /// The request and the conditions.
    pub question: Asks,
    /// The first bytes of a connection, before TLS.
    pub proxy_header: Vec<u8>,
    /// TLS to the peer.
    pub tls: Option<CheckTls>,
    /// The time limit of connecting, in milliseconds.
    pub connect_timeout_ms: u64,
    /// The log for changes.
    pub log: ErrorLog,
}

/// A check's state of a peer.
#[derive(Default)]
struct Record {
    passes: u32,
    fails: u32,
    /// The last check.
    question: Option<AbortHandle>,
    /// The idle connection for the next check.
    idle: Option<Connection>,
}

impl Record {
    fn is_asked(&self) -> bool {
        let question = self.question.as_ref();
        question.is_some_and(|question| !question.is_finished())
    }
}

/// The result of a check: the error is the action that failed.
type Found = Result<(), &'static str>;

/// The state of a running check.
#[derive(Default)]
struct Watching {
    /// By the numbers of the peers.
    records: HashMap<u64, Record>,
    /// One for each peer at most, so that a hanging peer delays only its own checks.
    questions: JoinSet<(Arc<Peer>, Found, Option<Connection>)>,
}

impl BackgroundTask for Check {
    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            let mut watching = Watching::default();
            let mut first = true;
            while let Some(group) = self.group.upgrade() {
                self.ask(&group, &mut watching, first);
                drop(group);
                first = false;
                let pause = Duration::from_millis(self.pause_ms());
                let _ = tokio::time::timeout(pause, async {
                    while self.hear(&mut watching).await {}
                    std::future::pending::<()>().await;
                })
                .await;
            }
        })
    }
}

impl Check {
    /// Starts checks of all peers of the group that have none in progress.
    fn ask(self: &Arc<Self>, group: &Group, watching: &mut Watching, first: bool) {
        let Watching { records, questions } = watching;
        let peers = group.peers();
        records.retain(|id, _| peers.iter().any(|peer| peer.state().id() == *id));
        for peer in peers {
            let id = peer.state().id();
            if !records.contains_key(&id) {
                self.meet(&peer, first);
            }
            let record = records.entry(id).or_default();
            if record.is_asked() {
                continue;
            }
            let mut idle = record.idle.take();
            let check = Arc::clone(self);
            record.question = Some(questions.spawn_local(async move {
                let found = question::ask(&check, &check.address(&peer), &mut idle).await;
                (peer, found, idle)
            }));
        }
    }

    /// Waits for a result and applies it. `false`: no check is in progress.
    async fn hear(&self, watching: &mut Watching) -> bool {
        let Some(answer) = watching.questions.join_next().await else {
            return false;
        };
        // A check that panicked has no result.
        if let Ok((peer, found, idle)) = answer
            && let Some(record) = watching.records.get_mut(&peer.state().id())
        {
            record.idle = idle;
            self.note(&peer, record, found);
        }
        true
    }

    /// Initialises a peer that is new to this check.
    fn meet(&self, peer: &Peer, first: bool) {
        let known = first && self.rules.persistent && peer.state().has_passed_check(self.number);
        if self.rules.mandatory && !known {
            peer.state().set_check_failed(self.number, true);
        }
    }

    /// Applies the result of one check.
    fn note(&self, peer: &Peer, record: &mut Record, found: Found) {
        let state = peer.state();
        let had_failed = state.fails_check(self.number);
        let has_failed = match found {
            Ok(()) => {
                record.fails = 0;
                record.passes = record.passes.saturating_add(1);
                had_failed && record.passes < self.rules.passes
            }
            Err(_) => {
                record.passes = 0;
                record.fails = record.fails.saturating_add(1);
                had_failed || record.fails >= self.rules.fails
            }
        };
        match found {
            Ok(()) => state.record_passed_check(self.number),
            Err(_) => state.count_failure(FailReason::HealthCheck),
        }
        if has_failed == had_failed {
            return;
        }
        state.set_check_failed(self.number, has_failed);
        let group = self.group.upgrade();
        let group = group.as_ref().map_or("", |group| group.name());
        let (check, name) = (&self.rules.name, peer.name());
        let of = format_args!("health check \"{check}\" of peer {name} in upstream \"{group}\"");
        match found {
            Ok(()) => {
                state.recover(monotonic_ns() / 1_000_000);
                let line = format_args!("peer is healthy, {of}");
                self.log.event(Level::Notice, line);
            }
            Err(why) => {
                let line = format_args!("peer is unhealthy while {why}, {of}");
                self.log.event(Level::Warn, line);
            }
        }
    }

    fn address(&self, peer: &Peer) -> Address {
        match (peer.address(), self.rules.port) {
            (Address::Inet(address), Some(port)) => {
                Address::Inet(SocketAddr::new(address.ip(), port))
            }
            (address, _) => address.clone(),
        }
    }

    fn pause_ms(&self) -> u64 {
        let more_ms = match self.rules.jitter_ms {
            0 => 0,
            jitter_ms => RandomState::new().hash_one(0) % (jitter_ms + 1),
        };
        self.rules.interval_ms + more_ms
    }
}
