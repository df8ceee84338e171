//! What connections do with the events of the lane's loop.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use turnpike_lane::event_loop::{EventHandler, EventLoop};
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::transport::Transport;
use turnpike_lane::turns;
use turnpike_plan::passed::{AcceptedConnection, PlanGate};

use super::background;
use super::connections::{Connections, Ending};
use super::return_queue::{DrivenSlot, Left};
use super::sampled_logs;
use super::slot::Slot;
use crate::counters::CloseReason;
use crate::plan::index::ListenIndex;

/// The time between two lines of the log that say that a lane is full, in milliseconds: it tries to
/// accept some fifty times a second.
const FULL_LINES_MS: u64 = 60_000;

/// The system has too many files open, errno(3) on Linux.
const ENFILE: i32 = 23;

/// The process has too many files open.
const EMFILE: i32 = 24;

impl EventHandler for Connections {
    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        gate: u32,
        socket: OwnedFd,
        peer: PeerAddress,
    ) {
        self.round.has_worked = true;
        if let Some(place) = (gate as usize).checked_sub(self.plan.listens.len()) {
            let generation = self.plan.generation;
            let gate = PlanGate { generation, place };
            let other = AcceptedConnection::new(gate, socket, peer);
            self.others.push(other);
            return;
        }
        let transport = Transport::plain(socket);
        let connection = self.begun(event_loop, ListenIndex(gate), transport, peer);
        let served = AssertUnwindSafe(|| self.first_transaction(event_loop, connection));
        if catch_unwind(served).is_err() {
            self.panicked();
        }
    }

    fn ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool) {
        self.round.has_worked = true;
        let served = AssertUnwindSafe(|| self.parked_ready(event_loop, token, closed));
        if catch_unwind(served).is_err() {
            self.unpark(event_loop, Some(token));
            self.panicked();
        }
    }

    fn watched_socket_ready(&mut self, event_loop: &mut EventLoop, token: u32) {
        let served = AssertUnwindSafe(|| self.answer_ready(event_loop, token));
        if catch_unwind(served).is_err() {
            self.unpark(event_loop, Some(token));
            self.panicked();
        }
    }

    fn due(&mut self, event_loop: &mut EventLoop, token: u32) {
        let closed = AssertUnwindSafe(|| self.parked_due(event_loop, token));
        if catch_unwind(closed).is_err() {
            self.unpark(event_loop, Some(token));
            self.panicked();
        }
    }

    fn turn_ended(&mut self, event_loop: &mut EventLoop) {
        self.lane.handshakes.turn_ended();
        if std::mem::take(&mut self.round.has_worked) {
            self.measure_round(event_loop);
        }
        self.drive_background(event_loop);
        loop {
            let Some(returned) = self.return_queue.returned.borrow_mut().pop() else {
                break;
            };
            self.driven -= 1;
            self.driven_connections -= 1;
            let slot = returned.slot;
            self.leaving_connections -= usize::from(self.is_leaving(slot.token));
            self.http2_connections -= usize::from(slot.is_http2);
            self.count_writing(0);
            self.take_back(event_loop, slot, returned.left);
        }
    }

    fn tick(&mut self, event_loop: &mut EventLoop) {
        let now_ms = event_loop.clock.now_ms();
        self.ticked_ms = now_ms;
        self.every_plan(|plan| plan.tick(now_ms));
        self.give_to_successor(event_loop);
        self.spare_connections(now_ms);
        self.report_shortages(now_ms);
        self.give_memory_back(now_ms);
        let written = AssertUnwindSafe(|| sampled_logs::write_logs(&self.lane, &self.plan));
        if catch_unwind(written).is_err() {
            self.lane.counters.panics.add();
            self.report(format_args!(
                "a panic was caught; some lines of logs are lost"
            ));
        }
    }

    fn commands(&mut self, event_loop: &mut EventLoop) {
        self.obey(event_loop);
    }

    fn connections(&self) -> usize {
        self.held() - self.driven_streams - self.leaving_connections
    }

    fn driven(&self) -> usize {
        self.driven
    }

    fn make_room(&mut self, event_loop: &mut EventLoop) -> bool {
        self.close_to_make_room(event_loop)
    }

    fn stays_full(&mut self, event_loop: &mut EventLoop) {
        let now_ms = event_loop.clock.now_ms();
        if now_ms >= self.full_said_until_ms {
            self.full_said_until_ms = now_ms + FULL_LINES_MS;
            let most = self.plan.events.connections_max;
            let message = format_args!(
                "{most} worker_connections are not enough; new connections wait, since none can \
                 be closed"
            );
            self.report_as(Level::Alert, message);
        }
    }

    fn accept_failed(&mut self, _event_loop: &mut EventLoop, gate: u32, error: &io::Error) {
        // A gate of others says so in the log of the first server.
        let listens = &self.plan.listens;
        let Some(listen) = listens.get(gate as usize).or(listens.first()) else {
            return;
        };
        let root = self.plan.server(listen.default_server).root;
        let log = &self.plan.location(root).error_log;
        let level = match error.raw_os_error() {
            Some(ENFILE | EMFILE) => Level::Crit,
            _ => Level::Alert,
        };
        log.event(level, format_args!("accept4() failed {}", Errno(error)));
    }

    fn finished(&self) -> bool {
        match &self.ending {
            Ending::No => false,
            // Another lane may just be handing something over.
            Ending::Leaving(_) | Ending::Draining { .. } => {
                self.held() == 0 && self.mailbox.close_if_empty()
            }
            Ending::Now => true,
        }
    }
}

impl Connections {
    /// Connections, and futures beside them: requests of HTTP/2, and those that no client waits
    /// for.
    pub(super) fn held(&self) -> usize {
        self.slots.len() + self.driven - self.driven_connections
    }

    /// A driven connection is handed back, or what is left of it.
    fn take_back(&mut self, event_loop: &mut EventLoop, slot: DrivenSlot, left: Left) {
        let token = slot.token;
        let served = AssertUnwindSafe(|| match left {
            Left::Connection(connection, exchange) => {
                self.taken_back(event_loop, slot, connection, exchange);
            }
            Left::Http2(connection) => self.taken_back_http2(event_loop, token, connection),
            Left::Ended(reason) => {
                self.unpark(event_loop, Some(token));
                self.lane.counters.was_closed(reason);
            }
            Left::Dropped => {
                self.unpark(event_loop, Some(token));
                self.lane.counters.panics.add();
                self.lane.counters.was_closed(CloseReason::Failed);
            }
        });
        if catch_unwind(served).is_err() {
            self.unpark(event_loop, Some(token));
            self.panicked();
        }
    }

    /// Whether a connection ends to make room.
    fn is_leaving(&self, token: u32) -> bool {
        matches!(self.slots.get(token as usize), Some(Slot::Driven(driven)) if driven.is_leaving)
    }

    /// Takes up and counts down tasks that no client waits for.
    fn drive_background(&mut self, event_loop: &mut EventLoop) {
        let background = &self.lane.background;
        let ended = self.return_queue.background_ended.take();
        if self.return_queue.background_spent.take() > 0 {
            self.lane.counters.panics.add();
            self.report_as(
                Level::Alert,
                format_args!("a request of no client: {}", turns::Ended),
            );
        }
        background.requests_ended(ended);
        let streams_ended = self.return_queue.streams_ended.take();
        self.driven_streams -= streams_ended;
        self.driven -= ended + streams_ended;
        let before = (self.driven, self.driven_streams);
        for answer in background.take_streams() {
            self.driven += 1;
            self.driven_streams += 1;
            event_loop.drive(background::counted_stream(
                answer,
                Rc::clone(&self.return_queue),
            ));
        }
        for task in background.take_requests() {
            self.driven += 1;
            event_loop.drive(background::counted(task, Rc::clone(&self.return_queue)));
        }
        let has_ended = ended + streams_ended > 0;
        if has_ended || before != (self.driven, self.driven_streams) {
            self.count_writing(0);
        }
    }

    fn measure_round(&mut self, event_loop: &EventLoop) {
        let took_ns = monotonic_ns().saturating_sub(event_loop.clock.now_ns());
        let counters = &self.lane.counters;
        counters.rounds.record(took_ns);
        let answers = self.lane.progress.take_round_answers();
        if answers > 0 {
            counters.request_times.record_many(took_ns, answers);
        }
        let first_answers = std::mem::take(&mut self.round.first_answers);
        if first_answers > 0 {
            counters.first_byte.record_many(took_ns, first_answers);
        }
    }
}
