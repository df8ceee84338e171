//! Groups of peers, and the tries of one request among them.

mod budget;
pub(crate) mod queue;
mod states;
#[cfg(test)]
mod tests;
mod tries;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use budget::RetryLimits;
pub use queue::{QueueLimits, Unqueued};
pub use states::GroupStates;
pub use tries::{NoPeer, Tries};

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
    /// The same peers, by their line of the configuration.
    sources: Mutex<Vec<Vec<Arc<Peer>>>>,
    /// The number of lines in the configuration; peers that were added follow them.
    lines: usize,
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
            lines: sources.len(),
            sources: Mutex::new(sources),
            checks: AtomicU32::new(0),
            states,
        };
        group.refresh();
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

    /// Replaces the peers of one line. Requests in progress continue with their peers.
    pub fn replace(&self, source: usize, peers: Vec<Arc<Peer>>) {
        if let Some(line) = self.sources().get_mut(source) {
            *line = peers;
        }
        self.refresh();
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

    /// Adds peers to those of the configuration.
    pub fn add(&self, mut peers: Vec<Arc<Peer>>) {
        let mut sources = self.sources();
        while sources.len() <= self.lines {
            sources.push(Vec::new());
        }
        sources[self.lines].append(&mut peers);
        drop(sources);
        self.refresh();
    }

    /// Removes a peer of any origin. A repeated name lookup may add it again. `false` if there is
    /// no such peer.
    pub fn remove(&self, id: u64) -> bool {
        let mut found = false;
        for source in self.sources().iter_mut() {
            let count = source.len();
            source.retain(|peer| peer.state().id() != id);
            found |= source.len() < count;
        }
        self.refresh();
        found
    }

    /// Applies changes of its peers and their weights.
    pub fn refresh(&self) {
        let sources = self.sources();
        let all = sources.iter().flatten().cloned();
        *self.members() = Members::new(all, self.settings.balancer);
        self.states.forget_unused();
    }

    /// Begins the tries of one request.
    pub fn begin(self: &Arc<Self>, selection: &Selection<'_>) -> Tries {
        Tries::new(Arc::clone(self), selection)
    }

    fn sources(&self) -> MutexGuard<'_, Vec<Vec<Arc<Peer>>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn members(&self) -> MutexGuard<'_, Members> {
        // After a panic only a weight may be wrong, which affects the order of peers; that is
        // better than no peers.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
