//! Room for the frames of connections, kept by their lane.

use std::cell::{Cell, RefCell};

/// Bytes that the kept room may have: what a connection holds of bodies before it is written, as it
/// grows by doubling.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// One buffer for all connections of a lane, as most hold frames only while they are served.
#[derive(Default)]
pub(crate) struct OutputPool {
    output: Cell<Vec<u8>>,
    /// Room for a header block while it is encoded.
    pub(super) block: RefCell<Vec<u8>>,
}

impl OutputPool {
    /// Takes empty room, which has grown already if none other has it.
    pub(super) fn take(&self) -> Vec<u8> {
        self.output.take()
    }

    /// Gives room back, to be used again.
    pub(super) fn keep(&self, mut output: Vec<u8>) {
        output.clear();
        if (1..=KEPT_BYTES_MAX).contains(&output.capacity()) {
            self.output.set(output);
        }
    }
}
