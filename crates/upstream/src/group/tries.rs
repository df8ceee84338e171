//! The tries of one request: which peer is next, and what came of it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::Group;
use super::peer::{FailReason, Mode, Peer};
use crate::address::Address;
use crate::balance::{self, Balancer, Choice, Until};
use turnpike_lane::sys::process::monotonic_ns;

/// What a choice may go by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'a> {
    /// The key of `hash`.
    pub key: &'a [u8],
    /// The client of the request; `None` for unix sockets.
    pub client: Option<IpAddr>,
    /// The identity of the peer that the request is bound to.
    pub sticky: Option<&'a [u8]>,
    /// A random number.
    pub random: u64,
}

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

/// A peer that a request was given. It counts as busy until this is dropped.
pub struct Picked {
    peer: Arc<Peer>,
    /// The peer is the only one: its failures are not held against it.
    single: bool,
    /// Counted among the requests under way whose time matters, until what.
    inflight: Option<Until>,
    picked_ms: u64,
    /// Whether the head's time was noted.
    noted: bool,
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
        if inflight.is_some() {
            state.times.began(now_ms);
        }
        Ok(Picked {
            peer,
            single,
            inflight,
            picked_ms: now_ms,
            noted: false,
        })
    }

    /// Allows one try more, since the last one was on a kept connection, which the peer may have
    /// closed before it saw the request. As in nginx, the peer was tried all the same: only one
    /// that has no others beside it is asked again.
    pub fn allow_another(&mut self) {
        self.left += 1;
    }
}

impl Picked {
    /// The peer.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// The address as text (`$upstream_addr`).
    pub fn name(&self) -> &str {
        self.peer.name()
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        self.peer.address()
    }

    /// Holds a failure against the peer. `true`: that took it out (`upstream server temporarily
    /// disabled`).
    pub fn failed(self, reason: FailReason, now_ms: u64) -> bool {
        self.peer.state().count_failure(reason);
        if self.single {
            self.peer.state().fails.store(0, Ordering::Relaxed);
            return false;
        }
        self.peer.failed(now_ms)
    }

    /// Says that the head of the response is there. Only `least_time header inflight` asks for it,
    /// and takes the end of the response where it is not told.
    pub fn header_received(&mut self, now_ms: u64) {
        if self.inflight == Some(Until::Header) {
            self.inflight = None;
            self.noted = true;
            let header_ms = now_ms.saturating_sub(self.picked_ms);
            self.peer.state().times.header(header_ms);
            self.peer.state().times.done(now_ms, header_ms);
        }
    }

    /// The peer was reached. Where a session may be long, that says already that it works again.
    pub fn connected(&self, now_ms: u64) {
        self.worked(now_ms);
    }

    /// The peer is left for the next one, but works: it answered with a status such as 404 that
    /// another peer may know better.
    pub fn passed_over(self, now_ms: u64) {
        self.worked(now_ms);
    }

    /// The peer has answered; whether the answer was liked is another matter. Times are those
    /// until the head and until the end of the response.
    pub fn succeeded(self, now_ms: u64, header_ms: u64, response_ms: u64) {
        let times = &self.peer.state().times;
        if !self.noted {
            times.header(header_ms);
        }
        times.response(response_ms);
        self.worked(now_ms);
    }

    fn worked(&self, now_ms: u64) {
        if self.single {
            self.peer.state().fails.store(0, Ordering::Relaxed);
        } else {
            self.peer.answered(now_ms);
        }
    }

    /// Whether the peer only finishes what is bound to it.
    pub fn is_draining(&self) -> bool {
        self.peer.mode() == Mode::Draining
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        if self.inflight.is_some() {
            let now_ms = monotonic_ns() / 1_000_000;
            let took_ms = now_ms.saturating_sub(self.picked_ms);
            self.peer.state().times.done(now_ms, took_ms);
        }
        self.peer.state().active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Numbers of peers; few are ever tried.
pub(crate) type Tried = SmallVec<[u64; 4]>;
