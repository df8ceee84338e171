//! The tries of one request: which peer is next, and what came of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Group;
use crate::balance;
use crate::balance::choice::{Choice, Selection};
use crate::balance::method::Balancer;
use crate::peer::picked::Picked;

/// No peer can be asked: `no live upstreams`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPeer;

impl fmt::Display for NoPeer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("no live upstreams")
    }
}

impl std::error::Error for NoPeer {}

/// The tries of one request.
pub struct Tries {
    group: Arc<Group>,
    left: u32,
    choice: Choice,
}

impl Tries {
    pub(super) fn new(group: Arc<Group>, selection: &Selection<'_>) -> Tries {
        let left = group.members().tries();
        let choice = Choice::new(&group.settings().balancer, selection);
        Tries {
            group,
            left,
            choice,
        }
    }

    /// The group.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// How many tries are left after the present one.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Allows no more than so many in all (`proxy_next_upstream_tries`); called before the first.
    pub fn limit(&mut self, tries_max: u32) {
        self.left = self.left.min(tries_max);
    }

    /// The next peer, at that monotonic time.
    ///
    /// # Errors
    /// When every peer was tried, is down, has failed too often or is busy.
    pub fn next(&mut self, now_ms: u64) -> Result<Picked, NoPeer> {
        let members = self.group.members();
        let single = members.is_single();
        let peer = balance::choose(&members, &mut self.choice, now_ms).ok_or(NoPeer)?;
        let state = peer.state();
        // Counted under the lock, so that `max_conns` holds exactly.
        state.active.fetch_add(1, Ordering::Relaxed);
        state.requests.fetch_add(1, Ordering::Relaxed);
        drop(members);
        self.left = self.left.saturating_sub(1);
        let inflight = match self.group.settings().balancer {
            Balancer::LeastTime {
                until,
                inflight: true,
            } => Some(until),
            _ => None,
        };
        Ok(Picked::new(peer, single, inflight, now_ms))
    }

    /// Allows one try more, since the last one was on a kept connection, which the peer may have
    /// closed before it saw the request. As in nginx, the peer was tried all the same: only one
    /// that has no others beside it is asked again.
    pub fn allow_another(&mut self) {
        self.left += 1;
    }
}
