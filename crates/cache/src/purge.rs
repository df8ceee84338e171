//! Purges: their targets, and the list of recent purges, which prevents storing a response that was
//! requested before a purge.

use std::collections::VecDeque;

/// The number of remembered purges. A fetch that began before the oldest of them is not stored:
/// with a thousand purges during one fetch that is the safe choice.
const REMEMBERED_MAX: usize = 1024;

/// The target of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All variants of this key.
    Key(Vec<u8>),
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
pub enum Manner {
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

impl Target {
    /// Whether the target includes a resource.
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

/// The recent purges, each with its number.
#[derive(Debug, Default)]
pub(crate) struct Purges {
    next: u64,
    recent: VecDeque<Target>,
}

impl Purges {
    /// The number of the next purge: a fetch records it when it begins.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Records a purge.
    pub(crate) fn push(&mut self, target: Target) {
        if self.recent.len() == REMEMBERED_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(target);
        self.next += 1;
    }

    /// Whether a purge since `from` includes a resource, or may have.
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
