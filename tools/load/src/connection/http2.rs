//! A connection that speaks HTTP/2: many requests are under way on it at once.

use std::io;

use super::{Slot, State, Step, is_retry};
use crate::http2::{Http2, Outcome, Stream};
use crate::plan::Pacing;
use crate::tally::{ErrorKind, Failure};
use crate::thread::Thread;

impl Slot {
    /// Makes ready for a connection that speaks HTTP/2, with the first requests in its output.
    pub(super) fn begin_http2(&mut self, thread: &mut Thread<'_>, now_ns: u64) {
        self.http2 = Some(Box::new(Http2::new()));
        self.unasked = self.pending;
        self.ask(thread, now_ns);
    }

    /// Whether the peer has agreed to speak HTTP/2, as far as it was asked.
    pub(super) fn agrees_to_http2(&self) -> bool {
        self.http2.is_none() || self.transport.speaks_http2()
    }

    /// Whether one more request fits on a connection that has some under way, `streams` at most.
    pub(crate) fn has_room(&self, streams: usize) -> bool {
        let asks = matches!(self.state, State::AwaitingHead | State::AwaitingBody);
        let may_ask = self.http2.as_ref().is_some_and(|http2| http2.may_ask());
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
        self.send_frames(thread)
    }

    /// Puts requests that wait into frames, as far as the server takes them.
    pub(super) fn ask(&mut self, thread: &mut Thread<'_>, now_ns: u64) {
        let targets = &thread.plan.targets;
        let Some(http2) = self.http2.as_mut() else {
            return;
        };
        while self.unasked > 0 && http2.may_ask() {
            let Some(target) = targets.targets.get(self.target as usize) else {
                return;
            };
            http2.ask(self.target, target, self.intended_ns, now_ns);
            self.unasked -= 1;
            if self.unasked > 0 && !targets.in_order {
                let drawn = targets.draw_at(self.endpoint as usize, &mut thread.random);
                self.target = u32::try_from(drawn).unwrap_or(0);
            }
        }
    }

    /// Sends the frames that wait.
    pub(super) fn send_frames(&mut self, thread: &Thread<'_>) -> Step {
        let (Some(socket), Some(http2)) = (self.socket.as_ref(), self.http2.as_mut()) else {
            return Step::Wait;
        };
        let output = http2.output();
        let mut sent = 0;
        let result = loop {
            let rest = output.get(sent..).unwrap_or_default();
            if rest.is_empty() {
                break Ok(());
            }
            match self.transport.send(socket, rest) {
                // The records of a TLS session are full, and the socket takes none.
                Ok(0) => break Err(io::ErrorKind::WouldBlock.into()),
                Ok(count) => sent += count,
                Err(error) => break Err(error),
            }
        };
        output.drain(..sent);
        match result {
            Ok(()) if self.begun => self.state = State::AwaitingBody,
            Ok(()) => self.state = State::AwaitingHead,
            Err(error) if is_retry(&error) && self.state == State::Connecting && sent == 0 => {}
            Err(error) if is_retry(&error) => {
                self.state = State::Sending;
                return self.watch_room(thread);
            }
            Err(error) => return self.fail(self.send_error(&error)),
        }
        Step::Wait
    }

    /// Feeds received bytes to the protocol, and starts the next requests.
    pub(super) fn feed_frames(
        &mut self,
        thread: &mut Thread<'_>,
        count: usize,
        now_ns: u64,
        ended: bool,
    ) -> Step {
        let plan = thread.plan;
        let expected = plan.expect_body.as_ref().map(|body| body.as_slice());
        let Some(http2) = self.http2.as_mut() else {
            return Step::Wait;
        };
        let input = thread.scratch.get(..count).unwrap_or_default();
        if http2.feed(input, now_ns, &plan.targets, expected).is_err() {
            thread.tally.keep_bad_bytes(input);
            return self.fail(ErrorKind::BadBytes);
        }
        let list = http2.take_ended();
        for (stream, outcome) in &list {
            self.ended(thread, stream, *outcome, now_ns);
        }
        if let Some(http2) = self.http2.as_mut() {
            http2.reuse(list);
        }
        self.ask(thread, now_ns);
        self.give_back(thread);
        let was_kept = self.state == State::Kept;
        let step = self.send_frames(thread);
        if step != Step::Wait {
            return step;
        }
        if self.pending == 0 {
            return self.all_ended(was_kept, ended);
        }
        let oldest_ns = self.http2.as_ref().and_then(|http2| http2.oldest_ns());
        self.deadline_ns = oldest_ns.unwrap_or(now_ns) + thread.timeout_ns;
        Step::Wait
    }

    /// Reads what the server says while nothing is under way.
    pub(super) fn between_frames(&mut self, thread: &mut Thread<'_>) -> Step {
        loop {
            let Some(socket) = self.socket.as_ref() else {
                return Step::Wait;
            };
            let count = match self.transport.receive(socket, &mut thread.scratch) {
                Err(error) if is_retry(&error) => return Step::Wait,
                Ok(count) if count > 0 => count,
                closed => {
                    match closed {
                        Ok(_) => thread.tally.closed_between += 1,
                        Err(_) => thread.tally.errors.count(ErrorKind::ResetIdle),
                    }
                    self.close();
                    return Step::LostBetween;
                }
            };
            let now_ns = thread.clock.now_ns();
            let step = self.feed_frames(thread, count, now_ns, false);
            if step != Step::Wait {
                return step;
            }
        }
    }

    /// Nothing is under way any more.
    fn all_ended(&mut self, was_kept: bool, ended: bool) -> Step {
        let is_open = self.http2.as_ref().is_some_and(|http2| http2.is_open());
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
        let is_open = self.http2.as_ref().is_some_and(|http2| http2.is_open());
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
        let is_open = self.http2.as_ref().is_some_and(|http2| http2.is_open());
        if self.unasked > 0 && !is_open {
            thread.take_back(u64::from(self.unasked));
            self.pending -= self.unasked;
            self.unasked = 0;
        }
    }
}
