//! What is in a zone, and what requests made of it: for lists and metrics.

use std::sync::atomic::Ordering;

use super::{FULL, Storage, Zone};
use crate::tally::{Tally, Use};
use crate::why::WhyNotStored;

/// What is in a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub keys: u64,
    /// Share of the zone that is taken, in millionths.
    pub filled_ppm: u64,
    /// Bytes of its memory, or of its files in whole blocks.
    pub bytes: u64,
    /// Keys that were evicted for others.
    pub evicted: u64,
}

impl Zone {
    /// What is in it.
    pub fn contents(&self) -> Contents {
        Contents {
            keys: self.index.len() as u64,
            filled_ppm: (u128::from(self.index.weight()) * 1_000_000 / u128::from(FULL)) as u64,
            bytes: self.bytes.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }

    /// The bytes that it may hold at most.
    pub fn bytes_max(&self) -> u64 {
        match &self.place {
            Storage::Memory(most) => *most,
            Storage::Disk(disk) => disk.settings.bytes_max,
        }
    }

    /// Where a lane counts what it does with the zone.
    pub fn tally(&self, lane: usize) -> &Tally {
        self.tallies.of(lane)
    }

    /// Requests answered so, by all lanes.
    pub fn uses(&self, one: Use) -> u64 {
        self.tallies.uses(one)
    }

    /// Requests answered, and those of them that were answered from the zone.
    pub fn requests_and_hits(&self) -> (u64, u64) {
        let hits = Use::ALL.iter().filter(|one| one.is_from_the_cache());
        let sum = |uses: u64, one: &Use| uses + self.uses(*one);
        (Use::ALL.iter().fold(0, sum), hits.fold(0, sum))
    }

    /// Responses not stored for this reason, by all lanes.
    pub fn not_stored(&self, why: WhyNotStored) -> u64 {
        self.tallies.not_stored(why)
    }
}
