//! What sessions do with the events of their lane.

use std::convert::Infallible;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::{EventLoop, Owner};
use turnpike_lane::flows::ForwardedDatagram;
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::epoll::Event;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_plan::passed::PassedConnection;
use turnpike_plan::protocol::{LaneCommon, Protocol};

use crate::client::Client;
use crate::flow_table::FlowTable;
use crate::lane::{LanePlan, LaneShared};
use crate::own_connections::OwnConnections;
use crate::phase::NewClient;
use crate::plan::Plan;
use crate::relay_socket::RelaySocket;
use crate::session::Session;
use crate::sessions::{Sessions, local_address, log_full, steps};
use crate::stepped::SteppedSessions;

impl Protocol for Sessions {
    type Plan = Plan;
    type Process = OwnConnections;
    /// Sessions stay with their lane, and their process, to their end.
    type Moving = Infallible;
    type Successor = Infallible;
    type Command = Infallible;

    const HAS_SESSIONS: bool = true;

    fn new(
        lane: Rc<LaneCommon>,
        owner: Owner,
        process: &Arc<OwnConnections>,
        plan: Arc<Plan>,
    ) -> Self {
        Self {
            stepped: SteppedSessions::new(lane.clock.now_ms()),
            owner,
            flows: Rc::new(FlowTable::new(Rc::clone(&lane.flows), owner)),
            is_full: false,
            plan: LanePlan::new(plan),
            old_plans: Vec::new(),
            under_way: Rc::default(),
            ended: Rc::clone(&lane.ended),
            passed: Rc::default(),
            cut: Rc::default(),
            lane: LaneShared::new(lane, Arc::clone(process)),
        }
    }

    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        place: u32,
        socket: OwnedFd,
        peer: PeerAddress,
    ) {
        let (plan, listen) = (Rc::clone(&self.plan), place as usize);
        if let Err(most) = self.lane.may_keep(socket.as_fd()) {
            let server = &plan.servers[plan.listens[listen].default_server];
            let message = format_args!("{most} open files are not enough for another session");
            server.error_log.event(Level::Alert, message);
            return;
        }
        let local = local_address(&plan.listens[listen].address, &socket);
        let mut session = Session::new(self.lane.clone(), plan, listen, [peer, local]);
        session.find_origin(Some(&socket));
        let client = NewClient::Connection(RelaySocket::client(socket));
        match steps(&session, client) {
            Ok(steps) => {
                let sockets = event_loop.numbered_sockets(self.owner);
                self.stepped.begin(&sockets, (session, steps, None), "");
            }
            Err(NewClient::Connection(client)) => {
                let client = Client::new(client.into_transport());
                self.begin(event_loop, session, client, None);
            }
            Err(NewClient::Flow(_)) => {}
        }
    }

    fn refused(&mut self, place: u32, connections_max: usize) {
        let listen = &self.plan.listens[place as usize];
        log_full(&self.plan.servers[listen.default_server], connections_max);
    }

    fn datagrams(
        &mut self,
        event_loop: &mut EventLoop,
        place: u32,
        gate: &Arc<OwnedFd>,
        room: usize,
    ) {
        self.read_datagrams(event_loop, place as usize, gate, room);
    }

    fn forwarded(
        &mut self,
        event_loop: &mut EventLoop,
        datagram: ForwardedDatagram,
        room: &mut usize,
    ) {
        self.take_forwarded(event_loop, datagram, room);
    }

    fn numbered_socket_ready(&mut self, event_loop: &mut EventLoop, number: u64, event: Event) {
        let sockets = event_loop.numbered_sockets(self.owner);
        self.stepped.ready(&sockets, number, event);
    }

    fn turn_ended(&mut self, _event_loop: &mut EventLoop) {}

    fn tick(&mut self, event_loop: &mut EventLoop) {
        let now_ms = event_loop.clock.now_ms();
        self.is_full = false;
        let sockets = event_loop.numbered_sockets(self.owner);
        self.stepped.tick(&sockets, now_ms);
        self.every_plan(|plan| plan.tick(now_ms));
    }

    /// Sessions end under the plan they began with.
    fn take_plan(&mut self, _event_loop: &mut EventLoop, plan: Arc<Plan>) {
        let old = std::mem::replace(&mut self.plan, LanePlan::new(plan));
        self.old_plans.push(Rc::downgrade(&old));
    }

    fn flush(&mut self) {
        self.every_plan(LanePlan::flush);
    }

    fn obey(&mut self, _event_loop: &mut EventLoop, command: Infallible) {
        match command {}
    }

    fn cut(&mut self, _event_loop: &mut EventLoop, until_ms: u64) {
        self.cut.set(until_ms);
        self.stepped.cut(until_ms);
    }

    fn keep(&mut self, _event_loop: &mut EventLoop, moving: Infallible) {
        match moving {}
    }

    fn adopt(&mut self, _event_loop: &mut EventLoop, moving: Infallible) {
        match moving {}
    }

    fn take_passed(&mut self) -> Vec<PassedConnection> {
        self.passed.take()
    }

    fn connections(&self) -> usize {
        self.driven() + self.stepped.len()
    }

    fn driven(&self) -> usize {
        self.under_way.get()
    }

    fn gates(&self) -> usize {
        self.plan.listens.len()
    }

    fn gate_log(&self, place: u32) -> Option<&ErrorLog> {
        let listen = self.plan.listens.get(place as usize)?;
        Some(&self.plan.servers[listen.default_server].error_log)
    }
}
