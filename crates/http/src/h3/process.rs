//! What the lanes of a process share for HTTP/3.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use turnpike_quic::{HalfOpenCount, HostKey, Place};

/// What the lanes of a process share for HTTP/3.
#[derive(Default)]
pub(crate) struct Http3Process {
    half_open: HalfOpenCount,
    host_key: OnceLock<HostKey>,
    /// Lanes that had connections so far; the next ones begin anew after 65536.
    lanes: AtomicU16,
}

impl Http3Process {
    /// The handshakes that are not complete.
    pub(crate) fn half_open(&self) -> &HalfOpenCount {
        &self.half_open
    }

    /// The place of another lane's connections. A lane that leaves may have some for long, so no
    /// other is given its place.
    pub(crate) fn next_place(&self) -> Place {
        Place {
            lane: self.lanes.fetch_add(1, Relaxed),
            // Two processes that serve at a time have different numbers.
            process: std::process::id() as u16,
        }
    }

    /// The key of the process: that of the first plan that has one, so that a reload breaks no
    /// connection. `None`: there is none.
    pub(crate) fn host_key(&self, of_plan: Option<&HostKey>) -> Option<HostKey> {
        let of_plan = of_plan?;
        Some(self.host_key.get_or_init(|| of_plan.clone()).clone())
    }
}
