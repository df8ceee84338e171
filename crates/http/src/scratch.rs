//! Room that a lane lends for the time of a step: a text that is made and thrown away again, or a
//! piece on its way into a file. Nobody may hold it over a wait.

use std::cell::Cell;

/// Rooms that are lent at a time: for a name and its value, and a part of that.
const SCRATCHES: usize = 3;

/// Bytes that a kept room may have, and of a piece that is read into it: as much as a socket of the
/// loopback holds, and a fraction of what a lane has.
pub(crate) const SCRATCH_BYTES_MAX: usize = 256 * 1024;

/// The rooms that are not lent.
#[derive(Default)]
pub(crate) struct Scratches([Cell<Vec<u8>>; SCRATCHES]);

impl Scratches {
    /// Empty room.
    pub(crate) fn take(&self) -> Vec<u8> {
        let kept = self.0.iter().map(Cell::take);
        let mut scratch = kept.filter(|scratch| scratch.capacity() > 0);
        let mut scratch = scratch.next().unwrap_or_default();
        scratch.clear();
        scratch
    }

    /// Takes room back, to be lent again.
    pub(crate) fn keep(&self, scratch: Vec<u8>) {
        if !(1..=SCRATCH_BYTES_MAX).contains(&scratch.capacity()) {
            return;
        }
        let mut scratch = scratch;
        for place in &self.0 {
            let kept = place.replace(scratch);
            if kept.capacity() == 0 {
                return;
            }
            scratch = kept;
        }
    }
}
