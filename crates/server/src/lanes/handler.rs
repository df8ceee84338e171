//! What lives on a lane: HTTP's connections, and the sessions of stream. The gate that a connection
//! comes by says whose it is.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use turnpike_http::connection::{Command, Connections};
use turnpike_http::lane::LaneShared;
use turnpike_lane::event_loop::{EventHandler, EventLoop, LaneGate, Mailbox};
use turnpike_lane::sys::epoll::Event;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_stream::directory::FlowDirectory;
use turnpike_stream::own_connections::OwnConnections;
use turnpike_stream::plan::Plan;
use turnpike_stream::sessions::Sessions;

/// Plans of stream that a lane has not taken up yet. One is put here before the command that has
/// HTTP take up its own of the same number, so that it is at hand then.
#[derive(Default)]
pub(super) struct StreamPlans(Mutex<VecDeque<Arc<Plan>>>);

impl StreamPlans {
    /// Adds the plan that comes next.
    pub(super) fn add(&self, plan: Arc<Plan>) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.push_back(plan);
    }

    /// The next plan up to that generation.
    fn take(&self, generation: u64) -> Option<Arc<Plan>> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.pop_front_if(|plan| plan.generation <= generation)
    }
}

/// Whence a lane is given what concerns stream.
#[derive(Clone)]
pub(super) struct StreamSources {
    /// Plans that come next.
    pub(super) plans: Arc<StreamPlans>,
    /// Which lane has a flow of UDP.
    pub(super) flows: Arc<FlowDirectory>,
    /// What sessions of all lanes have opened to addresses of ours.
    pub(super) own_connections: Arc<OwnConnections>,
    /// The lane's own.
    pub(super) mailbox: Arc<Mailbox<Command>>,
}

/// The handlers of a lane.
pub(super) struct LaneHandler {
    lane: Rc<LaneShared>,
    http: Connections,
    stream: Sessions,
    plans: Arc<StreamPlans>,
}

impl LaneHandler {
    /// The handlers of a lane that begins with these plans.
    pub(super) fn new(
        lane: Rc<LaneShared>,
        http: Connections,
        stream: Arc<Plan>,
        sources: StreamSources,
    ) -> Self {
        let StreamSources {
            plans,
            flows,
            own_connections,
            mailbox,
        } = sources;
        let serials = lane.clone();
        let shared = turnpike_stream::lane::LaneShared::new(
            lane.clock.clone(),
            lane.handshakes.clone(),
            own_connections,
            lane.random(),
            move || serials.next_serial(),
        );
        let wake = move || mailbox.wake();
        let stream = Sessions::new(shared, stream, http.returned(), flows, wake);
        Self {
            lane,
            http,
            stream,
            plans,
        }
    }

    /// HTTP's connections.
    pub(super) fn http(&mut self) -> &mut Connections {
        &mut self.http
    }

    /// Takes up the plans of stream whose HTTP plans have been taken up by a command.
    fn take_up_plans(&mut self) {
        while let Some(plan) = self.plans.take(self.http.generation()) {
            self.stream.apply(plan);
        }
    }

    /// Serves the connections that HTTP was given for stream, and datagrams that other lanes were.
    fn serve_others(&mut self, event_loop: &mut EventLoop) {
        for other in self.http.take_others() {
            match self.make_room_for_session(event_loop) {
                0 => other.refuse(&mut self.stream, event_loop.connections_max()),
                _ => other.move_to(&mut self.stream, event_loop),
            }
        }
        let room = self.room_for_sessions(event_loop);
        self.stream.take_strays(event_loop, room);
        self.serve_passed(event_loop);
        self.lane.progress.note_sessions(self.stream.count());
    }

    /// How many sessions may begin. They last as long as their clients like, so they leave a few
    /// places to HTTP, where the lane serves that.
    fn room_for_sessions(&self, event_loop: &EventLoop) -> usize {
        let connections = self.connections();
        match self.http.listens() {
            0 => event_loop.room(connections),
            _ => event_loop.room_for_waiting(connections),
        }
    }

    /// How many sessions may begin; closes idle connections where none could.
    fn make_room_for_session(&mut self, event_loop: &mut EventLoop) -> usize {
        if self.room_for_sessions(event_loop) == 0 {
            self.http.make_room(event_loop);
        }
        self.room_for_sessions(event_loop)
    }

    /// Gives connections that sessions of stream have passed on to those whose address it is. One
    /// whose address a reload has taken away in between is closed.
    fn serve_passed(&mut self, event_loop: &mut EventLoop) {
        for passed in self.stream.take_passed() {
            if let Some(passed) = passed.move_to(&mut self.stream, event_loop) {
                drop(passed.move_to(&mut self.http, event_loop));
            }
        }
    }
}

impl EventHandler for LaneHandler {
    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        gate: u32,
        socket: OwnedFd,
        peer: PeerAddress,
    ) {
        self.http.accepted(event_loop, gate, socket, peer);
    }

    fn datagrams(&mut self, event_loop: &mut EventLoop, gate: &LaneGate) {
        let Some(place) = (gate.number as usize).checked_sub(self.http.listens()) else {
            return;
        };
        let place = (self.http.generation(), place);
        // Datagrams of existing sessions are read in any case.
        let room = self.make_room_for_session(event_loop);
        self.stream.datagrams(event_loop, place, &gate.socket, room);
    }

    fn ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool) {
        self.http.ready(event_loop, token, closed);
    }

    fn watched_socket_ready(&mut self, event_loop: &mut EventLoop, token: u32) {
        self.http.watched_socket_ready(event_loop, token);
    }

    fn numbered_socket_ready(&mut self, event_loop: &mut EventLoop, number: u64, event: Event) {
        self.stream.ready(event_loop, number, event);
    }

    fn due(&mut self, event_loop: &mut EventLoop, token: u32) {
        self.http.due(event_loop, token);
    }

    fn turn_ended(&mut self, event_loop: &mut EventLoop) {
        self.serve_others(event_loop);
        self.http.turn_ended(event_loop);
        self.stream.turn_ended();
    }

    fn tick(&mut self, event_loop: &mut EventLoop) {
        self.http.tick(event_loop);
        self.stream.tick(event_loop);
    }

    fn commands(&mut self, event_loop: &mut EventLoop) {
        // Logs may be reopened next: the lines of sessions go out with those of requests.
        self.stream.flush();
        self.http.commands(event_loop);
        if let Some(until_ms) = self.http.take_cut() {
            self.stream.cut(until_ms);
        }
        self.take_up_plans();
        self.serve_others(event_loop);
    }

    fn connections(&self) -> usize {
        self.http.connections() + self.stream.count()
    }

    fn driven(&self) -> usize {
        self.http.driven() + self.stream.driven()
    }

    fn make_room(&mut self, event_loop: &mut EventLoop) -> bool {
        self.http.make_room(event_loop)
    }

    fn refuses_when_full(&self, gate: u32) -> bool {
        gate as usize >= self.http.listens()
    }

    fn stays_full(&mut self, event_loop: &mut EventLoop) {
        self.http.stays_full(event_loop);
    }

    fn accept_failed(&mut self, event_loop: &mut EventLoop, gate: u32, error: &io::Error) {
        self.http.accept_failed(event_loop, gate, error);
    }

    fn finished(&self) -> bool {
        self.http.is_terminated() || (self.stream.count() == 0 && self.http.finished())
    }
}
