//! `ip_hash`: the choice by the client's network.

use std::net::IpAddr;
use std::sync::Arc;

use super::choice::Choice;
use super::weights::{at_weight, total_weight};
use crate::peer::Peer;

/// The seed, the factor and the modulus of the hash: nginx's.
const SEED: u64 = 89;
const FACTOR: u64 = 113;
const MODULUS: u64 = 6271;

pub(super) fn next<'a>(
    peers: &'a [Arc<Peer>],
    choice: &mut Choice,
    now_ms: u64,
) -> Option<&'a Arc<Peer>> {
    let total = total_weight(peers);
    let mut hash = choice.hash.unwrap_or(SEED);
    loop {
        hash = with_address(hash, choice.client);
        let peer = at_weight(peers, hash % total)?;
        if choice.allows(peer, now_ms) {
            choice.hash = Some(hash);
            return Some(peer);
        }
        if choice.proposal_failed() {
            return None;
        }
    }
}

fn with_address(hash: u64, client: Option<IpAddr>) -> u64 {
    let step = |hash: u64, byte: &u8| (hash * FACTOR + u64::from(*byte)) % MODULUS;
    match client {
        Some(IpAddr::V4(address)) => address.octets()[..3].iter().fold(hash, step),
        Some(IpAddr::V6(address)) => address.octets().iter().fold(hash, step),
        None => [0; 3].iter().fold(hash, step),
    }
}
