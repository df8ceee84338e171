//! What a purge takes away, and the memory of purges that keeps answers asked for before one from
//! being stored after it.

use std::collections::VecDeque;

/// Purges remembered. A fetch that began before the oldest of them is not stored: at a thousand
/// purges in the time of one fetch that is the safe side.
const REMEMBERED_MAX: usize = 1024;

/// What is taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All variants of this key.
    Key(Vec<u8>),
    /// All keys that begin so.
    Prefix(Vec<u8>),
    /// All that was fetched for this host, lower-case.
    Host(Vec<u8>),
    /// All that carries this tag (`Surrogate-Key`, `Cache-Tag`).
    Tag(Vec<u8>),
    /// Everything.
    All,
}

/// How it is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The response is removed.
    Hard,
    /// The response becomes stale: it is asked for anew, and used where that fails and staleness is
    /// allowed.
    Soft,
}

/// What a purge looks at in a stored resource.
pub trait Labels {
    /// The key.
    fn key(&self) -> &[u8];
    /// The host that it was fetched for.
    fn host(&self) -> &[u8];
    /// Whether it carries a tag.
    fn has_tag(&self, tag: &[u8]) -> bool;
}

impl Target {
    /// Whether it concerns a resource.
    pub fn concerns(&self, labels: &impl Labels) -> bool {
        match self {
            Self::Key(key) => labels.key() == key,
            Self::Prefix(prefix) => labels.key().starts_with(prefix),
            Self::Host(host) => labels.host().eq_ignore_ascii_case(host),
            Self::Tag(tag) => labels.has_tag(tag),
            Self::All => true,
        }
    }
}

/// The last purges, each with its number.
#[derive(Debug, Default)]
pub(crate) struct Purges {
    next: u64,
    recent: VecDeque<Target>,
}

impl Purges {
    /// The number of the next purge: fetches note it when they begin.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Notes a purge.
    pub(crate) fn push(&mut self, target: Target) {
        if self.recent.len() == REMEMBERED_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(target);
        self.next += 1;
    }

    /// Whether a purge since `from` concerns a resource, or may have.
    pub(crate) fn concern(&self, from: u64, labels: &impl Labels) -> bool {
        let oldest = self.next - self.recent.len() as u64;
        if from < oldest {
            return true;
        }
        let skip = (from - oldest) as usize;
        self.recent
            .iter()
            .skip(skip)
            .any(|target| target.concerns(labels))
    }
}

/// Tags of a response: words of `Surrogate-Key` (between spaces) and `Cache-Tag` (between commas).
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
