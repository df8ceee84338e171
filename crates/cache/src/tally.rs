//! Counts of a zone's use. Each lane has its own slot, so that lanes do not contend.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::why::WhyNotStored;

/// The number of slots. Further lanes share them, which costs time but loses no count.
const SLOTS: usize = 64;

/// The source of an answer: nginx's `$upstream_cache_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A stored response.
    Hit,
    /// A server: no response was stored.
    Miss,
    /// A server: the cache was bypassed.
    Bypass,
    /// A server: the stored response is stale.
    Expired,
    /// A stored response, although it is stale.
    Stale,
    /// The same, while another request fetches a new one.
    Updating,
    /// A stored response, which a server has confirmed.
    Revalidated,
}

impl Use {
    /// All variants.
    pub const ALL: [Use; 7] = [
        Use::Hit,
        Use::Miss,
        Use::Bypass,
        Use::Expired,
        Use::Stale,
        Use::Updating,
        Use::Revalidated,
    ];

    /// Whether the answer came from the zone, with or without validation by a server.
    pub const fn is_from_the_cache(self) -> bool {
        match self {
            Use::Hit | Use::Stale | Use::Updating | Use::Revalidated => true,
            Use::Miss | Use::Bypass | Use::Expired => false,
        }
    }

    /// The word in logs and metrics.
    pub const fn text(self) -> &'static str {
        match self {
            Use::Hit => "HIT",
            Use::Miss => "MISS",
            Use::Bypass => "BYPASS",
            Use::Expired => "EXPIRED",
            Use::Stale => "STALE",
            Use::Updating => "UPDATING",
            Use::Revalidated => "REVALIDATED",
        }
    }
}

/// A zone's counts.
pub(crate) struct Tallies {
    slots: Box<[Tally]>,
}

/// The counts of one lane, on cache lines of its own.
#[repr(align(128))]
pub struct Tally {
    uses: [AtomicU64; Use::ALL.len()],
    not_stored: [AtomicU64; WhyNotStored::ALL.len()],
    saved_bytes: AtomicU64,
}

impl Tallies {
    pub(crate) fn new() -> Self {
        let slot = |_| Tally {
            uses: [const { AtomicU64::new(0) }; Use::ALL.len()],
            not_stored: [const { AtomicU64::new(0) }; WhyNotStored::ALL.len()],
            saved_bytes: AtomicU64::new(0),
        };
        Self {
            slots: (0..SLOTS).map(slot).collect(),
        }
    }

    pub(crate) fn of(&self, lane: usize) -> &Tally {
        &self.slots[lane % SLOTS]
    }

    pub(crate) fn uses(&self, one: Use) -> u64 {
        let slots = self.slots.iter();
        slots
            .map(|slot| slot.uses[one as usize].load(Ordering::Relaxed))
            .sum()
    }

    pub(crate) fn saved_bytes(&self) -> u64 {
        let slots = self.slots.iter();
        slots
            .map(|slot| slot.saved_bytes.load(Ordering::Relaxed))
            .sum()
    }

    pub(crate) fn not_stored(&self, why: WhyNotStored) -> u64 {
        let slots = self.slots.iter();
        slots
            .map(|slot| slot.not_stored[why as usize].load(Ordering::Relaxed))
            .sum()
    }
}

impl Tally {
    /// Counts an answer.
    pub fn used(&self, one: Use) {
        self.uses[one as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the content of a stored response that no server had to send.
    pub fn saved(&self, bytes: u64) {
        self.saved_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a response that was not stored.
    pub fn not_stored(&self, why: WhyNotStored) {
        self.not_stored[why as usize].fetch_add(1, Ordering::Relaxed);
    }
}
