//! Groups of peers, and the tries of one request among them.

mod budget;
mod commanded;
pub(crate) mod queue;
mod states;
#[cfg(test)]
mod tests;
mod tries;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use budget::RetryLimits;
pub use commanded::Commanded;
pub use queue::{QueueLimits, Unqueued};
pub use states::GroupStates;
pub use tries::{NoPeer, Tries};

use commanded::Sources;

use crate::balance::choice::Selection;
use crate::balance::members::Members;
use crate::balance::method::Balancer;
use crate::peer::Peer;
use crate::pool::KeepAlive;

/// Most active checks of one group: each is a bit in a peer's state.
const CHECKS_MAX: u32 = 64;

/// The configuration of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupSettings {
    /// The balancing method.
    pub balancer: Balancer,
    /// The limits of idle connections.
    pub keep_alive: KeepAlive,
    /// The limits of the requests that wait for a peer; `None`: a request that finds no peer fails.
    pub queue: Option<QueueLimits>,
    /// The limits of retries; `None`: each request has its own only.
    pub retries: Option<RetryLimits>,
}

/// Peers for the same requests: an `upstream` block, or the addresses of one name.
pub struct Group {
    name: String,
    settings: GroupSettings,
    members: Mutex<Members>,
    /// The most tries of a request: beside the members, so that a request takes their lock only to
    /// choose one.
    tries_max: AtomicU32,
    /// The configured peers, by their line of the configuration, and what commands have changed.
    sources: Mutex<Sources>,
    /// The number of active checks.
    checks: AtomicU32,
    /// The states, kept so that the next configuration finds them.
    states: Arc<GroupStates>,
}

impl Group {
    /// A group of these peers, ordered by their line of the configuration; the settings of a peer
    /// make it a backup.
    pub fn new(
        name: &str,
        settings: GroupSettings,
        sources: Vec<Vec<Arc<Peer>>>,
        states: Arc<GroupStates>,
    ) -> Arc<Group> {
        let group = Group {
            name: name.to_owned(),
            settings,
            members: Mutex::default(),
            tries_max: AtomicU32::new(0),
            sources: Mutex::new(Sources {
                lines: sources,
                ..Sources::default()
            }),
            checks: AtomicU32::new(0),
            states,
        };
        // The modes and weights that were commanded hold for the configuration in force.
        group.arrange(&group.sources());
        Arc::new(group)
    }

    /// The name, for logs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The configuration.
    pub fn settings(&self) -> &GroupSettings {
        &self.settings
    }

    /// The states of its peers.
    pub fn states(&self) -> &Arc<GroupStates> {
        &self.states
    }

    /// The number of requests that wait for a peer.
    pub fn queued(&self) -> usize {
        self.states.queue().length()
    }

    /// The number of requests that found the queue full.
    pub fn queue_refused(&self) -> u64 {
        self.states.queue().refused()
    }

    /// The number of retries that the budget did not allow.
    pub fn retries_refused(&self) -> u64 {
        self.states.budget().refused()
    }

    /// The current peers, backups last.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        let members = self.members();
        let all = members.primary.iter().chain(&members.backup);
        all.cloned().collect()
    }

    /// Whether it has no servers by configuration and commands, which is no failure of any server.
    /// A name that has no addresses is a server too.
    pub fn has_no_servers(&self) -> bool {
        let sources = self.sources();
        let has_lines = !sources.commanded.replaces && !sources.lines.is_empty();
        !has_lines && sources.commanded.added.is_empty()
    }

    /// The peers of its lines, whatever commands have changed.
    pub fn configured(&self) -> Vec<Arc<Peer>> {
        self.sources().lines.iter().flatten().cloned().collect()
    }

    /// Replaces the peers of one line. Requests in progress continue with their peers.
    pub fn replace(&self, source: usize, peers: Vec<Arc<Peer>>) {
        if let Some(line) = self.sources().lines.get_mut(source) {
            *line = peers;
        }
        self.refresh();
    }

    /// Applies what commands have changed, in place of what they had changed before.
    pub fn command(&self, commanded: Commanded) {
        self.sources().commanded = commanded;
        self.refresh();
        // One of them may have room for a request that waits.
        self.states.queue().wake();
    }

    /// The number for another active check; `None` if there are too many.
    pub fn add_check(&self) -> Option<u32> {
        let number = self.checks.fetch_add(1, Ordering::Relaxed);
        (number < CHECKS_MAX).then_some(number)
    }

    /// Removes the results of checks that the group does not have any more.
    pub fn keep_checks(&self) {
        let count = self.checks.load(Ordering::Relaxed);
        for peer in self.peers() {
            peer.state().keep_checks(count);
        }
    }

    /// Applies changes of its peers, their modes and weights.
    fn refresh(&self) {
        let sources = self.sources();
        for peer in sources.peers() {
            sources.commanded.apply_to(peer);
        }
        self.arrange(&sources);
    }

    fn arrange(&self, sources: &Sources) {
        let peers = sources.peers().map(Arc::clone);
        let members = Members::new(peers, self.settings.balancer);
        self.tries_max.store(members.tries_max(), Ordering::Relaxed);
        *self.members() = members;
        self.states.forget_unused();
    }

    /// Begins the tries of one request.
    pub fn begin(self: &Arc<Self>, selection: &Selection<'_>) -> Tries {
        Tries::new(Arc::clone(self), selection)
    }

    fn sources(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn members(&self) -> MutexGuard<'_, Members> {
        // After a panic only a weight may be wrong, which affects the order of peers; that is
        // better than no peers.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
