//! A connection that speaks HTTP/3: datagrams of a connected socket, and times at which QUIC has
//! something to do.

use std::cmp::Reverse;
use std::io;
use std::time::Instant;

use super::{Slot, State, Step, connect_error, is_retry};
use crate::http3::{Http3, Lost};
use crate::multiplexed::Multiplexed;
use crate::tally::ErrorKind;
use crate::thread::Thread;

/// Datagrams of one connection that are received before others have their turn.
const DATAGRAMS_MAX: usize = 64;

impl Slot {
    /// Begins a connection, with the first requests on it if a session lets them be sent early.
    pub(super) fn begin_http3(&mut self, thread: &mut Thread<'_>, now_ns: u64) -> Step {
        let endpoint = self.endpoint as usize;
        let Some(dialling) = thread.dial(endpoint) else {
            return self.fail(ErrorKind::Tls);
        };
        let Some(http3) = Http3::connect(&dialling, Instant::now()) else {
            return self.fail(ErrorKind::Connect);
        };
        self.multiplexed = Some(Multiplexed::Http3(Box::new(http3)));
        self.sent_ns = now_ns;
        self.unasked = self.pending;
        self.ask(thread, now_ns);
        if let Err(error) = self.register(thread) {
            return self.fail(connect_error(&error));
        }
        self.send_datagrams(thread)
    }

    /// Takes what has come, does what is due, and goes on.
    pub(crate) fn advance_http3(&mut self, thread: &mut Thread<'_>) -> Step {
        let mut is_cut = true;
        for _ in 0..DATAGRAMS_MAX {
            match self.receive_datagram(thread) {
                Ok(()) => {}
                Err(error) if is_retry(&error) => {
                    is_cut = false;
                    break;
                }
                // An ICMP message says that nobody listens, as at a port of TCP.
                Err(error) if self.state == State::Connecting => {
                    return self.fail(connect_error(&error));
                }
                Err(error) => return self.datagrams_failed(thread, &error),
            }
        }
        let step = self.run_http3(thread);
        if is_cut && step == Step::Wait {
            self.renew(thread)
        } else {
            step
        }
    }

    fn receive_datagram(&mut self, thread: &mut Thread<'_>) -> io::Result<()> {
        let (Some(socket), Some(Multiplexed::Http3(http3))) =
            (self.socket.as_ref(), self.multiplexed.as_mut())
        else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let count = self.transport.receive(socket, &mut thread.scratch)?;
        let datagram = thread.scratch.get(..count).unwrap_or_default();
        http3.receive(datagram, Instant::now());
        if self.intended_ns >= thread.measure_from_ns {
            thread.tally.bytes += count as u64;
        }
        Ok(())
    }

    fn run_http3(&mut self, thread: &mut Thread<'_>) -> Step {
        let plan = thread.plan;
        let expected = plan.expect_body.as_ref().map(|body| body.as_slice());
        let now_ns = thread.clock.now_ns();
        let Some(Multiplexed::Http3(http3)) = self.multiplexed.as_mut() else {
            return Step::Wait;
        };
        let was_connected = http3.is_connected();
        http3.run(Instant::now(), now_ns, &plan.targets, expected);
        let is_connected = !was_connected && http3.is_connected();
        let (is_resumed, is_early) = (http3.is_resumed(), http3.took_early_data());
        // Of the requests since the last turn: those before them are no sign of these.
        let (is_answered, lost) = (std::mem::take(&mut http3.is_answered), http3.lost);
        if is_connected {
            thread.tally.connections += 1;
            thread.tally.resumed += u64::from(is_resumed);
            thread.tally.early_data += u64::from(is_early);
            self.state = State::AwaitingHead;
            if self.intended_ns >= thread.measure_from_ns {
                let elapsed_ns = now_ns.saturating_sub(self.connect_ns);
                thread.tally.tls.record(elapsed_ns);
            }
        }
        if is_answered && !self.begun {
            self.begun = true;
            if self.intended_ns >= thread.measure_from_ns {
                let elapsed_ns = now_ns.saturating_sub(self.sent_ns);
                thread.tally.first_byte.record(elapsed_ns);
            }
        }
        let was_kept = self.state == State::Kept;
        self.take_ended(thread, now_ns);
        if let Some(lost) = lost {
            return self.lost_http3(thread, lost, was_kept);
        }
        let step = self.send_datagrams(thread);
        if step != Step::Wait || self.state == State::Connecting {
            return step;
        }
        if self.pending == 0 {
            return self.all_ended(was_kept, false);
        }
        self.extend_deadline(thread, now_ns);
        Step::Wait
    }

    /// Sends the datagrams that wait, and notes when something is due next.
    pub(super) fn send_datagrams(&mut self, thread: &mut Thread<'_>) -> Step {
        let now = Instant::now();
        loop {
            let (Some(socket), Some(Multiplexed::Http3(http3))) =
                (self.socket.as_ref(), self.multiplexed.as_mut())
            else {
                return Step::Wait;
            };
            let Some(datagram) = http3.next_datagram(now) else {
                break;
            };
            match socket.send(datagram) {
                Ok(_) => http3.sent(),
                Err(error) if is_retry(&error) => return self.watch_room(thread),
                Err(error) if self.state == State::Connecting => {
                    return self.fail(connect_error(&error));
                }
                Err(error) => return self.datagrams_failed(thread, &error),
            }
        }
        match self.state {
            State::Sending if self.begun => self.state = State::AwaitingBody,
            State::Sending => self.state = State::AwaitingHead,
            _ => {}
        }
        self.set_timer(thread, now);
        Step::Wait
    }

    /// Has the loop come back when QUIC has something to do. A later time needs no entry: the
    /// present one finds it.
    fn set_timer(&mut self, thread: &mut Thread<'_>, now: Instant) {
        let Some(Multiplexed::Http3(http3)) = self.multiplexed.as_mut() else {
            return;
        };
        let Some(due) = http3.due() else {
            return;
        };
        let after = due.saturating_duration_since(now);
        let after_ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let due_ns = thread.clock.now_ns().saturating_add(after_ns);
        if due_ns < self.timer_ns {
            self.timer_ns = due_ns;
            thread.timers.push(Reverse((due_ns, thread.current)));
        }
    }

    /// The time of the connection's entry has come.
    pub(crate) fn timer_is_due(&mut self, thread: &mut Thread<'_>) -> Step {
        self.timer_ns = u64::MAX;
        self.run_http3(thread)
    }

    /// The connection is there no more.
    fn lost_http3(&mut self, thread: &mut Thread<'_>, lost: Lost, was_kept: bool) -> Step {
        if was_kept {
            match lost {
                Lost::Closed => thread.tally.closed_between += 1,
                Lost::Handshake | Lost::TimedOut | Lost::BadBytes => {
                    thread.tally.errors.count(ErrorKind::ResetIdle);
                }
            }
            self.close();
            return Step::LostBetween;
        }
        if self.pending == 0 {
            self.close();
            return Step::Finished;
        }
        let is_connecting = self.state == State::Connecting;
        self.fail(match lost {
            Lost::Handshake => ErrorKind::Tls,
            Lost::BadBytes => ErrorKind::BadBytes,
            Lost::TimedOut if is_connecting => ErrorKind::ConnectTimeout,
            Lost::TimedOut => ErrorKind::Timeout,
            Lost::Closed if is_connecting => ErrorKind::Refused,
            Lost::Closed if self.served > 0 && !self.begun => ErrorKind::ClosedIdle,
            Lost::Closed => ErrorKind::ClosedEarly,
        })
    }

    fn datagrams_failed(&mut self, thread: &mut Thread<'_>, error: &io::Error) -> Step {
        if self.state == State::Kept {
            thread.tally.errors.count(ErrorKind::ResetIdle);
            self.close();
            return Step::LostBetween;
        }
        self.fail(self.send_error(error))
    }

    /// Tells the server that the connection ends, if the socket takes it at once.
    pub(super) fn leave_http3(&mut self) {
        let (Some(socket), Some(Multiplexed::Http3(http3))) =
            (self.socket.as_ref(), self.multiplexed.as_mut())
        else {
            return;
        };
        let now = Instant::now();
        http3.sent();
        http3.leave(now);
        if let Some(datagram) = http3.next_datagram(now) {
            let _ = socket.send(datagram);
        }
    }
}
