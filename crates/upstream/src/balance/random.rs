//! `random`: any peer by its weight, or the better of two random ones.

use std::sync::Arc;

use super::choice::Choice;
use super::method::Measure;
use super::weights::{at_weight, total_weight};
use crate::peer::Peer;

pub(super) fn next<'a>(
    peers: &'a [Arc<Peer>],
    choice: &mut Choice,
    now_ms: u64,
) -> Option<&'a Arc<Peer>> {
    let total = total_weight(peers);
    loop {
        let peer = at_weight(peers, choice.random() % total)?;
        if choice.allows(peer, now_ms) {
            return Some(peer);
        }
        if choice.proposal_failed() {
            return None;
        }
    }
}

pub(super) fn better<'a>(
    peers: &'a [Arc<Peer>],
    choice: &mut Choice,
    measure: Measure,
    now_ms: u64,
) -> Option<&'a Arc<Peer>> {
    let total = total_weight(peers);
    let mut first: Option<&Arc<Peer>> = None;
    loop {
        let peer = at_weight(peers, choice.random() % total)?;
        let fresh = first.is_none_or(|first| !Arc::ptr_eq(first, peer));
        if fresh && choice.allows(peer, now_ms) {
            match first {
                None => {
                    first = Some(peer);
                    continue;
                }
                Some(first)
                    if cost(peer, first, measure, now_ms) > cost(first, peer, measure, now_ms) =>
                {
                    return Some(first);
                }
                Some(_) => return Some(peer),
            }
        }
        if choice.proposal_failed() {
            return None;
        }
    }
}

/// The measure of a peer, multiplied by the other's weight.
fn cost(peer: &Peer, other: &Peer, measure: Measure, now_ms: u64) -> u128 {
    let own = match measure {
        Measure::Connections => u64::from(peer.state().active()),
        Measure::Time(until) => peer.estimated_ms(until, now_ms),
    };
    u128::from(own) * u128::try_from(other.weight()).unwrap_or(1)
}
