//! Why a lane ends its connections: the process drains, or another plan has fewer lanes.

use std::cell::Cell;

/// Whether a lane still serves as before.
#[derive(Default)]
pub struct Shutdown {
    is_draining: Cell<bool>,
    is_leaving: Cell<bool>,
}

impl Shutdown {
    /// Finishes what was begun: from now on answers say that the connection is closed.
    pub fn drain(&self) {
        self.is_draining.set(true);
    }

    /// Notes that the lane goes, since another plan has fewer.
    pub(crate) fn leave(&self) {
        self.is_leaving.set(true);
    }

    /// Whether a drain has begun, with a delay or without: answers say that the connection is
    /// closed.
    pub fn is_draining(&self) -> bool {
        self.is_draining.get()
    }

    /// Whether the lane drains or goes.
    pub(crate) fn has_begun(&self) -> bool {
        self.is_draining.get() || self.is_leaving.get()
    }
}
