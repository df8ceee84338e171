//! The express lane's program over the life of a master: attached where it could not be, detached
//! where it is wanted no more, and put back after another master has had it.

use std::time::{Duration, Instant};

use super::Master;
use crate::master::express::Step;

/// How long a step waits where it is not this master's to take: another one is there, or a reload
/// is under way.
const STEP_PAUSE: Duration = Duration::from_secs(5);

impl Master {
    /// A configuration is served: what is to be done with the program for it.
    pub(super) fn settle_express(&mut self) {
        let is_wanted = self.loaded.needs.express.is_some();
        self.express = Step::first(self.loaded.gates.express(), is_wanted);
    }

    /// Does what is due.
    pub(super) fn step_express(&mut self) {
        let Some((step, _)) = self.express.take() else {
            return;
        };
        if self.is_ending() {
            return;
        }
        if !self.is_settled() || self.has_other_master() {
            self.express = Some((step, Instant::now() + STEP_PAUSE));
            return;
        }
        let Some(express) = self.loaded.gates.express() else {
            return;
        };
        let (next, is_new) = step.run(express, &self.log);
        self.express = next;
        if is_new {
            self.hand_express_again();
        }
    }

    /// Has the serving process answer by the program as this configuration wants it: another
    /// process may have had it.
    pub(super) fn hand_express_again(&mut self) {
        if self.loaded.gates.express().is_none() {
            return;
        }
        self.hand_serving_again();
    }
}
