//! What a lane does at the moment, for whoever watches it.

use std::cell::Cell;
use std::sync::Arc;

use crate::counters::Doing;

/// The request that a lane has begun last, and the answers of this round of its event loop.
#[derive(Default)]
pub struct LaneProgress {
    doing: Arc<Doing>,
    round_answers: Cell<u64>,
    /// Batches so far.
    batches: Cell<u64>,
    is_in_batch: Cell<bool>,
}

impl LaneProgress {
    /// The request that the lane has begun last; readable from every thread.
    pub fn doing(&self) -> &Arc<Doing> {
        &self.doing
    }

    /// From now on requests are begun that had all come before.
    pub(crate) fn begin_batch(&self) {
        self.batches.set(self.batches.get() + 1);
        self.is_in_batch.set(true);
    }

    /// The requests that are begun from now on come alone.
    pub(crate) fn end_batch(&self) {
        self.is_in_batch.set(false);
    }

    /// The number of the batch whose requests are begun now. What was found for one of them is no
    /// older than any other.
    pub fn batch(&self) -> Option<u64> {
        self.is_in_batch.get().then(|| self.batches.get())
    }

    /// Counts a request that began in this round and is answered.
    pub(crate) fn count_round_answer(&self) {
        self.round_answers.set(self.round_answers.get() + 1);
    }

    /// Requests that began in this round and are answered; the next round begins with none.
    pub(crate) fn take_round_answers(&self) -> u64 {
        self.round_answers.take()
    }
}
