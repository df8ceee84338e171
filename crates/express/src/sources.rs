//! What published answers were made from: a change there withdraws them.

use std::hash::{DefaultHasher, Hasher as _};

/// What an answer was made from, as a withdrawal names it: the store, and the item in it. Both are
/// hashes. What has the same by chance is withdrawn too, which costs a request of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    store: u32,
    item: u32,
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
    /// A test for sources: whether their answers are withdrawn.
    pub(crate) fn concerns(self) -> impl Fn(Source) -> bool {
        let (store, item) = match self {
            Withdrawn::Item(store, item) => (hash(store), Some(hash(item))),
            Withdrawn::Store(store) => (hash(store), None),
        };
        move |source| source.store == store && item.is_none_or(|item| source.item == item)
    }
}

fn hash(name: &[u8]) -> u32 {
    let mut hasher = DefaultHasher::new();
    hasher.write(name);
    (hasher.finish() >> 32) as u32
}
