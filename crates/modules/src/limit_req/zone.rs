//! Leaky buckets by key, shared by all lanes.
//!
//! Excess is counted in thousandths of a request. A bucket leaks by the rate of its zone; a
//! request adds one. Zones are parted into shards by the key's hash, so that lanes seldom meet.

use std::collections::HashMap;
use std::sync::Arc;

use slab::Slab;
use turnpike_lane::recency::Recency;

use crate::common::limits::{CountsRejections, Rejections};
use crate::common::shards::Shards;

/// Bytes of a zone that a key is counted with at least: what nginx takes on 64-bit machines, so
/// that sizes in configurations keep their meaning.
const ENTRY_BYTES_MIN: usize = 128;

/// What of them is not the key.
const NODE_BYTES: usize = 64;

/// Age from which on an empty bucket may be dropped, in milliseconds; nginx's.
const EMPTY_AGE_MS: i64 = 60_000;

/// Buckets by key.
pub(super) struct RateZone {
    pub(super) rejections: Rejections,
    shards: Shards<Shard>,
}

/// What came of asking a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateCheck {
    /// Within rate and burst; so much is in excess.
    Within(i64),
    /// Above them; so much would be in excess.
    Above(i64),
    /// The zone has no room, and nothing in it may be dropped.
    NoRoom,
}

struct Shard {
    index: HashMap<Arc<[u8]>, usize>,
    entries: Slab<Bucket>,
    recency: Recency,
    bytes: usize,
    bytes_max: usize,
}

struct Bucket {
    key: Arc<[u8]>,
    excess: i64,
    last_ms: i64,
    /// Requests that have asked this bucket and are about to ask another: it must stay.
    holds: u32,
}

impl CountsRejections for RateZone {
    fn rejections(&self) -> &Rejections {
        &self.rejections
    }
}

impl RateZone {
    /// A zone of that size.
    pub(super) fn new(size_bytes: u64) -> RateZone {
        let entries = size_bytes / ENTRY_BYTES_MIN as u64;
        let size_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let shards = Shards::new(entries, |count| {
            Shard::new((size_bytes / count).max(ENTRY_BYTES_MIN))
        });
        RateZone {
            rejections: Rejections::default(),
            shards,
        }
    }

    /// Asks whether one more request is within `burst` (in thousandths) at `rate` (thousandths a
    /// second). With `is_last` it is counted at once; otherwise the bucket is held until
    /// [`RateZone::account`] or [`RateZone::release`].
    pub(super) fn ask(
        &self,
        key: &[u8],
        rate: i64,
        burst: i64,
        now_ms: u64,
        is_last: bool,
    ) -> RateCheck {
        let now_ms = now_ms as i64;
        let mut shard = self.shards.of(key);
        let Some(&slot) = shard.index.get(key) else {
            return shard.begin(key, rate, now_ms, is_last);
        };
        shard.recency.touch(slot);
        let bucket = &mut shard.entries[slot];
        let (excess, elapsed_ms) = bucket.with_one_more(rate, now_ms);
        if excess > burst {
            return RateCheck::Above(excess);
        }
        if is_last {
            bucket.count(excess, elapsed_ms, now_ms);
        } else {
            bucket.holds += 1;
        }
        RateCheck::Within(excess)
    }

    /// Counts a request in a bucket that is held; gives the excess.
    pub(super) fn account(&self, key: &[u8], rate: i64, now_ms: u64) -> i64 {
        let now_ms = now_ms as i64;
        let mut shard = self.shards.of(key);
        let Some(&slot) = shard.index.get(key) else {
            return 0;
        };
        let bucket = &mut shard.entries[slot];
        let (excess, elapsed_ms) = bucket.with_one_more(rate, now_ms);
        bucket.count(excess, elapsed_ms, now_ms);
        bucket.holds = bucket.holds.saturating_sub(1);
        excess
    }

    /// Lets go of a bucket that is held, without counting.
    pub(super) fn release(&self, key: &[u8]) {
        let mut shard = self.shards.of(key);
        if let Some(&slot) = shard.index.get(key) {
            let bucket = &mut shard.entries[slot];
            bucket.holds = bucket.holds.saturating_sub(1);
        }
    }

    /// Keys in the zone.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards
            .parts()
            .map(|part| part.lock().entries.len())
            .sum()
    }
}

/// Bytes that a key takes in its zone: nginx's, which gets memory by powers of two.
fn entry_bytes(key: &[u8]) -> usize {
    let bytes = (NODE_BYTES + key.len()).next_power_of_two();
    bytes.max(ENTRY_BYTES_MIN)
}

impl Bucket {
    /// The excess with one more request, and the time since the last one.
    fn with_one_more(&self, rate: i64, now_ms: i64) -> (i64, i64) {
        // Lanes read their clocks at different times: a little backwards is no time at all.
        let elapsed_ms = (now_ms - self.last_ms).max(0);
        let leaked = rate.saturating_mul(elapsed_ms) / 1000;
        ((self.excess - leaked + 1000).max(0), elapsed_ms)
    }

    fn count(&mut self, excess: i64, elapsed_ms: i64, now_ms: i64) {
        self.excess = excess;
        if elapsed_ms > 0 {
            self.last_ms = now_ms;
        }
    }
}

impl Shard {
    fn new(bytes_max: usize) -> Shard {
        Shard {
            index: HashMap::new(),
            entries: Slab::new(),
            recency: Recency::default(),
            bytes: 0,
            bytes_max,
        }
    }

    /// A new key's first request is not in excess.
    fn begin(&mut self, key: &[u8], rate: i64, now_ms: i64, is_last: bool) -> RateCheck {
        self.drop_empty(rate, now_ms);
        let bytes = entry_bytes(key);
        if bytes > self.bytes_max {
            return RateCheck::NoRoom;
        }
        // A long key takes the place of several short ones: each removal brings the end nearer.
        while self.bytes + bytes > self.bytes_max {
            match self.recency.oldest() {
                Some(oldest) if self.entries[oldest].holds == 0 => self.remove(oldest),
                _ => return RateCheck::NoRoom,
            }
        }
        self.bytes += bytes;
        let key: Arc<[u8]> = key.into();
        let slot = self.entries.insert(Bucket {
            key: Arc::clone(&key),
            excess: 0,
            last_ms: if is_last { now_ms } else { 0 },
            holds: u32::from(!is_last),
        });
        self.index.insert(key, slot);
        self.recency.insert(slot);
        RateCheck::Within(0)
    }

    /// Drops up to two buckets that have been empty for a while.
    fn drop_empty(&mut self, rate: i64, now_ms: i64) {
        for _ in 0..2 {
            let Some(oldest) = self.recency.oldest() else {
                return;
            };
            let bucket = &self.entries[oldest];
            let age_ms = now_ms - bucket.last_ms;
            let leaked = rate.saturating_mul(age_ms) / 1000;
            if bucket.holds > 0 || age_ms < EMPTY_AGE_MS || bucket.excess > leaked {
                return;
            }
            self.remove(oldest);
        }
    }

    fn remove(&mut self, slot: usize) {
        self.recency.remove(slot);
        let bucket = self.entries.remove(slot);
        self.index.remove(&bucket.key);
        self.bytes -= entry_bytes(&bucket.key);
    }
}
