//! Smooth weighted round robin: each choice raises every peer by its weight, takes the highest, and
//! lowers that one by the sum.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::choice::Choice;
use crate::peer::Peer;

pub(super) fn next<'a>(
    peers: &'a [Arc<Peer>],
    choice: &Choice,
    now_ms: u64,
) -> Option<&'a Arc<Peer>> {
    let Some(bound) = choice.bound(peers, now_ms) else {
        return among(peers, choice, now_ms, |_| true);
    };
    if !is_spent(peers, bound) {
        let (_, total) = raise(peers, choice, now_ms, |_| true);
        lower(bound, total);
    }
    Some(bound)
}

/// Round robin among the peers that `of` accepts.
pub(super) fn among<'a>(
    peers: &'a [Arc<Peer>],
    choice: &Choice,
    now_ms: u64,
    of: impl Fn(&Peer) -> bool,
) -> Option<&'a Arc<Peer>> {
    let (best, total) = raise(peers, choice, now_ms, of);
    let best = best?;
    lower(best, total);
    Some(best)
}

/// Raises the peers; returns the highest, and the sum.
fn raise<'a>(
    peers: &'a [Arc<Peer>],
    choice: &Choice,
    now_ms: u64,
    of: impl Fn(&Peer) -> bool,
) -> (Option<&'a Arc<Peer>>, i64) {
    let mut total = 0;
    let mut best: Option<(&Arc<Peer>, i64)> = None;
    for peer in peers {
        if !of(peer) || !choice.allows(peer, now_ms) {
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
    (best.map(|(peer, _)| peer), total)
}

fn lower(peer: &Peer, total: i64) {
    let current = &peer.state().current_weight;
    current.store(current.load(Ordering::Relaxed) - total, Ordering::Relaxed);
}

/// Whether bound requests gave a peer so much more than its share that its weight is left alone
/// this time: otherwise the compensation would last too long.
fn is_spent(peers: &[Arc<Peer>], peer: &Peer) -> bool {
    let total: i64 = peers.iter().map(|peer| peer.weight()).sum();
    let limit = -(total - peer.weight()) * Peer::WEIGHT_UNIT;
    peer.state().current_weight.load(Ordering::Relaxed) <= limit
}
