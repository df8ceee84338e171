//! Peers on a line, each with a length equal to its weight.

use std::sync::Arc;

use crate::peer::Peer;

/// The peer at a position of the line.
pub(super) fn at_weight(peers: &[Arc<Peer>], place: u64) -> Option<&Arc<Peer>> {
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
pub(super) fn total_weight(peers: &[Arc<Peer>]) -> u64 {
    let total: i64 = peers.iter().map(|peer| peer.weight()).sum();
    u64::try_from(total).unwrap_or(0).max(1)
}
