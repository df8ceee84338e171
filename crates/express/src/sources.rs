//! What published answers were made from: a change there withdraws them.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher as _};
use std::ops::RangeInclusive;

/// What an answer was made from, as a withdrawal names it: the store, and the item in it. Both are
/// hashes. What has the same by chance is withdrawn too, which costs a request of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    store: u32,
    item: u32,
}

/// What the answer of each slot was made from, and the slots by that: every store of a cache asks,
/// and most concern no slot.
#[derive(Debug)]
pub(crate) struct SlotSources {
    of_slots: Box<[Option<Source>]>,
    slots: BTreeSet<(Source, usize)>,
}

impl SlotSources {
    /// Slots without answers.
    pub(crate) fn new(slot_count: usize) -> SlotSources {
        SlotSources {
            of_slots: vec![None; slot_count].into_boxed_slice(),
            slots: BTreeSet::new(),
        }
    }

    /// The source of a slot's answer.
    pub(crate) fn of(&self, slot: usize) -> Option<Source> {
        self.of_slots.get(slot).copied().flatten()
    }

    /// A slot has an answer of another source from now on, or of none.
    pub(crate) fn set(&mut self, slot: usize, source: Option<Source>) {
        let Some(known) = self.of_slots.get_mut(slot) else {
            return;
        };
        let before = std::mem::replace(known, source);
        if before == source {
            return;
        }
        if let Some(before) = before {
            self.slots.remove(&(before, slot));
        }
        if let Some(source) = source {
            self.slots.insert((source, slot));
        }
    }

    /// Forgets a slot whose answer is withdrawn; `None`: there is none.
    pub(crate) fn take(&mut self, withdrawn: Withdrawn<'_>) -> Option<usize> {
        let sources = withdrawn.sources();
        let range = (*sources.start(), 0)..=(*sources.end(), usize::MAX);
        let (_, slot) = *self.slots.range(range).next()?;
        self.set(slot, None);
        Some(slot)
    }
}

/// Where an answer comes from that may be withdrawn before it is too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derivation {
    pub source: Source,
    /// The number of withdrawals before the source was read: see [`crate::Publisher::withdrawals`].
    pub withdrawals: u64,
}

/// The answers that are withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawn<'a> {
    /// Answers that were made from an item of a store.
    Item(&'a [u8], &'a [u8]),
    /// Answers that were made from any item of a store.
    Store(&'a [u8]),
}

impl Source {
    /// The source of this name in a store.
    pub fn new(store: &[u8], item: &[u8]) -> Source {
        Source {
            store: hash(store),
            item: hash(item),
        }
    }
}

impl Withdrawn<'_> {
    /// The sources whose answers are withdrawn.
    fn sources(self) -> RangeInclusive<Source> {
        let (store, items) = match self {
            Withdrawn::Item(store, item) => (store, hash(item)..=hash(item)),
            Withdrawn::Store(store) => (store, 0..=u32::MAX),
        };
        let store = hash(store);
        let source = |item: u32| Source { store, item };
        source(*items.start())..=source(*items.end())
    }
}

fn hash(name: &[u8]) -> u32 {
    let mut hasher = DefaultHasher::new();
    hasher.write(name);
    (hasher.finish() >> 32) as u32
}
