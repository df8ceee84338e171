//! Counts of requests in progress by key, shared by all lanes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a zone that one key is counted with: what nginx takes on 64-bit machines, so that
/// sizes in configurations keep their meaning.
const ENTRY_BYTES: u64 = 64;

/// Shards of a zone that is large enough to be parted by the key's hash.
const SHARDS: usize = 16;

/// Entries below which a zone stays whole: parts of a small zone would fill up unevenly.
const PARTED_ENTRIES_MIN: u64 = 4096;

type Shard = HashMap<Arc<[u8]>, u32>;

/// Counts by key.
pub(super) struct CountZone {
    hasher: RandomState,
    shards: Vec<Mutex<Shard>>,
    /// Keys that one shard may hold.
    entries_max: usize,
}

/// What came of counting a request.
pub(super) enum Answer {
    /// It is counted until the guard is dropped.
    Within(Guard),
    /// There are enough already.
    Above,
    /// The zone has no room for another key.
    NoRoom,
}

/// Counts a request while it lives.
pub(super) struct Guard {
    zone: Arc<CountZone>,
    key: Arc<[u8]>,
}

impl CountZone {
    /// A zone of that size.
    pub(super) fn new(size_bytes: u64) -> CountZone {
        let entries = (size_bytes / ENTRY_BYTES).max(1);
        let count = if entries < PARTED_ENTRIES_MIN {
            1
        } else {
            SHARDS
        };
        let entries = usize::try_from(entries).unwrap_or(usize::MAX);
        CountZone {
            hasher: RandomState::new(),
            shards: (0..count).map(|_| Mutex::default()).collect(),
            entries_max: entries.div_ceil(count),
        }
    }

    /// Counts a request, unless there are `most` of its key.
    pub(super) fn count(self: &Arc<Self>, key: &[u8], most: u32) -> Answer {
        let mut shard = self.shard(key);
        let is_full = shard.len() >= self.entries_max;
        let key: Arc<[u8]> = key.into();
        match shard.entry(Arc::clone(&key)) {
            Entry::Occupied(entry) if *entry.get() >= most => return Answer::Above,
            Entry::Occupied(mut entry) => *entry.get_mut() += 1,
            Entry::Vacant(_) if is_full => return Answer::NoRoom,
            Entry::Vacant(entry) => {
                entry.insert(1);
            }
        }
        Answer::Within(Guard {
            zone: Arc::clone(self),
            key,
        })
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        let index = match self.shards.len() {
            1 => 0,
            count => self.hasher.hash_one(key) as usize % count,
        };
        let shard = self.shards[index].lock();
        shard.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut shard = self.zone.shard(&self.key);
        if let Some(count) = shard.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                shard.remove(&self.key);
            }
        }
    }
}
