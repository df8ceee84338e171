//! What a lane does with the events of its loop: it finds out whose they are.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::{
    self, EventHandler, EventLoop, GateNumber, LaneGate, Mailbox, Owner,
};
use turnpike_lane::sys::epoll::Event;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_plan::protocol::{LaneCommon, Protocol as _};

use crate::commands::{Apply, Command};
use crate::ending::Ending;
use crate::full::FullReports;
use crate::list::{Process, Protocols};

/// The handler of a lane.
pub struct LaneHandler {
    pub(crate) common: Rc<LaneCommon>,
    pub(crate) protocols: Protocols,
    pub(crate) mailbox: Arc<Mailbox<Command>>,
    pub(crate) ending: Ending,
    pub(crate) full: FullReports,
}

impl LaneHandler {
    /// The handler of a lane of that number, and its loop; they begin with these plans.
    ///
    /// # Errors
    /// Those of making an epoll instance.
    pub fn begin(
        index: usize,
        process: &Process,
        mailbox: &Arc<Mailbox<Command>>,
        apply: Apply,
    ) -> io::Result<(Self, EventLoop)> {
        let own = Arc::clone(mailbox);
        let common = LaneCommon::new(index, &process.common, move || own.wake());
        let mut event_loop = EventLoop::new(Rc::clone(&common.clock), mailbox.as_fd())?;
        let mut handler = Self {
            protocols: Protocols::new(&common, process, apply.plans.clone()),
            common,
            mailbox: Arc::clone(mailbox),
            ending: Ending::No,
            full: FullReports::default(),
        };
        handler.apply(&mut event_loop, apply);
        Ok((handler, event_loop))
    }

    /// Serves until the lane ends.
    ///
    /// # Errors
    /// Those of [`event_loop::run`].
    pub fn run(&mut self, event_loop: &mut EventLoop) -> io::Result<()> {
        let ended = Rc::clone(&self.common.ended);
        event_loop::run(event_loop, self, &ended)
    }

    /// The protocols.
    pub fn protocols(&self) -> &Protocols {
        &self.protocols
    }

    /// How many sessions there are.
    #[cfg(feature = "simulation")]
    pub fn sessions(&self) -> usize {
        self.protocols.sessions()
    }

    /// How many sessions may begin. They last as long as their clients like, so they leave a few
    /// places to other connections, where the lane serves such.
    fn room_for_sessions(&self, event_loop: &EventLoop) -> usize {
        let connections = self.connections();
        if self.protocols.have_brief_gates() {
            event_loop.room_for_waiting(connections)
        } else {
            event_loop.room(connections)
        }
    }

    /// How many sessions may begin; closes idle connections where none could.
    fn make_room_for_session(&mut self, event_loop: &mut EventLoop) -> usize {
        if self.room_for_sessions(event_loop) == 0 {
            self.protocols.make_room(event_loop);
        }
        self.room_for_sessions(event_loop)
    }

    /// Serves datagrams of this lane's flows that came to other lanes, or were left unread.
    fn take_forwarded(&mut self, event_loop: &mut EventLoop) {
        if !self.common.flows.has_waiting() {
            return;
        }
        let mut room = self.room_for_sessions(event_loop);
        for datagram in self.common.flows.take_waiting() {
            self.protocols.forwarded(event_loop, datagram, &mut room);
        }
    }
}

impl EventHandler for LaneHandler {
    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        gate: GateNumber,
        socket: OwnedFd,
        peer: PeerAddress,
    ) {
        if self.protocols.have_sessions(gate.owner) && self.make_room_for_session(event_loop) == 0 {
            self.protocols.refused(gate, event_loop.connections_max());
            return;
        }
        self.protocols.accepted(event_loop, gate, socket, peer);
    }

    fn datagrams(&mut self, event_loop: &mut EventLoop, gate: &LaneGate) {
        // Datagrams of existing sessions are read in any case.
        let room = self.make_room_for_session(event_loop);
        self.protocols.datagrams(event_loop, gate, room);
    }

    // Connections are parked by HTTP alone: others number their sockets.

    fn ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool) {
        self.protocols.http.ready(event_loop, token, closed);
    }

    fn watched_socket_ready(&mut self, event_loop: &mut EventLoop, token: u32) {
        self.protocols.http.watched_socket_ready(event_loop, token);
    }

    fn due(&mut self, event_loop: &mut EventLoop, token: u32) {
        self.protocols.http.due(event_loop, token);
    }

    fn numbered_socket_ready(
        &mut self,
        event_loop: &mut EventLoop,
        owner: Owner,
        number: u64,
        event: Event,
    ) {
        self.protocols
            .numbered_socket_ready(event_loop, owner, number, event);
    }

    fn numbered_timer_due(&mut self, event_loop: &mut EventLoop, owner: Owner, number: u64) {
        self.protocols.numbered_timer_due(event_loop, owner, number);
    }

    fn turn_ended(&mut self, event_loop: &mut EventLoop) {
        self.common.handshakes.turn_ended();
        self.protocols.serve_passed(event_loop);
        self.take_forwarded(event_loop);
        self.protocols.turn_ended(event_loop);
        self.common.note_sessions(self.protocols.sessions());
        self.give_moving(event_loop);
    }

    fn tick(&mut self, event_loop: &mut EventLoop) {
        self.protocols.tick(event_loop);
    }

    fn commands(&mut self, event_loop: &mut EventLoop) {
        self.obey(event_loop);
    }

    fn connections(&self) -> usize {
        self.protocols.connections()
    }

    fn driven(&self) -> usize {
        self.protocols.driven()
    }

    fn make_room(&mut self, event_loop: &mut EventLoop) -> bool {
        self.protocols.make_room(event_loop)
    }

    fn refuses_when_full(&self, gate: GateNumber) -> bool {
        self.protocols.have_sessions(gate.owner)
    }

    fn stays_full(&mut self, event_loop: &mut EventLoop) {
        self.full.stays_full(event_loop, self.protocols.first_log());
    }

    fn accept_failed(&mut self, _event_loop: &mut EventLoop, gate: GateNumber, error: &io::Error) {
        let log = self.protocols.gate_log(gate);
        FullReports::accept_failed(log.or(self.protocols.first_log()), error);
    }

    fn finished(&self) -> bool {
        match &self.ending {
            Ending::No => false,
            // Another lane, or process, may just be handing something over.
            Ending::Leaving(_) | Ending::Draining => {
                self.protocols.held() == 0
                    && self.common.flows.close_if_empty()
                    && self.mailbox.close_if_empty()
            }
            Ending::Now => true,
        }
    }
}
