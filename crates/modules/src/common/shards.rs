//! State by key that lanes share, parted by the key's hash so that they seldom meet.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts of what is large enough to be parted.
const SHARDS: usize = 16;

/// Entries below which it stays whole: parts of a small one would fill up unevenly.
const PARTED_ENTRIES_MIN: u64 = 4096;

/// The parts, each under a lock of its own.
pub(crate) struct Shards<T> {
    hasher: RandomState,
    shards: Vec<Mutex<T>>,
}

impl<T> Shards<T> {
    /// As many parts as so many entries are worth; `make` gets how many there are.
    pub(crate) fn new(entries: u64, make: impl Fn(usize) -> T) -> Shards<T> {
        let count = if entries < PARTED_ENTRIES_MIN {
            1
        } else {
            SHARDS
        };
        Shards {
            hasher: RandomState::new(),
            shards: (0..count).map(|_| Mutex::new(make(count))).collect(),
        }
    }

    /// The part that a key belongs to.
    pub(crate) fn of(&self, key: &[u8]) -> MutexGuard<'_, T> {
        let index = match self.shards.len() {
            1 => 0,
            count => self.hasher.hash_one(key) as usize % count,
        };
        lock(&self.shards[index])
    }

    /// All of them, to be locked one after another.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_, T>> {
        self.shards.iter().map(Part)
    }
}

/// One part.
pub(crate) struct Part<'a, T>(&'a Mutex<T>);

impl<T> Part<'_, T> {
    /// Locks it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        lock(self.0)
    }
}

fn lock<T>(shard: &Mutex<T>) -> MutexGuard<'_, T> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
