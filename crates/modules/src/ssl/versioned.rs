//! Words that processes share and no lock protects: a version beside them is odd while they are
//! written, and another one afterwards, so that a reader knows what it has read.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// Whether the memory has this layout; memory without any takes it.
pub(super) fn has_layout(of: &AtomicU64, layout: u64) -> bool {
    let found = of.compare_exchange(0, layout, Relaxed, Relaxed);
    found.is_ok() || found == Err(layout)
}

/// What was read, with its version; `None`: somebody wrote meanwhile.
pub(super) fn read<T>(version: &AtomicU64, load: impl FnOnce() -> T) -> Option<(u64, T)> {
    let before = version.load(Acquire);
    if !before.is_multiple_of(2) {
        return None;
    }
    let value = load();
    fence(Acquire);
    (version.load(Relaxed) == before).then_some((before, value))
}

/// Writes over what has that version. `false`: it has another one, or somebody writes.
pub(super) fn write(version: &AtomicU64, over: u64, store: impl FnOnce()) -> bool {
    let odd = over.wrapping_add(1);
    let is_free = over.is_multiple_of(2);
    if !is_free
        || version
            .compare_exchange(over, odd, Acquire, Relaxed)
            .is_err()
    {
        return false;
    }
    fence(Release);
    store();
    version.store(odd.wrapping_add(1), Release);
    true
}
