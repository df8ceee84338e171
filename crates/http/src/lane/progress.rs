//! What a lane does at the moment, for whoever watches it.

use std::cell::Cell;
use std::sync::Arc;

use crate::counters::Doing;

/// The request that a lane has begun last, and the answers of this round of its event loop.
#[derive(Default)]
pub struct Progress {
    doing: Arc<Doing>,
    round_answers: Cell<u64>,
}

impl Progress {
    /// The request that the lane has begun last; readable from every thread.
    pub fn doing(&self) -> &Arc<Doing> {
        &self.doing
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
