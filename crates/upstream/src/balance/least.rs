//! The choice of the peer with the least of a measure for its weight; round robin among equals.

use std::sync::Arc;

use super::choice::Choice;
use super::round_robin;
use crate::peer::Peer;

pub(super) fn next<'a>(
    peers: &'a [Arc<Peer>],
    choice: &Choice,
    now_ms: u64,
    cost: impl Fn(&Peer) -> u64,
) -> Option<&'a Arc<Peer>> {
    let mut best: Option<(&Arc<Peer>, u128, u128)> = None;
    let mut many = false;
    for peer in peers.iter().filter(|peer| choice.allows(peer, now_ms)) {
        let (own, weight) = (u128::from(cost(peer)), share(peer, now_ms));
        match best {
            Some((_, least, of)) if own * of == least * weight => many = true,
            Some((_, least, of)) if own * of > least * weight => {}
            _ => {
                best = Some((peer, own, weight));
                many = false;
            }
        }
    }
    let (peer, least, of) = best?;
    if !many {
        return Some(peer);
    }
    let equal = |peer: &Peer| u128::from(cost(peer)) * of == least * share(peer, now_ms);
    // Another lane may have ended a request since, so that no peer is equal any more.
    round_robin::among(peers, choice, now_ms, equal).or(Some(peer))
}

fn share(peer: &Peer, now_ms: u64) -> u128 {
    u128::try_from(peer.weight() * peer.share(now_ms)).unwrap_or(1)
}
