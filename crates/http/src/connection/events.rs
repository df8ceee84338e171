//! What connections do with the events of their lane.

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::{EventLoop, Owner};
use turnpike_lane::flows::ForwardedDatagram;
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::epoll::Event;
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::transport::Transport;
use turnpike_lane::turns;
use turnpike_plan::protocol::{LaneCommon, Protocol};

use super::background;
use super::commands::Command;
use super::connections::Connections;
use super::moving::Moving;
use super::moving::SuccessorLink;
use super::return_queue::{DrivenSlot, Left};
use super::sampled_logs;
use super::slot::Slot;
use super::slots::Place;
use crate::counters::{AllCounters, CloseReason};
use crate::lane::{LanePlan, LaneShared};
use crate::plan::index::ListenIndex;
use crate::plan::resolved::Plan;

impl Protocol for Connections {
    type Plan = Plan;
    type Process = AllCounters;
    type Moving = Box<Moving>;
    type Successor = SuccessorLink;
    type Command = Command;

    fn new(
        lane: Rc<LaneCommon>,
        owner: Owner,
        process: &Arc<AllCounters>,
        plan: Arc<Plan>,
    ) -> Self {
        let lane = LaneShared::new(lane, Arc::clone(process));
        Self::begin(lane, LanePlan::new(plan), owner)
    }

    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        place: u32,
        socket: OwnedFd,
        peer: PeerAddress,
    ) {
        self.round.has_worked = true;
        let transport = Transport::plain(socket);
        let connection = self.begun(event_loop, ListenIndex(place), transport, peer);
        let served = AssertUnwindSafe(|| self.first_transaction(event_loop, connection));
        if catch_unwind(served).is_err() {
            self.panicked();
        }
    }

    fn datagrams(
        &mut self,
        event_loop: &mut EventLoop,
        place: u32,
        gate: &Arc<OwnedFd>,
        room: usize,
    ) {
        self.round.has_worked = true;
        let read = AssertUnwindSafe(|| self.read_datagrams(event_loop, place, gate, room));
        if catch_unwind(read).is_err() {
            self.panicked();
        }
    }

    fn forwarded(
        &mut self,
        event_loop: &mut EventLoop,
        datagram: ForwardedDatagram,
        room: &mut usize,
    ) {
        self.round.has_worked = true;
        let taken = AssertUnwindSafe(|| self.take_forwarded(event_loop, &datagram, room));
        if catch_unwind(taken).is_err() {
            self.panicked();
        }
    }

    fn numbered_socket_ready(&mut self, event_loop: &mut EventLoop, number: u64, _event: Event) {
        self.round.has_worked = true;
        let read = AssertUnwindSafe(|| self.last_gate_ready(event_loop, number));
        if catch_unwind(read).is_err() {
            self.panicked();
        }
    }

    fn numbered_timer_due(&mut self, event_loop: &mut EventLoop, number: u64) {
        let served = AssertUnwindSafe(|| self.http3_due(event_loop, number));
        if catch_unwind(served).is_err() {
            self.panicked();
        }
    }

    fn ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool) {
        self.round.has_worked = true;
        let served = AssertUnwindSafe(|| self.parked_ready(event_loop, token, closed));
        if catch_unwind(served).is_err() {
            self.unpark(event_loop, Place::At(token));
            self.panicked();
        }
    }

    fn watched_socket_ready(&mut self, event_loop: &mut EventLoop, token: u32) {
        let served = AssertUnwindSafe(|| self.answer_ready(event_loop, token));
        if catch_unwind(served).is_err() {
            self.unpark(event_loop, Place::At(token));
            self.panicked();
        }
    }

    fn due(&mut self, event_loop: &mut EventLoop, token: u32) {
        let closed = AssertUnwindSafe(|| self.parked_due(event_loop, token));
        if catch_unwind(closed).is_err() {
            self.unpark(event_loop, Place::At(token));
            self.panicked();
        }
    }

    fn turn_ended(&mut self, event_loop: &mut EventLoop) {
        let served = AssertUnwindSafe(|| self.serve_http3(event_loop));
        if catch_unwind(served).is_err() {
            self.panicked();
        }
        if std::mem::take(&mut self.round.has_worked) {
            self.measure_round(event_loop);
        }
        self.drive_background(event_loop);
        loop {
            let Some(returned) = self.return_queue.returned.borrow_mut().pop() else {
                break;
            };
            self.slots.put(returned.slot.token, Slot::InTurn);
            self.count_writing(0);
            self.take_back(event_loop, returned.slot, returned.left);
        }
    }

    fn tick(&mut self, event_loop: &mut EventLoop) {
        let now_ms = event_loop.clock.now_ms();
        self.ticked_ms = now_ms;
        self.slots.check_invariants();
        self.every_plan(|plan| plan.tick(now_ms));
        self.give_to_successor(event_loop);
        self.spare_connections(now_ms);
        self.tick_http3(now_ms);
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

    fn take_plan(&mut self, event_loop: &mut EventLoop, plan: Arc<Plan>) {
        self.serve_by(event_loop, plan);
    }

    fn flush(&mut self) {
        self.every_plan(LanePlan::flush);
    }

    fn obey(&mut self, event_loop: &mut EventLoop, command: Command) {
        match command {
            Command::ListRequests { to } => {
                // Who asked may have given up.
                let _ = to.send(self.request_list(event_loop.clock.now_ms()));
            }
            Command::CloseRequest { id, to } => {
                if self.close_request(event_loop, id) {
                    let _ = to.send(());
                }
            }
        }
    }

    fn cut(&mut self, event_loop: &mut EventLoop, until_ms: u64) {
        self.cut_all(event_loop, until_ms);
    }

    fn announce_end(&mut self, event_loop: &mut EventLoop) {
        self.lane.shutdown.drain();
        self.tell_of_end(event_loop);
    }

    fn drain(&mut self, event_loop: &mut EventLoop, successor: Option<Arc<SuccessorLink>>) {
        self.begin_drain(event_loop, successor);
    }

    fn leave(&mut self, event_loop: &mut EventLoop, plan: &Plan) {
        self.begin_leave(event_loop, plan);
    }

    fn gates_closed(&mut self, event_loop: &mut EventLoop) {
        self.hurry(event_loop);
    }

    fn take_moving(&mut self) -> Vec<Box<Moving>> {
        std::mem::take(&mut self.moving)
    }

    fn was_moved(&mut self) {
        self.lane.counters.active.sub();
        self.lane.counters.moved.add();
    }

    fn keep(&mut self, event_loop: &mut EventLoop, moving: Box<Moving>) {
        self.keep_here(event_loop, *moving);
    }

    fn adopt(&mut self, event_loop: &mut EventLoop, moving: Box<Moving>) {
        self.adopt_connection(event_loop, *moving);
    }

    fn connections(&self) -> usize {
        self.held() - self.beside.streams - self.slots.population().leaving
    }

    fn driven(&self) -> usize {
        self.slots.population().driven() + self.beside.streams + self.beside.background
    }

    fn make_room(&mut self, event_loop: &mut EventLoop) -> bool {
        self.close_to_make_room(event_loop)
    }

    /// Connections, and futures beside them: requests of HTTP/2, and those that no client waits
    /// for.
    fn held(&self) -> usize {
        let http3 = self.http3.as_ref().map_or(0, |http3| http3.open());
        self.slots.len() + http3 + self.beside.streams + self.beside.background
    }

    fn gates(&self) -> usize {
        self.plan.listens.len()
    }

    fn gate_log(&self, place: u32) -> Option<&ErrorLog> {
        self.log_of(place as usize)
    }
}

impl Connections {
    /// A driven connection is handed back, or what is left of it.
    fn take_back(&mut self, event_loop: &mut EventLoop, slot: DrivenSlot, left: Left) {
        let token = slot.token;
        let served = AssertUnwindSafe(|| match left {
            Left::Connection(connection, exchange) => {
                self.taken_back(event_loop, slot, connection, exchange);
            }
            Left::Handshake(connection, state) => {
                self.taken_back_in_handshake(event_loop, slot, connection, *state);
            }
            Left::Http2(connection) => self.taken_back_http2(event_loop, token, connection),
            Left::Ended(reason) => {
                self.unpark(event_loop, Place::At(token));
                self.lane.counters.was_closed(reason);
            }
            Left::Dropped => {
                self.unpark(event_loop, Place::At(token));
                self.lane.counters.panics.add();
                self.lane.counters.was_closed(CloseReason::Failed);
            }
        });
        if catch_unwind(served).is_err() {
            self.unpark(event_loop, Place::At(token));
            self.panicked();
        }
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
        self.beside.streams -= streams_ended;
        self.beside.background -= ended;
        let before = self.beside;
        for answer in background.take_streams() {
            self.beside.streams += 1;
            event_loop.drive(background::counted_stream(
                answer,
                Rc::clone(&self.return_queue),
            ));
        }
        for task in background.take_requests() {
            self.beside.background += 1;
            event_loop.drive(background::counted(task, Rc::clone(&self.return_queue)));
        }
        let has_ended = ended + streams_ended > 0;
        if has_ended || before != self.beside {
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
