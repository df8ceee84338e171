//! The share of a climb's time in which its server may do worse than before the climb. Pure.
//!
//! The time of a run counts when it was worse than the start. A step's verdict corrects this: of a
//! step that was worse all runs count, and of another none.

use crate::climb::judge::Verdict;

/// Runs of one step that are far worse than the start, after which it is given up: clients should
/// not wait until it is certain.
const FAR_WORSE_RUNS_MAX: usize = 3;

/// A run beside the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grade {
    NotWorse,
    Worse,
    /// By more than chance does.
    FarWorse,
}

/// What was spent.
#[derive(Debug)]
pub(super) struct Ledger {
    /// The share of all time that may be worse, above 0 and at most 1.
    share: f64,
    /// Of steps that are decided, in seconds.
    settled_s: f64,
    /// Runs of the step that is not decided yet, with their seconds.
    step: Vec<(f64, Grade)>,
}

impl Ledger {
    pub(super) fn new(share: f64) -> Ledger {
        Ledger {
            share,
            settled_s: 0.0,
            step: Vec::new(),
        }
    }

    /// Seconds that were worse than the start, as far as is known.
    pub(super) fn worse_s(&self) -> f64 {
        let worse = self.step.iter();
        let worse = worse.filter(|(_, grade)| *grade != Grade::NotWorse);
        self.settled_s + worse.map(|(seconds, _)| seconds).sum::<f64>()
    }

    /// How long the server has to run as it did, until another run may be worse from its beginning
    /// to its end, in seconds. `elapsed_s` is the climb's time until now.
    pub(super) fn wait_s(&self, elapsed_s: f64, run_s: f64) -> f64 {
        let needed_s = (self.worse_s() + run_s) / self.share;
        (needed_s - run_s - elapsed_s).max(0.0)
    }

    /// Takes a run of a step that is not decided yet.
    pub(super) fn ran(&mut self, seconds: f64, grade: Grade) {
        self.step.push((seconds, grade));
    }

    /// Whether the step has been far worse so often that it is given up.
    pub(super) fn is_given_up(&self) -> bool {
        let far = self.step.iter();
        let far = far.filter(|(_, grade)| *grade == Grade::FarWorse).count();
        far >= FAR_WORSE_RUNS_MAX && far * 2 > self.step.len()
    }

    /// Takes the verdict on the step.
    pub(super) fn judged(&mut self, verdict: Verdict) {
        let counts = |grade: Grade| match verdict {
            Verdict::Worse | Verdict::Latency | Verdict::Errors => true,
            Verdict::Kept | Verdict::Cheaper | Verdict::NoDifference => false,
            Verdict::WithoutEffect | Verdict::Impossible => grade != Grade::NotWorse,
        };
        let step = std::mem::take(&mut self.step).into_iter();
        let worse = step.filter(|(_, grade)| counts(*grade));
        self.settled_s += worse.map(|(seconds, _)| seconds).sum::<f64>();
    }
}

#[cfg(test)]
mod tests;
