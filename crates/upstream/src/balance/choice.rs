//! The choice of a peer for one request: its inputs and its state.

use std::net::IpAddr;
use std::sync::Arc;

use smallvec::SmallVec;
use turnpike_lane::random::Random;

use super::method::Balancer;
use crate::peer::Peer;

/// The failed proposals of hashing or random choice, in one request, after which round robin is
/// used; nginx's number.
const PROPOSALS_MAX: u32 = 20;

/// The inputs of a choice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'a> {
    /// The key of `hash`.
    pub key: &'a [u8],
    /// The client of the request; `None` for unix sockets.
    pub client: Option<IpAddr>,
    /// The identity of the peer that the request is bound to by `sticky`.
    pub sticky: Option<&'a [u8]>,
    /// A random number.
    pub random: u64,
}

/// The state of the choice for one request.
pub(crate) struct Choice {
    pub(super) balancer: Balancer,
    pub(super) tried: Tried,
    /// Whether the backups are used now.
    pub(super) backup: bool,
    sticky: Option<Box<[u8]>>,
    pub(super) key: Box<[u8]>,
    pub(super) client: Option<IpAddr>,
    random: Random,
    /// The number of failed proposals.
    proposals: u32,
    /// The hash to continue from; `None` before the first.
    pub(super) hash: Option<u64>,
    pub(super) rehashes: u32,
}

impl Choice {
    pub(crate) fn new(balancer: &Balancer, selection: &Selection<'_>) -> Choice {
        let hashed = matches!(balancer, Balancer::Hash | Balancer::ConsistentHash);
        let key = if hashed { selection.key } else { b"" };
        Choice {
            balancer: *balancer,
            tried: Tried::new(),
            backup: false,
            sticky: selection.sticky.map(Box::from),
            key: key.into(),
            client: selection.client,
            random: Random::new(selection.random),
            proposals: 0,
            hash: None,
            rehashes: 0,
        }
    }

    /// Begins anew, since no peer was tried.
    pub(crate) fn restart(&mut self) {
        self.tried.clear();
        self.backup = false;
        self.proposals = 0;
        self.hash = None;
        self.rehashes = 0;
    }

    fn was_tried(&self, peer: &Peer) -> bool {
        self.tried.contains(&peer.state().id())
    }

    /// Whether a peer may be chosen.
    pub(super) fn allows(&self, peer: &Peer, now_ms: u64) -> bool {
        !self.was_tried(peer) && peer.is_available(now_ms)
    }

    /// Whether the request is bound to this peer.
    pub(super) fn is_bound_to(&self, peer: &Peer) -> bool {
        match &self.sticky {
            Some(sticky) => peer.sticky_id().as_bytes() == &**sticky,
            None => false,
        }
    }

    /// The peer that the request is bound to, where it takes requests.
    pub(super) fn bound<'a>(&self, peers: &'a [Arc<Peer>], now_ms: u64) -> Option<&'a Arc<Peer>> {
        self.sticky.as_ref()?;
        peers
            .iter()
            .find(|peer| self.is_bound_to(peer))
            .filter(|peer| !self.was_tried(peer) && peer.accepts_bound(now_ms))
    }

    /// Counts a failed proposal; returns whether there were too many.
    pub(super) fn proposal_failed(&mut self) -> bool {
        self.proposals += 1;
        self.has_given_up()
    }

    /// Whether there were too many failed proposals.
    pub(super) fn has_given_up(&self) -> bool {
        self.proposals > PROPOSALS_MAX
    }

    pub(super) fn random(&self) -> u64 {
        self.random.next()
    }
}

/// The numbers of peers; few are ever tried.
type Tried = SmallVec<[u64; 4]>;
