//! A connection that speaks HTTP/2.

use std::io;

use super::{Slot, State, Step, is_retry};
use crate::http2::Http2;
use crate::multiplexed::Multiplexed;
use crate::tally::ErrorKind;
use crate::thread::Thread;

impl Slot {
    /// Makes ready for a connection that speaks HTTP/2, with the first requests in its output.
    pub(super) fn begin_http2(&mut self, thread: &mut Thread<'_>, now_ns: u64) {
        self.multiplexed = Some(Multiplexed::Http2(Box::new(Http2::new())));
        self.unasked = self.pending;
        self.ask(thread, now_ns);
    }

    /// Whether the peer has agreed to speak HTTP/2, as far as it was asked.
    pub(super) fn agrees_to_http2(&self) -> bool {
        self.multiplexed.is_none() || self.transport.speaks_http2()
    }

    /// Sends the frames that wait.
    pub(super) fn send_frames(&mut self, thread: &Thread<'_>) -> Step {
        let (Some(socket), Some(Multiplexed::Http2(http2))) =
            (self.socket.as_ref(), self.multiplexed.as_mut())
        else {
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
        let Some(Multiplexed::Http2(http2)) = self.multiplexed.as_mut() else {
            return Step::Wait;
        };
        let input = thread.scratch.get(..count).unwrap_or_default();
        if http2.feed(input, now_ns, &plan.targets, expected).is_err() {
            thread.tally.keep_bad_bytes(input);
            return self.fail(ErrorKind::BadBytes);
        }
        self.take_ended(thread, now_ns);
        let was_kept = self.state == State::Kept;
        let step = self.send_frames(thread);
        if step != Step::Wait {
            return step;
        }
        if self.pending == 0 {
            return self.all_ended(was_kept, ended);
        }
        self.extend_deadline(thread, now_ns);
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
}
