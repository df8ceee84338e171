//! Asking a split.

use turnpike_plan::variables::{Evaluate, Sources, Subject};

use super::plan::Split;

impl<S: Subject> Evaluate<S> for Split {
    fn evaluate(&self, subject: &S, out: &mut Vec<u8>) -> bool {
        let hash = murmur2(&self.key.value(subject));
        let part = self
            .parts
            .iter()
            .find(|part| part.limit.is_none_or(|limit| hash < limit));
        if let Some(part) = part {
            out.extend_from_slice(&part.value);
        }
        true
    }

    fn sources(&self) -> Sources {
        Sources::of([&self.key])
    }
}

/// MurmurHash2 with a seed of 0: the hash that nginx splits by.
pub(super) fn murmur2(text: &[u8]) -> u32 {
    const FACTOR: u32 = 0x5bd1_e995;
    let mut hash = text.len() as u32;
    let (words, rest) = text.as_chunks::<4>();
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(FACTOR);
        word ^= word >> 24;
        hash = hash.wrapping_mul(FACTOR) ^ word.wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> 15
}
