//! Purges: their targets, and the memory of recent purges, which prevents storing a response that
//! was requested before a purge.
//!
//! Purges of one key come with traffic, since each successful unsafe request makes one; those of
//! many keys come from operators. They are remembered apart, so that traffic does not use up the
//! list, which counts everything as purged when it overflows.

use std::collections::hash_map::RandomState;
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

/// The number of remembered purges of many keys. A fetch that began before the oldest of them is
/// not stored: with a thousand such purges during one fetch that is the safe choice.
const REMEMBERED_MAX: usize = 1024;

/// The number of places for the last purges of single keys. Keys that share a place count as purged
/// together, which costs the store of one fetch; with 650 keys purged during a fetch that happens
/// to one fetch in a hundred. The places take half a megabyte from the first purge on.
const KEY_PLACES: usize = 64 * 1024;

/// Most purged keys that are remembered while the folder is loaded, by hash: half a megabyte. With
/// more of them, all files that are loaded later count as stale.
const UNLOADED_MAX: usize = 64 * 1024;

/// Begins the range of a slice in a key.
const RANGE_UNIT: &[u8] = b"bytes=";

/// The target of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All variants of this key.
    Key(Vec<u8>),
    /// All variants of this key, and of the keys that go on with a range (`bytes=0-1048575`): the
    /// slices of a file.
    Sliced(Vec<u8>),
    /// All keys with this prefix.
    Prefix(Vec<u8>),
    /// All responses for this host, in lower case.
    Host(Vec<u8>),
    /// All responses with this tag (`Surrogate-Key`, `Cache-Tag`).
    Tag(Vec<u8>),
    /// Everything.
    All,
}

/// The effect of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeKind {
    /// The response is removed.
    Hard,
    /// The response becomes stale: it is revalidated, and used if that fails and stale use is
    /// allowed.
    Soft,
}

/// The properties of a stored resource that purges check.
pub trait Labels {
    /// The key.
    fn key(&self) -> &[u8];
    /// The host that it was fetched for.
    fn host(&self) -> &[u8];
    /// Whether it has a tag.
    fn has_tag(&self, tag: &[u8]) -> bool;
}

/// Whether a text is a range of bytes as `$slice_range` has it.
fn is_range(text: &[u8]) -> bool {
    let range = text.strip_prefix(RANGE_UNIT);
    let mut parts = range.unwrap_or_default().split(|byte| *byte == b'-');
    let mut is_number = || {
        let part = parts.next().unwrap_or_default();
        !part.is_empty() && part.iter().all(u8::is_ascii_digit)
    };
    is_number() && is_number() && parts.next().is_none()
}

/// A key without the range at its end, where it has one.
pub fn without_range(key: &[u8]) -> &[u8] {
    match key
        .windows(RANGE_UNIT.len())
        .rposition(|part| part == RANGE_UNIT)
    {
        Some(at) if is_range(&key[at..]) => &key[..at],
        _ => key,
    }
}

impl Target {
    /// Whether the target includes a resource.
    pub fn concerns(&self, labels: &impl Labels) -> bool {
        match self {
            Self::Key(key) => labels.key() == key,
            Self::Sliced(key) => {
                let rest = labels.key().strip_prefix(key.as_slice());
                rest.is_some_and(|rest| rest.is_empty() || is_range(rest))
            }
            Self::Prefix(prefix) => labels.key().starts_with(prefix),
            Self::Host(host) => labels.host().eq_ignore_ascii_case(host),
            Self::Tag(tag) => labels.has_tag(tag),
            Self::All => true,
        }
    }
}

/// The memory of purges, each of which has a number.
pub(crate) struct Purges {
    /// The number of the next purge.
    next: AtomicU64,
    recent: RwLock<Recent>,
    hasher: RandomState,
    /// By the hash of a key: one more than the number of the last purge; 0: none.
    keys: OnceLock<Box<[AtomicU64]>>,
    unloaded: Mutex<UnloadedKeys>,
}

/// The recent purges of many keys.
#[derive(Default)]
pub(crate) struct Recent {
    targets: VecDeque<(u64, Target)>,
    /// One more than the number of the last purge that is no longer remembered.
    forgotten: u64,
}

/// The hashes of keys that were purged before the files of the folder were all known.
#[derive(Default)]
struct UnloadedKeys {
    hashes: HashSet<u64>,
    is_full: bool,
}

/// The effect of earlier purges on a file that is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// None includes it.
    Valid,
    /// One may include it.
    Stale,
    /// One includes it.
    Purged,
}

impl Default for Purges {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(0),
            recent: RwLock::default(),
            hasher: RandomState::new(),
            keys: OnceLock::new(),
            unloaded: Mutex::default(),
        }
    }
}

impl Purges {
    /// The number of the next purge: a fetch records it when it begins.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// Records a purge. Of one key it must be recorded before the key's commit lock is taken, to
    /// remove what is stored.
    pub(crate) fn push(&self, target: &Target) {
        if let Target::Key(key) = target {
            let count = self.next.fetch_add(1, Ordering::SeqCst) + 1;
            self.place(key).fetch_max(count, Ordering::SeqCst);
            return;
        }
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        if recent.targets.len() == REMEMBERED_MAX
            && let Some((number, _)) = recent.targets.pop_front()
        {
            recent.forgotten = number + 1;
        }
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        recent.targets.push_back((number, target.clone()));
    }

    /// Records that a key was purged of which files may exist that are not known yet.
    pub(crate) fn push_unloaded(&self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        let mut unloaded = self.unloaded();
        if unloaded.hashes.len() < UNLOADED_MAX {
            unloaded.hashes.insert(hash);
        } else {
            unloaded.is_full |= !unloaded.hashes.contains(&hash);
        }
    }

    /// Forgets the keys that were purged before the files were known: they are now.
    pub(crate) fn end_loading(&self) {
        *self.unloaded() = UnloadedKeys::default();
    }

    /// What becomes of a file with these labels that is found while the folder is loaded.
    pub(crate) fn judge_found(&self, recent: &Recent, labels: &impl Labels) -> Found {
        let unloaded = self.unloaded();
        let hash = self.hasher.hash_one(labels.key());
        match unloaded.hashes.contains(&hash) || recent.concern(0, labels) {
            true => Found::Purged,
            false if unloaded.is_full => Found::Stale,
            false => Found::Valid,
        }
    }

    /// The recent purges of many keys. While they are held, no further one is recorded.
    pub(crate) fn recent(&self) -> RwLockReadGuard<'_, Recent> {
        self.recent.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a purge since `from` was of this key alone, or may have been.
    pub(crate) fn concern_key(&self, from: u64, key: &[u8]) -> bool {
        // Most zones see none.
        self.keys.get().is_some() && self.place(key).load(Ordering::SeqCst) > from
    }

    fn place(&self, key: &[u8]) -> &AtomicU64 {
        let places = self
            .keys
            .get_or_init(|| (0..KEY_PLACES).map(|_| AtomicU64::new(0)).collect());
        &places[self.hasher.hash_one(key) as usize % KEY_PLACES]
    }

    fn unloaded(&self) -> MutexGuard<'_, UnloadedKeys> {
        self.unloaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recent {
    /// Whether a purge since `from` includes a resource, or may have.
    pub(crate) fn concern(&self, from: u64, labels: &impl Labels) -> bool {
        if from < self.forgotten {
            return true;
        }
        let skip = self.targets.partition_point(|(number, _)| *number < from);
        self.targets
            .iter()
            .skip(skip)
            .any(|(_, target)| target.concerns(labels))
    }
}

/// The tags of a response: words of `Surrogate-Key` (separated by spaces) and `Cache-Tag` (by
/// commas).
pub fn tags(head: &turnpike_wire::message::Head) -> Vec<Box<[u8]>> {
    let mut tags: Vec<Box<[u8]>> = Vec::new();
    let mut push = |tag: &[u8]| {
        let tag = tag.trim_ascii();
        if !tag.is_empty() && !tags.iter().any(|known| **known == *tag) {
            tags.push(tag.into());
        }
    };
    for value in head.values(b"surrogate-key") {
        value
            .split(|byte| b" \t".contains(byte))
            .for_each(&mut push);
    }
    for value in head.values(b"cache-tag") {
        value.split(|byte| *byte == b',').for_each(&mut push);
    }
    tags
}
