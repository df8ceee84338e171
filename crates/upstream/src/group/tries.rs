//! The tries of one request: the next peer, and the result.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Group;
use super::queue::{Place, Unqueued};
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
    /// Whether a peer was found.
    has_tried: bool,
    /// The place in the group's queue.
    place: Option<Place>,
}

impl Tries {
    pub(super) fn new(group: Arc<Group>, selection: &Selection<'_>) -> Tries {
        let left = group.tries_max.load(Ordering::Relaxed);
        let choice = Choice::new(&group.settings().balancer, selection);
        Tries {
            group,
            left,
            choice,
            has_tried: false,
            place: None,
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
    /// Every peer was tried, is down, has failed too often or is busy, or other requests wait for
    /// the first that has room.
    pub fn next(&mut self, now_ms: u64) -> Result<Picked, NoPeer> {
        let queue = self.group.settings().queue.is_some();
        let queue = queue.then(|| Arc::clone(self.group.states().queue()));
        if let Some(queue) = &queue
            && !self.has_tried
        {
            let is_next = match &self.place {
                Some(place) => place.is_first(),
                None => queue.length() == 0,
            };
            if !is_next {
                return Err(NoPeer);
            }
        }
        let members = self.group.members();
        let single = members.is_single();
        let Some(peer) = balance::choose(&members, &mut self.choice, now_ms) else {
            if queue.is_some() && !self.has_tried {
                self.choice.restart();
            }
            return Err(NoPeer);
        };
        let state = peer.state();
        // It is counted under the lock, so that `max_conns` is exact.
        state.active.fetch_add(1, Ordering::Relaxed);
        state.requests.fetch_add(1, Ordering::Relaxed);
        drop(members);
        self.left = self.left.saturating_sub(1);
        if !self.has_tried && self.group.settings().retries.is_some() {
            self.group.states().budget().count_request(now_ms);
        }
        self.has_tried = true;
        self.place = None;
        let inflight = match self.group.settings().balancer {
            Balancer::LeastTime {
                until,
                inflight: true,
            } => Some(until),
            _ => None,
        };
        Ok(Picked::new(peer, single, inflight, now_ms).freeing(queue))
    }

    /// Enters the group's queue; returns how long the request may wait, in milliseconds.
    ///
    /// # Errors
    /// There is no queue for requests that were tried already, or the queue is full.
    pub fn enter_queue(&mut self) -> Result<u64, Unqueued> {
        let limits = self.group.settings().queue.filter(|_| !self.has_tried);
        let limits = limits.ok_or(Unqueued::NoQueue)?;
        let place = self.group.states().queue().enter(limits.requests_max)?;
        self.place = Some(place);
        Ok(limits.timeout_ms)
    }

    /// Waits until it is the request's turn in the queue and a peer may have room. Only the ends of
    /// requests wake it: a peer that recovers, or is added, does not.
    pub async fn woken(&self) {
        match &self.place {
            Some(place) => place.woken().await,
            None => std::future::pending().await,
        }
    }

    /// Whether the group's budget allows a retry now; it is not counted yet.
    pub fn may_retry(&self, now_ms: u64) -> bool {
        let limits = self.group.settings().retries;
        limits.is_none_or(|limits| self.group.states().budget().allows(limits, now_ms))
    }

    /// Counts a retry, if the group's budget allows it.
    pub fn spend_retry(&self, now_ms: u64) -> bool {
        let limits = self.group.settings().retries;
        limits.is_none_or(|limits| self.group.states().budget().spend(limits, now_ms))
    }

    /// Allows one more try, since the last one used a kept connection, which the peer may have
    /// closed before it got the request. As in nginx, the peer still counts as tried: it is used
    /// again only if it is the only one.
    pub fn allow_another(&mut self) {
        self.left += 1;
    }
}
