//! Who is next: one file a method. Methods are nginx's, so that the same configuration sends the
//! same keys to the same servers.

mod consistent;
mod crc32;
mod hash;
mod ip_hash;
mod least;
mod random;
mod round_robin;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use turnpike_lane::random::Random;

pub(crate) use consistent::Ring;

use crate::group::{Members, Mode, Peer, Selection, Tried};

/// Peers that hashing and chance may propose in vain, in one request, before peers are taken in
/// turn; nginx's number.
const PROPOSALS_MAX: u32 = 20;

/// A method of choosing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancer {
    /// Weighted round robin, smooth.
    #[default]
    RoundRobin,
    /// The peer with the fewest requests for its weight.
    LeastConnections,
    /// By the client's address: the first three bytes of IPv4, all of IPv6.
    IpHash,
    /// By a key: the remainder of its hash.
    Hash,
    /// By a key, so that a peer more or less moves few keys (ketama).
    ConsistentHash,
    /// Any peer.
    Random,
    /// The better of two.
    RandomTwo(Measure),
    /// The peer that should be done first.
    LeastTime {
        until: Until,
        /// Whether requests under way count too.
        inflight: bool,
    },
}

/// What the better of two has less of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Requests at the moment.
    Connections,
    Time(Until),
}

/// Which time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until the response's head is there.
    Header,
    /// Until all of it is.
    LastByte,
}

/// Where the choosing of one request is.
pub(crate) struct Choice {
    balancer: Balancer,
    tried: Tried,
    /// Whether the backups are asked by now.
    backup: bool,
    sticky: Option<Box<[u8]>>,
    key: Box<[u8]>,
    client: Option<IpAddr>,
    random: Random,
    /// Proposals in vain.
    proposals: u32,
    /// What hashing goes on from; `None` before the first.
    hash: Option<u64>,
    rehashes: u32,
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

    fn was_tried(&self, peer: &Peer) -> bool {
        self.tried.contains(&peer.state().id())
    }

    /// Whether a peer may be chosen.
    fn allows(&self, peer: &Peer, now_ms: u64) -> bool {
        !self.was_tried(peer) && peer.is_available(now_ms)
    }

    /// Whether the request is bound to this peer.
    fn is_bound_to(&self, peer: &Peer) -> bool {
        match &self.sticky {
            Some(sticky) => peer.sticky_id().as_bytes() == &**sticky,
            None => false,
        }
    }

    /// The peer that the request is bound to, where it takes requests.
    fn bound<'a>(&self, peers: &'a [Arc<Peer>], now_ms: u64) -> Option<&'a Arc<Peer>> {
        self.sticky.as_ref()?;
        peers
            .iter()
            .find(|peer| self.is_bound_to(peer))
            .filter(|peer| !self.was_tried(peer) && peer.takes_bound(now_ms))
    }

    /// Counts a proposal in vain; whether that was one too many.
    fn proposed_in_vain(&mut self) -> bool {
        self.proposals += 1;
        self.proposals > PROPOSALS_MAX
    }

    fn random(&self) -> u64 {
        self.random.next()
    }
}

/// The next peer of a request: from those asked first, then from the backups.
pub(crate) fn choose(members: &Members, choice: &mut Choice, now_ms: u64) -> Option<Arc<Peer>> {
    if members.is_single() {
        let peer = &members.primary[0];
        let usable =
            peer.mode() == Mode::Up || (peer.mode() == Mode::Draining && choice.is_bound_to(peer));
        let usable = usable && peer.has_room() && peer.state().is_healthy();
        return usable.then(|| Arc::clone(peer));
    }
    if !choice.backup {
        if let Some(peer) = among(&members.primary, members.ring(), choice, now_ms) {
            return Some(peer);
        }
        if members.backup.is_empty() {
            return None;
        }
        choice.backup = true;
        choice.tried.clear();
    }
    among(&members.backup, None, choice, now_ms)
}

fn among(
    peers: &[Arc<Peer>],
    ring: Option<&Ring>,
    choice: &mut Choice,
    now_ms: u64,
) -> Option<Arc<Peer>> {
    let peer = proposed(peers, ring, choice, now_ms)?;
    choice.tried.push(peer.state().id());
    peer.was_chosen(now_ms);
    Some(Arc::clone(peer))
}

fn proposed<'a>(
    peers: &'a [Arc<Peer>],
    ring: Option<&Ring>,
    choice: &mut Choice,
    now_ms: u64,
) -> Option<&'a Arc<Peer>> {
    let by_turn = match choice.balancer {
        Balancer::RoundRobin => true,
        Balancer::LeastConnections | Balancer::LeastTime { .. } => false,
        // Backups are taken in turn, and so is everything once proposals were in vain.
        _ => choice.backup || peers.len() < 2 || choice.proposals > PROPOSALS_MAX,
    };
    if by_turn {
        return round_robin::next(peers, choice, now_ms);
    }
    if let Some(peer) = choice.bound(peers, now_ms) {
        return Some(peer);
    }
    let proposal = match choice.balancer {
        Balancer::LeastConnections => {
            let active = |peer: &Peer| u64::from(peer.state().active());
            return least::next(peers, choice, now_ms, active);
        }
        Balancer::LeastTime { until, inflight } => {
            if inflight {
                peers
                    .iter()
                    .for_each(|peer| peer.state().times.look(now_ms));
            }
            let estimate = |peer: &Peer| peer.estimated_ms(until, now_ms);
            return least::next(peers, choice, now_ms, estimate);
        }
        Balancer::RoundRobin => None,
        Balancer::IpHash => ip_hash::next(peers, choice, now_ms),
        Balancer::Hash => hash::next(peers, choice, now_ms),
        Balancer::ConsistentHash => {
            ring.and_then(|ring| consistent::next(ring, peers, choice, now_ms))
        }
        Balancer::Random => random::next(peers, choice, now_ms),
        Balancer::RandomTwo(measure) => random::better(peers, choice, measure, now_ms),
    };
    proposal.or_else(|| round_robin::next(peers, choice, now_ms))
}

/// The peer at a place of the line that peers make, each as long as its weight.
fn at_weight(peers: &[Arc<Peer>], place: u64) -> Option<&Arc<Peer>> {
    let mut place = i64::try_from(place).ok()?;
    for peer in peers {
        place -= peer.weight();
        if place < 0 {
            return Some(peer);
        }
    }
    None
}

/// The weights of all peers.
fn total_weight(peers: &[Arc<Peer>]) -> u64 {
    let total: i64 = peers.iter().map(|peer| peer.weight()).sum();
    u64::try_from(total).unwrap_or(0).max(1)
}
