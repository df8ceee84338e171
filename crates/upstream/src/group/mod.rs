//! Groups of peers, and the tries of one request among them.

mod states;
#[cfg(test)]
mod tests;
mod tries;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use states::GroupStates;
pub use tries::{NoPeer, Tries};

use crate::balance::choice::Selection;
use crate::balance::members::Members;
use crate::balance::method::Balancer;
use crate::peer::Peer;
use crate::pool::KeepAlive;

/// Active checks that one group may have: what each of them found is a bit of a peer.
const CHECKS_MAX: u32 = 64;

/// What a group's configuration says.
#[derive(Clone, Debug, Default)]
pub struct GroupSettings {
    /// The method of choice.
    pub balancer: Balancer,
    /// Idle connections.
    pub keep_alive: KeepAlive,
}

/// Peers that answer the same requests: an `upstream` block, or the addresses of one name.
pub struct Group {
    name: String,
    settings: GroupSettings,
    members: Mutex<Members>,
    /// The peers again, by the line of the configuration that they come from.
    sources: Mutex<Vec<Vec<Arc<Peer>>>>,
    /// How many lines the configuration has; what was added since stands behind them.
    lines: usize,
    /// How many active checks it has.
    checks: AtomicU32,
    /// Kept with the group, so that the next configuration finds them.
    states: Arc<GroupStates>,
}

impl Group {
    /// A group of these peers, given by the lines of the configuration that they come from; those
    /// whose settings say so are its backups.
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

    /// The name, as logs have it where no peer could be chosen.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was configured.
    pub fn settings(&self) -> &GroupSettings {
        &self.settings
    }

    /// The states of its peers.
    pub fn states(&self) -> &Arc<GroupStates> {
        &self.states
    }

    /// The peers at the moment, backups last.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        let members = self.members();
        let all = members.primary.iter().chain(&members.backup);
        all.cloned().collect()
    }

    /// Puts other peers in the place of those of one line. Requests under way go on with what they
    /// have.
    pub fn replace(&self, source: usize, peers: Vec<Arc<Peer>>) {
        if let Some(line) = self.sources().get_mut(source) {
            *line = peers;
        }
        self.refresh();
    }

    /// The number of another active check; `None` when there are too many.
    pub fn add_check(&self) -> Option<u32> {
        let number = self.checks.fetch_add(1, Ordering::Relaxed);
        (number < CHECKS_MAX).then_some(number)
    }

    /// Forgets what checks found that the group does not have any more.
    pub fn keep_checks(&self) {
        let count = self.checks.load(Ordering::Relaxed);
        for peer in self.peers() {
            peer.state().keep_checks(count);
        }
    }

    /// Adds peers beside those of the configuration.
    pub fn add(&self, mut peers: Vec<Arc<Peer>>) {
        let mut sources = self.sources();
        while sources.len() <= self.lines {
            sources.push(Vec::new());
        }
        sources[self.lines].append(&mut peers);
        drop(sources);
        self.refresh();
    }

    /// Takes a peer out, wherever it comes from. A name that is looked up may bring it back.
    /// `false`: it was not there.
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

    /// Takes up what changed of its peers: who they are, their weights.
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
        // What a panic could leave behind is a weight not yet taken off: any order of peers is
        // better than none.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
