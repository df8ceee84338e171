//! Counts of requests in progress by key, shared by all lanes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::common::limits::{CountsRejections, Rejections};
use crate::common::shards::Shards;

/// Bytes of a zone that one key is counted with: what nginx takes on 64-bit machines, so that
/// sizes in configurations keep their meaning.
const ENTRY_BYTES: u64 = 64;

/// Bytes of a key that take no block of their own: enough for an address,
/// in binary or as IPv4 text.
const INLINE_BYTES: usize = 32;

type Key = SmallVec<[u8; INLINE_BYTES]>;

/// Counts by key.
pub(super) struct CountZone {
    pub(super) rejections: Rejections,
    shards: Shards<Shard>,
}

struct Shard {
    counts: HashMap<Key, u32>,
    /// Keys that it may hold.
    entries_max: usize,
}

/// What came of counting a request.
pub(super) enum Admission {
    /// The request is counted until the guard is dropped.
    Within(Guard),
    /// There are enough already.
    Above,
    /// The zone has no room for another key.
    NoRoom,
}

/// Counts a request while it lives.
pub(super) struct Guard {
    zone: Arc<CountZone>,
    key: Key,
}

impl CountsRejections for CountZone {
    fn rejections(&self) -> &Rejections {
        &self.rejections
    }
}

impl CountZone {
    /// A zone of that size.
    pub(super) fn new(size_bytes: u64) -> CountZone {
        let entries = (size_bytes / ENTRY_BYTES).max(1);
        let entries_max = usize::try_from(entries).unwrap_or(usize::MAX);
        CountZone {
            rejections: Rejections::default(),
            shards: Shards::new(entries, |count| Shard {
                counts: HashMap::new(),
                entries_max: entries_max.div_ceil(count),
            }),
        }
    }

    /// Counts a request, unless there are `most` of its key.
    pub(super) fn count(self: &Arc<Self>, key: &[u8], most: u32) -> Admission {
        let mut shard = self.shards.of(key);
        let is_full = shard.counts.len() >= shard.entries_max;
        let key = Key::from_slice(key);
        match shard.counts.entry(key.clone()) {
            Entry::Occupied(entry) if *entry.get() >= most => return Admission::Above,
            Entry::Occupied(mut entry) => *entry.get_mut() += 1,
            Entry::Vacant(_) if is_full => return Admission::NoRoom,
            Entry::Vacant(entry) => {
                entry.insert(1);
            }
        }
        Admission::Within(Guard {
            zone: Arc::clone(self),
            key,
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut shard = self.zone.shards.of(&self.key);
        if let Some(count) = shard.counts.get_mut(self.key.as_slice()) {
            *count -= 1;
            if *count == 0 {
                shard.counts.remove(self.key.as_slice());
            }
        }
    }
}
