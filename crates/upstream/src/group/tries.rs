//! The tries of one request: the next peer, and the result.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Group;
use crate::balance;
use crate::balance::choice::{Choice, Selection};
use crate::balance::method::Balancer;
use crate::peer::picked::Picked;

/// No peer can be used: `no live upstreams`.
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

    /// The number of tries left after the current one.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Limits the number of tries (`proxy_next_upstream_tries`); called before the first.
    pub fn limit(&mut self, tries_max: u32) {
        self.left = self.left.min(tries_max);
    }

    /// The next peer, at this monotonic time.
    ///
    /// # Errors
    /// Every peer was tried, is down, has failed too often or is busy.
    pub fn next(&mut self, now_ms: u64) -> Result<Picked, NoPeer> {
        let members = self.group.members();
        let single = members.is_single();
        let peer = balance::choose(&members, &mut self.choice, now_ms).ok_or(NoPeer)?;
        let state = peer.state();
        // It is counted under the lock, so that `max_conns` is exact.
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

    /// Allows one more try, since the last one used a kept connection, which the peer may have
    /// closed before it got the request. As in nginx, the peer still counts as tried: it is used
    /// again only if it is the only one.
    pub fn allow_another(&mut self) {
        self.left += 1;
    }
}
