//! The heap of the process, whose unused pages are given back beside the lanes.

use crate::pool::{PoolLimits, WorkerPool};
use crate::sys::heap;

/// One thread trims the heap of all. Another request may wait for the one under way, which may have
/// passed over what is unused now; more would find nothing.
const LIMITS: PoolLimits = PoolLimits {
    name: "heap trimmer",
    threads_max: 1,
    queued_max: 1,
};

static TRIMMER: WorkerPool = WorkerPool::new(LIMITS);

/// Has the pages that hold nothing be given back to the system soon. Where that is not possible,
/// they are used again by what is allocated next.
pub fn trim_soon() {
    let _ = TRIMMER.spawn(heap::trim);
}
