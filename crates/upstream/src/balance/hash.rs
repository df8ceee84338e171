//! `hash`: the remainder of a key's CRC-32, as in Cache::Memcached.

use std::sync::Arc;

use super::choice::Choice;
use super::crc32::Crc32;
use super::weights::{at_weight, total_weight};
use crate::peer::Peer;

pub(super) fn next<'a>(
    peers: &'a [Arc<Peer>],
    choice: &mut Choice,
    now_ms: u64,
) -> Option<&'a Arc<Peer>> {
    if choice.key.is_empty() {
        return None;
    }
    let total = total_weight(peers);
    loop {
        let mut sum = Crc32::new();
        if choice.rehashes > 0 {
            sum = sum.with(choice.rehashes.to_string().as_bytes());
        }
        let sum = (sum.with(&choice.key).value() >> 16) & 0x7fff;
        choice.rehashes += 1;
        let hash = (choice.hash.unwrap_or(0) + u64::from(sum)) & u64::from(u32::MAX);
        choice.hash = Some(hash);
        let peer = at_weight(peers, hash % total)?;
        if choice.allows(peer, now_ms) {
            return Some(peer);
        }
        if choice.proposal_failed() {
            return None;
        }
    }
}
