//! Smooth weighted round robin: each choice raises every peer by its weight, takes the highest,
//! and lowers it by what all were raised.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Choice, bound};
use crate::group::Peer;

pub(super) fn next<'a>(
    peers: &'a [Arc<Peer>],
    choice: &Choice,
    now_ms: u64,
) -> Option<&'a Arc<Peer>> {
    let sticky = peers
        .iter()
        .find(|peer| bound(choice, peer))
        .filter(|peer| !choice.was_tried(peer) && peer.takes_bound(now_ms));
    if let Some(peer) = sticky
        && is_spent(peers, peer)
    {
        return Some(peer);
    }
    let mut total = 0;
    let mut best: Option<(&Arc<Peer>, i64)> = None;
    for peer in peers {
        if choice.was_tried(peer) || !peer.is_available(now_ms) {
            continue;
        }
        let raise = peer.raise(now_ms);
        let current = &peer.state().current_weight;
        let weight = current.load(Ordering::Relaxed) + raise;
        current.store(weight, Ordering::Relaxed);
        total += raise;
        if best.is_none_or(|(_, most)| weight > most) {
            best = Some((peer, weight));
        }
    }
    let peer = sticky.or(best.map(|(peer, _)| peer))?;
    let current = &peer.state().current_weight;
    current.store(current.load(Ordering::Relaxed) - total, Ordering::Relaxed);
    Some(peer)
}

/// Whether a peer got so much more than its share by bound requests that weights are left alone
/// for this one: else it would be made up for endlessly later.
fn is_spent(peers: &[Arc<Peer>], peer: &Peer) -> bool {
    let total: i64 = peers.iter().map(|peer| peer.weight()).sum();
    let limit = -(total - peer.weight()) * Peer::WEIGHT_UNIT;
    peer.state().current_weight.load(Ordering::Relaxed) <= limit
}
