//! A connection on which many requests are under way at once, whatever protocol carries them.

use super::{Slot, State, Step};
use crate::multiplexed::Multiplexed;
use crate::plan::Pacing;
use crate::streams::{Outcome, Stream};
use crate::tally::{ErrorKind, Failure};
use crate::thread::Thread;

impl Slot {
    /// Whether one more request fits on a connection that has some under way, `streams` at most.
    pub(crate) fn has_room(&self, streams: usize) -> bool {
        let asks = matches!(self.state, State::AwaitingHead | State::AwaitingBody);
        let may_ask = self
            .multiplexed
            .as_ref()
            .is_some_and(|multiplexed| multiplexed.may_ask());
        let is_below = usize::from(self.pending) < streams;
        asks && may_ask && is_below && self.unasked == 0 && self.left > 0
    }

    /// Starts a request beside those that are under way.
    pub(crate) fn join(&mut self, thread: &mut Thread<'_>, intended_ns: u64, now_ns: u64) -> Step {
        let targets = &thread.plan.targets;
        let drawn = targets.draw_at(self.endpoint as usize, &mut thread.random);
        self.target = u32::try_from(drawn).unwrap_or(0);
        self.intended_ns = intended_ns;
        self.left -= u32::from(self.left != u32::MAX);
        self.pending += 1;
        self.unasked += 1;
        self.ask(thread, now_ns);
        self.send_streams(thread)
    }

    /// Puts requests that wait on streams, as far as the server takes them.
    pub(super) fn ask(&mut self, thread: &mut Thread<'_>, now_ns: u64) {
        let targets = &thread.plan.targets;
        let Some(multiplexed) = self.multiplexed.as_mut() else {
            return;
        };
        while self.unasked > 0 && multiplexed.may_ask() {
            let Some(target) = targets.targets.get(self.target as usize) else {
                return;
            };
            if !multiplexed.ask(self.target, target, self.intended_ns, now_ns) {
                return;
            }
            self.unasked -= 1;
            if self.unasked > 0 && !targets.in_order {
                let drawn = targets.draw_at(self.endpoint as usize, &mut thread.random);
                self.target = u32::try_from(drawn).unwrap_or(0);
            }
        }
    }

    /// Counts the requests that have ended, and starts the next ones.
    pub(super) fn take_ended(&mut self, thread: &mut Thread<'_>, now_ns: u64) {
        let Some(multiplexed) = self.multiplexed.as_mut() else {
            return;
        };
        let list = multiplexed.take_ended();
        for (stream, outcome) in &list {
            self.ended(thread, stream, *outcome, now_ns);
        }
        if let Some(multiplexed) = self.multiplexed.as_mut() {
            multiplexed.reuse(list);
        }
        self.ask(thread, now_ns);
        self.give_back(thread);
    }

    /// Nothing is under way any more.
    pub(super) fn all_ended(&mut self, was_kept: bool, ended: bool) -> Step {
        let is_open = self
            .multiplexed
            .as_ref()
            .is_some_and(|multiplexed| multiplexed.is_open());
        let keeps = is_open && self.left > 0 && !ended;
        match (keeps, was_kept) {
            (true, _) => {
                self.state = State::Kept;
                self.deadline_ns = u64::MAX;
            }
            (false, _) => self.close(),
        }
        match (keeps, was_kept) {
            (true, true) => Step::Wait,
            (false, true) => Step::LostBetween,
            (true, false) => Step::Answered,
            (false, false) => Step::Finished,
        }
    }

    /// Counts a request that has ended; in a closed loop another one takes its place.
    fn ended(&mut self, thread: &mut Thread<'_>, stream: &Stream, outcome: Outcome, now_ns: u64) {
        self.pending = self.pending.saturating_sub(1);
        match outcome {
            Outcome::Answered(answer) => {
                thread.count_answer(answer, now_ns, stream.intended_ns, stream.sent_ns);
                self.served = self.served.saturating_add(1);
                self.failures = 0;
            }
            Outcome::Reset => {
                thread.tally.failed += 1;
                if stream.intended_ns >= thread.measure_from_ns {
                    thread.tally.fail(Failure {
                        kind: ErrorKind::ResetAnswering,
                        begun_ns: stream.intended_ns,
                        ended_ns: now_ns,
                    });
                }
            }
            Outcome::Unprocessed => return thread.take_back(1),
        }
        let is_open = self
            .multiplexed
            .as_ref()
            .is_some_and(|multiplexed| multiplexed.is_open());
        let goes_on = thread.plan.pacing == Pacing::Closed && is_open && self.left > 0;
        if goes_on && !thread.plan.targets.has_think_time() && thread.take_quota(now_ns) {
            self.left -= u32::from(self.left != u32::MAX);
            self.pending += 1;
            self.unasked += 1;
            self.intended_ns = now_ns;
        }
    }

    /// Requests that wait for a server which takes no more on this connection go to another.
    fn give_back(&mut self, thread: &mut Thread<'_>) {
        let is_open = self
            .multiplexed
            .as_ref()
            .is_some_and(|multiplexed| multiplexed.is_open());
        if self.unasked > 0 && !is_open {
            thread.take_back(u64::from(self.unasked));
            self.pending -= self.unasked;
            self.unasked = 0;
        }
    }

    /// Sends what waits.
    fn send_streams(&mut self, thread: &mut Thread<'_>) -> Step {
        match &self.multiplexed {
            Some(Multiplexed::Http3(_)) => self.send_datagrams(thread),
            _ => self.send_frames(thread),
        }
    }

    /// When the answer of the oldest request has to be here.
    pub(super) fn extend_deadline(&mut self, thread: &Thread<'_>, now_ns: u64) {
        let oldest_ns = self.multiplexed.as_ref().and_then(Multiplexed::oldest_ns);
        self.deadline_ns = oldest_ns.unwrap_or(now_ns) + thread.timeout_ns;
    }
}
