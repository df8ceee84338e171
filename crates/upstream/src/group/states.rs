//! The states of a group's peers, which outlive configurations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::budget::RetryBudget;
use super::queue::Queue;
use crate::peer::PeerState;
use crate::resolve::found::Found;

/// The states of one group by the peers' names. It lives as long as a configuration has the group,
/// so a peer keeps its failures, requests and commanded mode over a reload.
#[derive(Default)]
pub struct GroupStates {
    states: Mutex<HashMap<String, Vec<Arc<PeerState>>>>,
    /// The last results of repeated name lookups.
    found: Mutex<HashMap<String, Vec<Found>>>,
    /// The requests that wait for a peer.
    queue: Arc<Queue>,
    /// The requests and retries.
    budget: RetryBudget,
}

impl GroupStates {
    /// The state of the peer with that name; `nth` distinguishes peers with the same name (an
    /// address may be written twice).
    pub fn state(&self, name: &str, nth: usize, weight: u32) -> Arc<PeerState> {
        let mut states = self.states();
        let own = states.entry(name.to_owned()).or_default();
        while own.len() <= nth {
            own.push(PeerState::new(weight));
        }
        Arc::clone(&own[nth])
    }

    /// Removes the states of peers that no configuration and no request uses.
    pub(crate) fn forget_unused(&self) {
        self.states().retain(|_, states| states.iter().any(is_used));
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(crate) fn budget(&self) -> &RetryBudget {
        &self.budget
    }

    fn states(&self) -> MutexGuard<'_, HashMap<String, Vec<Arc<PeerState>>>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last result for a key.
    pub(crate) fn remembered(&self, key: &str) -> Vec<Found> {
        self.found().get(key).cloned().unwrap_or_default()
    }

    /// Keeps a result.
    pub(crate) fn remember(&self, key: &str, found: &[Found]) {
        self.found().insert(key.to_owned(), found.to_vec());
    }

    fn found(&self) -> MutexGuard<'_, HashMap<String, Vec<Found>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_used(state: &Arc<PeerState>) -> bool {
    Arc::strong_count(state) > 1
}
