//! A lane that serves HTTP alone: it does with its connections what a lane of the server does.

use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::{self, EventHandler, EventLoop, GateNumber, Mailbox, Owner};
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_plan::protocol::{LaneCommon, ProcessCommon, Protocol};

use super::super::connections::Connections;
use super::super::{Moving, SuccessorLink};
use crate::plan::Plan;

/// The only gate.
pub(super) const GATE: GateNumber = GateNumber {
    owner: Owner(0),
    place: 0,
};

/// What the lane may be told.
pub(crate) enum Command {
    Announce,
    Quit {
        successor: Option<Arc<SuccessorLink>>,
    },
    Leave {
        plan: Arc<Plan>,
        successor: Arc<Mailbox<Command>>,
    },
    Adopt(Box<Moving>),
    Terminate,
}

/// The handler of the lane.
pub(crate) struct OnlyHttp {
    connections: Connections,
    mailbox: Arc<Mailbox<Command>>,
    successor: Option<Arc<Mailbox<Command>>>,
    is_ending: bool,
    is_terminated: bool,
}

impl OnlyHttp {
    pub(super) fn begin(plan: Arc<Plan>, mailbox: &Arc<Mailbox<Command>>) -> (Self, EventLoop) {
        let common = LaneCommon::new(0, &ProcessCommon::default(), || {});
        let mut event_loop = EventLoop::new(Rc::clone(&common.clock), mailbox.as_fd()).unwrap();
        let mut connections = Connections::new(common, Owner(0), &Arc::default(), plan.clone());
        Protocol::take_plan(&mut connections, &mut event_loop, plan);
        let handler = Self {
            connections,
            mailbox: mailbox.clone(),
            successor: None,
            is_ending: false,
            is_terminated: false,
        };
        (handler, event_loop)
    }

    pub(super) fn run(&mut self, event_loop: &mut EventLoop) {
        let ended = self.lane.common.ended.clone();
        event_loop::run(event_loop, self, &ended).unwrap();
    }

    pub(crate) fn held(&self) -> usize {
        self.connections.held()
    }

    fn give_moving(&mut self, event_loop: &mut EventLoop) {
        let Some(successor) = self.successor.clone() else {
            return;
        };
        for moving in self.connections.take_moving() {
            match successor.try_send(Command::Adopt(moving)) {
                Ok(()) => self.connections.was_moved(),
                Err(Command::Adopt(moving)) => self.connections.keep(event_loop, moving),
                Err(_) => panic!("another letter came back"),
            }
        }
    }
}

impl Deref for OnlyHttp {
    type Target = Connections;

    fn deref(&self) -> &Connections {
        &self.connections
    }
}

impl DerefMut for OnlyHttp {
    fn deref_mut(&mut self) -> &mut Connections {
        &mut self.connections
    }
}

impl EventHandler for OnlyHttp {
    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        gate: GateNumber,
        socket: OwnedFd,
        peer: PeerAddress,
    ) {
        self.connections
            .accepted(event_loop, gate.place, socket, peer);
    }

    fn ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool) {
        self.connections.ready(event_loop, token, closed);
    }

    fn watched_socket_ready(&mut self, event_loop: &mut EventLoop, token: u32) {
        self.connections.watched_socket_ready(event_loop, token);
    }

    fn due(&mut self, event_loop: &mut EventLoop, token: u32) {
        self.connections.due(event_loop, token);
    }

    fn turn_ended(&mut self, event_loop: &mut EventLoop) {
        self.lane.handshakes.turn_ended();
        self.connections.turn_ended(event_loop);
        self.give_moving(event_loop);
    }

    fn tick(&mut self, event_loop: &mut EventLoop) {
        self.connections.tick(event_loop);
    }

    fn commands(&mut self, event_loop: &mut EventLoop) {
        let mailbox = self.mailbox.clone();
        mailbox.acknowledge().unwrap();
        while let Some(command) = mailbox.receive() {
            match command {
                Command::Announce => self.connections.announce_end(event_loop),
                Command::Quit { successor } => {
                    self.is_ending = true;
                    self.connections.drain(event_loop, successor);
                    self.connections.gates_closed(event_loop);
                }
                Command::Leave { plan, successor } => {
                    self.is_ending = true;
                    self.successor = Some(successor);
                    self.connections.leave(event_loop, &plan);
                    self.connections.gates_closed(event_loop);
                    self.give_moving(event_loop);
                }
                Command::Adopt(moving) => self.connections.adopt(event_loop, moving),
                Command::Terminate => self.is_terminated = true,
            }
        }
    }

    fn connections(&self) -> usize {
        self.connections.connections()
    }

    fn driven(&self) -> usize {
        self.connections.driven()
    }

    fn make_room(&mut self, event_loop: &mut EventLoop) -> bool {
        self.connections.make_room(event_loop)
    }

    fn accept_failed(&mut self, _: &mut EventLoop, _: GateNumber, error: &std::io::Error) {
        panic!("{error}");
    }

    fn finished(&self) -> bool {
        let is_done = || self.connections.held() == 0 && self.mailbox.close_if_empty();
        self.is_terminated || (self.is_ending && is_done())
    }
}
