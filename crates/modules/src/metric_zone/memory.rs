//! The metrics of a zone by key, shared by all lanes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slab::Slab;
use turnpike_lane::recency::Recency;

use super::mode::{Mode, State};
use crate::common::shards::Shards;

/// Longest key; Angie's. A longer one is cut, and shown with an ellipsis.
pub(super) const KEY_BYTES_MAX: usize = 255;

/// Bytes in which Angie's zones are parted, so that sizes in configurations keep their meaning, and
/// what of them is not a link to the next.
const BLOCK_BYTES: usize = 128;
const BLOCK_DATA_BYTES: usize = 120;

/// Bytes of a key's entry there beside key and values.
const NODE_BYTES: usize = 73;

/// Entries that are read before others may have the part of the zone: some microseconds.
const ENTRIES_READ_MAX: usize = 64;

/// What becomes of a key for which the zone has no room.
pub(super) struct WhenFull {
    /// The key that was not updated for the longest time makes room.
    pub(super) expire: bool,
    /// The key under which what is discarded is collected.
    pub(super) discard_key: Option<Vec<u8>>,
}

/// The zone has no room for another key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

/// The values of all metrics by key.
pub(super) struct Memory {
    modes: Vec<Mode>,
    shards: Shards<Shard>,
    discarded: AtomicU64,
    /// What was discarded, where it is collected.
    collected: Mutex<Option<States>>,
}

/// A state for each metric of the zone.
pub(super) type States = Box<[State]>;

struct Shard {
    index: HashMap<Arc<[u8]>, usize>,
    entries: Slab<Entry>,
    recency: Recency,
    bytes: usize,
    bytes_max: usize,
}

struct Entry {
    key: Arc<[u8]>,
    states: States,
}

/// The size of a zone in which the longest key has room.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    bytes: usize,
    /// How many of the longest keys have room.
    entries: usize,
}

impl Sizes {
    /// That of a zone with metrics of these modes; `None` if the longest key has no room.
    pub(super) fn new(bytes: u64, modes: &[Mode]) -> Option<Sizes> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let entries = bytes / entry_bytes(KEY_BYTES_MAX, modes);
        (entries > 0).then_some(Sizes { bytes, entries })
    }
}

impl Memory {
    /// A zone of that size.
    pub(super) fn new(sizes: Sizes, modes: Vec<Mode>) -> Memory {
        let Sizes { bytes, entries } = sizes;
        Memory {
            modes,
            shards: Shards::new(entries as u64, |count| Shard::new(bytes / count)),
            discarded: AtomicU64::new(0),
            collected: Mutex::new(None),
        }
    }

    /// The modes of the metrics.
    pub(super) fn modes(&self) -> &[Mode] {
        &self.modes
    }

    /// Keys that were discarded, or found no room.
    pub(super) fn discarded(&self) -> u64 {
        self.discarded.load(Relaxed)
    }

    /// Gives a value to all metrics of a key.
    ///
    /// # Errors
    /// There is no room for the key, and nothing is collected in its place.
    pub(super) fn update(
        &self,
        key: &[u8],
        value: f64,
        now_ms: u64,
        when_full: &WhenFull,
    ) -> Result<(), NoRoom> {
        let mut shard = self.shards.of(key);
        if let Some(&slot) = shard.index.get(key) {
            shard.recency.touch(slot);
            self.add(&mut shard.entries[slot].states, value, now_ms);
            return Ok(());
        }
        let bytes = entry_bytes(key.len(), &self.modes);
        while when_full.expire && shard.bytes + bytes > shard.bytes_max {
            let Some(states) = shard.remove_oldest(&self.modes) else {
                break;
            };
            self.discard(&states, when_full);
        }
        let states = self.begin(value, now_ms);
        if shard.bytes + bytes <= shard.bytes_max {
            shard.insert(key, states, bytes);
            return Ok(());
        }
        self.discard(&states, when_full);
        when_full.discard_key.as_ref().map(|_| ()).ok_or(NoRoom)
    }

    /// Calls with the states of a key, if there are any.
    pub(super) fn with<T>(
        &self,
        key: &[u8],
        when_full: &WhenFull,
        call: impl FnOnce(&[State]) -> T,
    ) -> Option<T> {
        if when_full.discard_key.as_deref() == Some(key) {
            return self.collected().as_deref().map(call);
        }
        let shard = self.shards.of(key);
        let slot = shard.index.get(key)?;
        Some(call(&shard.entries[*slot].states))
    }

    /// Copies of all keys' states, by the text that shows the key. Keys that look alike are one.
    pub(super) fn read(&self, when_full: &WhenFull) -> BTreeMap<String, States> {
        let mut all = BTreeMap::new();
        for part in self.shards.parts() {
            let mut from = 0;
            while let Some(next) = self.read_some(&mut part.lock(), from, &mut all) {
                from = next;
            }
        }
        if let (Some(key), Some(states)) = (&when_full.discard_key, &*self.collected()) {
            self.note(&mut all, shown(key), states);
        }
        all
    }

    /// Copies some entries from a place on; gives the place where to go on.
    fn read_some(
        &self,
        shard: &mut Shard,
        from: usize,
        all: &mut BTreeMap<String, States>,
    ) -> Option<usize> {
        let until = from + ENTRIES_READ_MAX;
        for slot in from..until {
            if let Some(entry) = shard.entries.get(slot) {
                self.note(all, shown(&entry.key), &entry.states);
            }
        }
        (until < shard.entries.capacity()).then_some(until)
    }

    fn note(&self, all: &mut BTreeMap<String, States>, key: String, states: &States) {
        match all.get_mut(&key) {
            Some(noted) => self.merge(noted, states),
            None => {
                all.insert(key, states.clone());
            }
        }
    }

    fn begin(&self, value: f64, now_ms: u64) -> States {
        let modes = self.modes.iter();
        modes.map(|mode| mode.begin(value, now_ms)).collect()
    }

    fn add(&self, states: &mut States, value: f64, now_ms: u64) {
        for (mode, state) in self.modes.iter().zip(states) {
            mode.update(state, value, now_ms);
        }
    }

    fn merge(&self, states: &mut States, others: &States) {
        for ((mode, state), other) in self.modes.iter().zip(states).zip(others) {
            mode.merge(state, other);
        }
    }

    /// Counts what is discarded, and collects it where there is a key for it.
    fn discard(&self, states: &States, when_full: &WhenFull) {
        self.discarded.fetch_add(1, Relaxed);
        if when_full.discard_key.is_none() {
            return;
        }
        let mut collected = self.collected();
        match &mut *collected {
            Some(collected) => self.merge(collected, states),
            None => *collected = Some(states.clone()),
        }
    }

    fn collected(&self) -> MutexGuard<'_, Option<States>> {
        self.collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that a key takes in its zone: Angie's.
fn entry_bytes(key_bytes: usize, modes: &[Mode]) -> usize {
    let states = modes.iter().map(Mode::state_bytes);
    let states = states.fold(0, usize::saturating_add);
    let bytes = states.saturating_add(NODE_BYTES + key_bytes);
    bytes.div_ceil(BLOCK_DATA_BYTES).saturating_mul(BLOCK_BYTES)
}

/// A key as it is shown.
fn shown(key: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(key).into_owned();
    if key.len() == KEY_BYTES_MAX {
        text.push_str("...");
    }
    text
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

    fn insert(&mut self, key: &[u8], states: States, bytes: usize) {
        self.bytes += bytes;
        let key: Arc<[u8]> = key.into();
        let slot = self.entries.insert(Entry {
            key: Arc::clone(&key),
            states,
        });
        self.index.insert(key, slot);
        self.recency.insert(slot);
    }

    /// Takes out the key that was not updated for the longest time; `None` if there is no key.
    fn remove_oldest(&mut self, modes: &[Mode]) -> Option<States> {
        let slot = self.recency.oldest()?;
        self.recency.remove(slot);
        let entry = self.entries.remove(slot);
        self.index.remove(&entry.key);
        self.bytes -= entry_bytes(entry.key.len(), modes);
        Some(entry.states)
    }
}
