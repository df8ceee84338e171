//! How an exchange matches, and waits for a match that is finished off the lane.

use turnpike_lane::log::Level;
use turnpike_lane::sys::pcre::MatchFailure;
use turnpike_plan::regex::{Allowance, Regex, Undecided};

use super::{MatchState, Position};
use crate::client::Client;
use crate::exchange::Exchange;
use crate::phase::{Verdict, Waiting, Work};
use crate::regex::pool::{self, Job, Refusal};

/// What the engine does after a step.
pub enum Settled {
    /// Every match had its verdict: go on.
    Decided,
    /// The step is to be taken again once this is done.
    Wait(Box<dyn Waiting>),
    /// 500.
    Failed,
}

/// Waits until a match has been finished, and gives what was found to the exchange.
struct OffLane(Job);

impl Work for OffLane {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let job = self.0;
        let (serial, subject) = (job.program.serial, job.subject.clone());
        let found = match pool::submit(job) {
            Err(refusal) => Err(refusal),
            Ok(receiver) => match client.unless_gone(receiver).await {
                Some(found) => found.unwrap_or(Err(Refusal::Lost)),
                None => return exchange.client_went_away(),
            },
        };
        exchange
            .evaluation
            .turn()
            .borrow_mut()
            .learn(serial, subject, found);
        Verdict::Declined
    }
}

impl Exchange {
    /// Whether `subject` matches, without captures.
    ///
    /// # Errors
    /// When there is no verdict.
    pub fn is_match(&self, regex: &Regex, subject: &[u8]) -> Result<bool, Undecided> {
        let mut turn = self.evaluation.turn().borrow_mut();
        if !matches!(turn.state, MatchState::Decided) {
            // What goes on will not count, so it need not cost anything either.
            return Err(Undecided);
        }
        let refusal = match turn.find(regex, subject) {
            Ok(found) => return Ok(found.is_some()),
            Err(refusal) => refusal,
        };
        let is_logged = turn.undecided(regex, subject, refusal);
        drop(turn);
        if is_logged {
            self.log_undecided(regex, subject, refusal);
        }
        Err(Undecided)
    }

    /// Matches, and has the groups of the match if there is one; those of an earlier one stay
    /// otherwise.
    ///
    /// # Errors
    /// When there is no verdict.
    pub(crate) fn capture(&self, regex: &Regex, subject: &[u8]) -> Result<bool, Undecided> {
        let matched = self.is_match(regex, subject)?;
        if matched {
            let turn = &mut *self.evaluation.turn().borrow_mut();
            let mut captures = self.evaluation.captures().borrow_mut();
            turn.keep(&mut captures);
            match regex.group_count() {
                0 => captures.clear(),
                _ => captures.set(subject, &turn.groups),
            }
        }
        Ok(matched)
    }

    /// Calls with what the matches of this request may still cost.
    pub(crate) fn with_allowance<T>(&self, call: impl FnOnce(&mut Allowance) -> T) -> T {
        call(&mut self.evaluation.turn().borrow_mut().allowance)
    }

    fn log_undecided(&self, regex: &Regex, subject: &[u8], refusal: Refusal) {
        let (code, message) = match refusal {
            Refusal::Failed(failure) => (failure.0, failure.message()),
            Refusal::Full => (
                MatchFailure::LIMIT.0,
                "too many heavy matches wait".to_owned(),
            ),
            Refusal::Lost => (
                MatchFailure::LIMIT.0,
                "no thread finishes heavy matches".to_owned(),
            ),
        };
        let line = regex.failed(message, code, subject);
        self.log(Level::Alert, format_args!("{line}"));
    }

    /// Whether a match of the present step had no verdict: what it has evaluated must go nowhere,
    /// neither into what is kept nor to another server. What is answered then does not count.
    pub fn is_undecided(&self) -> bool {
        !matches!(self.evaluation.turn().borrow().state, MatchState::Decided)
    }

    /// How many matches failed so far: when it changes during an evaluation, there is no value.
    pub fn match_failures(&self) -> u32 {
        self.evaluation.turn().borrow().failures
    }

    /// Begins a step that can be taken again.
    pub fn begin_matching(&self) {
        self.evaluation.turn().borrow_mut().may_wait = true;
        self.begin_matching_step();
    }

    /// Begins a part of a step; only what follows is done again if a match has to be waited for.
    pub fn begin_matching_step(&self) {
        self.evaluation.turn().borrow_mut().replaced = false;
    }

    /// From now on there is no head to be changed any more.
    pub(crate) fn matching_is_late(&self) {
        self.evaluation.turn().borrow_mut().late = true;
    }

    /// Ends a step: says whether it counts.
    pub fn settle_matching(&self) -> Settled {
        let turn = &mut *self.evaluation.turn().borrow_mut();
        turn.may_wait = false;
        match std::mem::take(&mut turn.state) {
            MatchState::Decided => Settled::Decided,
            MatchState::Failed => {
                turn.position.steps.clear();
                Settled::Failed
            }
            MatchState::Heavy(job) => {
                if std::mem::take(&mut turn.replaced) {
                    std::mem::swap(
                        &mut turn.before,
                        &mut self.evaluation.captures().borrow_mut(),
                    );
                }
                Settled::Wait(Box::new(OffLane(job)))
            }
        }
    }

    /// Whether a match failed while a response was made, and 500 was not answered for one yet.
    pub(crate) fn take_match_failure(&self) -> bool {
        let failed = !matches!(self.settle_matching(), Settled::Decided);
        failed && !std::mem::replace(&mut self.evaluation.turn().borrow_mut().answered, true)
    }

    /// Where a program goes on; to be put back by [`Exchange::keep_position`].
    pub fn take_position(&self) -> Position {
        std::mem::take(&mut self.evaluation.turn().borrow_mut().position)
    }

    /// Keeps where a program goes on when it is asked again, and the room for it.
    pub fn keep_position(&self, position: Position) {
        self.evaluation.turn().borrow_mut().position = position;
    }
}
