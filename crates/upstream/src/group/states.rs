//! States of a group's peers, kept while configurations come and go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::peer::PeerState;
use crate::resolve::found::Found;

/// The states of one group by the peers' names. It lives as long as some configuration has the
/// group, so a peer that stays keeps its failures, requests and commanded mode over a reload.
#[derive(Default)]
pub struct GroupStates {
    states: Mutex<HashMap<String, Vec<Arc<PeerState>>>>,
    /// What was found last of names that are looked up.
    found: Mutex<HashMap<String, Vec<Found>>>,
}

impl GroupStates {
    /// The state of the peer of that name; `nth` tells those of the same name apart (an address
    /// may be written twice).
    pub fn state(&self, name: &str, nth: usize, weight: u32) -> Arc<PeerState> {
        let mut states = self.states();
        let own = states.entry(name.to_owned()).or_default();
        while own.len() <= nth {
            own.push(PeerState::new(weight));
        }
        Arc::clone(&own[nth])
    }

    /// Forgets the states of peers that no configuration and no request has any more.
    pub(crate) fn forget_unused(&self) {
        self.states().retain(|_, states| states.iter().any(is_used));
    }

    fn states(&self) -> MutexGuard<'_, HashMap<String, Vec<Arc<PeerState>>>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found last under a key.
    pub(crate) fn remembered(&self, key: &str) -> Vec<Found> {
        self.found().get(key).cloned().unwrap_or_default()
    }

    /// Remembers what was found.
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
