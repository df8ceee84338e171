//! The choice of the next peer: one file per method. The methods are nginx's, so that the same
//! configuration sends the same keys to the same servers.

pub(crate) mod choice;
mod consistent;
mod crc32;
mod hash;
mod ip_hash;
mod least;
pub(crate) mod members;
pub(crate) mod method;
mod random;
mod round_robin;
#[cfg(test)]
mod tests;
mod weights;

use std::sync::Arc;

use crate::peer::{Mode, Peer};
use choice::Choice;
use consistent::Ring;
use members::Members;
use method::Balancer;

/// The next peer of a request: a primary, or else a backup.
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
        // Round robin also serves the backups, and all peers after too many failed proposals.
        _ => choice.backup || peers.len() < 2 || choice.has_given_up(),
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
