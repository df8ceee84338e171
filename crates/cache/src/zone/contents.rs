//! The content of a zone and its use by requests, for lists and metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Resource, Storage, WEIGHT_MAX, Zone};
use crate::tally::{Tally, Use};
use crate::why::WhyNotStored;

/// The content of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub keys: u64,
    /// The used share of the zone, in parts per million.
    pub filled_ppm: u64,
    /// The bytes of its memory, or of its files in whole blocks.
    pub bytes: u64,
    /// The number of keys that were evicted.
    pub evicted: u64,
}

impl Zone {
    /// The current content.
    pub fn contents(&self) -> Contents {
        Contents {
            keys: self.index.len() as u64,
            filled_ppm: (u128::from(self.index.weight()) * 1_000_000 / u128::from(WEIGHT_MAX))
                as u64,
            bytes: self.stored_bytes.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }

    /// Counts anew what the zone says that it holds. Whoever still reads a response holds its bytes
    /// when it has left the index, so that the zone may say more.
    #[cfg(test)]
    pub(crate) fn check_invariants(&self) {
        let sum = |sum: u64, (_, resource): (_, Arc<Resource>)| sum + self.bytes_of(&resource);
        let indexed = self.index.iter().fold(0, sum);
        assert!(indexed <= self.stored_bytes.load(Ordering::Relaxed));
        assert!(self.index.weight() <= WEIGHT_MAX);
    }

    /// The resources with these keys, at most so many. Every key is looked at: too long for a lane.
    pub fn look_for(&self, is_wanted: &dyn Fn(&[u8]) -> bool, most: usize) -> Vec<Arc<Resource>> {
        let all = self.index.iter();
        let wanted = all.filter(|(key, _)| is_wanted(key));
        wanted.take(most).map(|(_, resource)| resource).collect()
    }

    /// The limit of its bytes.
    pub fn bytes_max(&self) -> u64 {
        match &self.storage {
            Storage::Memory(most) => *most,
            Storage::Disk(disk) => disk.settings.bytes_max,
        }
    }

    /// The counts of one lane.
    pub fn tally(&self, lane: usize) -> &Tally {
        self.tallies.of(lane)
    }

    /// The requests with this source, in all lanes.
    pub fn uses(&self, one: Use) -> u64 {
        self.tallies.uses(one)
    }

    /// The bytes of content that answers from the zone had, and no server had to send.
    pub fn saved_bytes(&self) -> u64 {
        self.tallies.saved_bytes()
    }

    /// The number of requests, and of those answered from the zone.
    pub fn requests_and_hits(&self) -> (u64, u64) {
        let hits = Use::ALL.iter().filter(|one| one.is_from_the_cache());
        let sum = |uses: u64, one: &Use| uses + self.uses(*one);
        (Use::ALL.iter().fold(0, sum), hits.fold(0, sum))
    }

    /// The responses not stored for this reason, in all lanes.
    pub fn not_stored(&self, why: WhyNotStored) -> u64 {
        self.tallies.not_stored(why)
    }
}
