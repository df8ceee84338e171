//! The sessions of a lane.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use tokio::sync::Notify;
use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_lane::sys::epoll::Event;
use turnpike_lane::sys::socket::{self, PeerAddress};
use turnpike_lane::transport::Transport;
use turnpike_plan::passed::{Acceptor, PassedConnection, PassedFacts, PlanGate, Receiver};

use crate::client::Client;
use crate::cut::Cut;
use crate::directory::FlowDirectory;
use crate::flow_table::{FlowTable, Registered};
use crate::lane::{LanePlan, LaneShared};
use crate::phase::{NewClient, Phase, Steps};
use crate::plan::{Plan, Server};
use crate::relay_socket::RelaySocket;
use crate::serve::serve;
use crate::session::Session;
use crate::stepped::SteppedSessions;

/// The sessions of one lane. Each goes on under the plan it began with: in steps where it only
/// passes bytes on, else as a future on the lane's runtime.
pub struct Sessions {
    pub(crate) lane: Rc<LaneShared>,
    pub(crate) flows: Rc<FlowTable>,
    /// A flow was turned away since the last tick, and that was said.
    pub(crate) is_full: bool,
    /// The plan in force, last, behind those whose connections may still come in this turn.
    plans: Vec<Rc<LanePlan>>,
    /// Plans before it that sessions may still hold: what they buffer goes by time too.
    old_plans: Vec<Weak<LanePlan>>,
    pub(crate) stepped: SteppedSessions,
    /// Futures.
    under_way: Rc<Cell<usize>>,
    /// Notified when a future ends.
    ended: Rc<Notify>,
    /// Connections that sessions pass to other addresses, until they are taken.
    passed: Rc<RefCell<Vec<PassedConnection>>>,
    cut: Rc<Cut>,
}

/// Counts a future for as long as it lives, however it ends.
struct Counted {
    under_way: Rc<Cell<usize>>,
    ended: Rc<Notify>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.under_way.set(self.under_way.get() - 1);
        self.ended.notify_one();
    }
}

impl Sessions {
    /// No sessions yet. `ended` is notified when one ends; `wake` wakes the lane, from any thread.
    pub fn new(
        lane: Rc<LaneShared>,
        plan: Arc<Plan>,
        ended: Rc<Notify>,
        directory: Arc<FlowDirectory>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self {
            stepped: SteppedSessions::new(lane.clock.now_ms()),
            lane,
            flows: Rc::new(FlowTable::new(directory, wake)),
            is_full: false,
            plans: vec![LanePlan::new(plan)],
            old_plans: Vec::new(),
            under_way: Rc::default(),
            ended,
            passed: Rc::default(),
            cut: Rc::default(),
        }
    }

    /// Serves by another plan from now on. Sessions end under the plan they began with.
    pub fn apply(&mut self, plan: Arc<Plan>) {
        self.plans.push(LanePlan::new(plan));
    }

    /// A socket of a session has an event.
    pub fn ready(&mut self, event_loop: &mut EventLoop, number: u64, event: Event) {
        let sockets = event_loop.numbered_sockets();
        self.stepped.ready(&sockets, number, event);
    }

    /// Begins a session that is a future; that of a flow has a place in the lane's table of them.
    pub(crate) fn begin(
        &mut self,
        event_loop: &mut EventLoop,
        session: Session,
        client: Client,
        registered: Option<Registered>,
    ) {
        self.under_way.set(self.under_way.get() + 1);
        let counted = Counted {
            under_way: self.under_way.clone(),
            ended: self.ended.clone(),
        };
        let passed = Rc::clone(&self.passed);
        let cut = Rc::clone(&self.cut);
        event_loop.drive(Box::pin(async move {
            // Dropped from the last on.
            let _counted = counted;
            let _registered = registered;
            let passes = serve(session, client, &cut).await;
            passed.borrow_mut().extend(passes);
        }));
    }

    /// Takes the connections that sessions pass to other addresses.
    pub fn take_passed(&mut self) -> Vec<PassedConnection> {
        self.passed.take()
    }

    /// The plan of that generation, if it is held and has that listen.
    pub(crate) fn plan_with(&self, generation: u64, listen: usize) -> Option<Rc<LanePlan>> {
        let plans = self.plans.iter().rev();
        let mut known = plans.filter(|plan| plan.generation == generation);
        known.find(|plan| listen < plan.listens.len()).cloned()
    }

    /// The plan that came last.
    pub(crate) fn plan_in_force(&self) -> Option<Rc<LanePlan>> {
        self.plans.last().cloned()
    }

    /// Lets go of plans whose connections have all been taken.
    pub fn turn_ended(&mut self) {
        let last = self.plans.len().saturating_sub(1);
        for old in self.plans.drain(..last) {
            self.old_plans.push(Rc::downgrade(&old));
        }
    }

    /// Does what goes by time.
    pub fn tick(&mut self, event_loop: &mut EventLoop) {
        let now_ms = event_loop.clock.now_ms();
        self.is_full = false;
        let sockets = event_loop.numbered_sockets();
        self.stepped.tick(&sockets, now_ms);
        self.every_plan(|plan| plan.tick(now_ms));
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) {
        self.every_plan(LanePlan::flush);
    }

    /// Ends the sessions that began up to that time, in monotonic milliseconds.
    pub fn cut(&mut self, until_ms: u64) {
        self.cut.set(until_ms);
        self.stepped.cut(until_ms);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.driven() + self.stepped.len()
    }

    /// How many are futures.
    pub fn driven(&self) -> usize {
        self.under_way.get()
    }

    fn every_plan(&mut self, does: impl Fn(&LanePlan)) {
        self.plans.iter().for_each(|plan| does(plan));
        self.old_plans.retain(|old| {
            let old = old.upgrade();
            old.inspect(|old| does(old)).is_some()
        });
    }
}

impl Acceptor for Sessions {
    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        gate: PlanGate,
        socket: OwnedFd,
        peer: PeerAddress,
    ) {
        let listen = gate.place;
        let Some(plan) = self.plan_with(gate.generation, listen) else {
            // Its plan is gone, and its listen with it.
            return;
        };
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
                let sockets = event_loop.numbered_sockets();
                self.stepped.begin(&sockets, (session, steps, None), "");
            }
            Err(NewClient::Connection(client)) => {
                let client = Client::new(client.into_transport());
                self.begin(event_loop, session, client, None);
            }
            Err(NewClient::Flow(_)) => {}
        }
    }

    fn refused(&mut self, gate: PlanGate, connections_max: usize) {
        if let Some(plan) = self.plan_with(gate.generation, gate.place) {
            let server = &plan.servers[plan.listens[gate.place].default_server];
            log_full(server, connections_max);
        }
    }
}

impl Receiver for Sessions {
    fn place_of(&self, address: &ListenAddress) -> Option<usize> {
        let mut listens = self.plans.last()?.listens.iter();
        listens.position(|listen| listen.address == *address)
    }

    fn receive(
        &mut self,
        event_loop: &mut EventLoop,
        listen: usize,
        transport: Transport,
        facts: PassedFacts,
    ) {
        let Some(plan) = self.plan_in_force() else {
            return;
        };
        let local = match plan.listens[listen].address {
            ListenAddress::Tcp(address) => PeerAddress::Inet(address),
            _ => PeerAddress::Unix,
        };
        let mut session = Session::new(self.lane.clone(), plan, listen, [facts.peer, local]);
        session.bytes_received.set(facts.bytes.len() as u64);
        session.preread = facts.bytes;
        session.tls = facts.tls;
        session.proxy_header = facts.proxy_header;
        session.passes = facts.passes;
        session.came_through = facts.came_through;
        self.begin(event_loop, session, Client::new(transport), None);
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.flows.close();
        self.flush();
    }
}

/// Says, in nginx's words, that a session is refused, since the lane has no place for it.
pub(crate) fn log_full(server: &Server, connections_max: usize) {
    let message = format_args!("{connections_max} worker_connections are not enough");
    server.error_log.event(Level::Alert, message);
}

/// What serves a session in steps. The error is the client, where something has to wait for its
/// first bytes, or the content cannot be served so.
pub(crate) fn steps(session: &Session, client: NewClient) -> Result<Box<dyn Steps>, NewClient> {
    let (server, listen) = (session.server(), session.listen());
    let looks_at_bytes = |phase: Phase| !server.handlers(phase).is_empty();
    let needs_bytes = listen.proxy_protocol
        || listen.ssl
        || looks_at_bytes(Phase::ServerChoice)
        || looks_at_bytes(Phase::Preread);
    match &server.content {
        Some(content) if !needs_bytes => Arc::clone(content).steps(client),
        _ => Err(client),
    }
}

/// The address that a client has connected to: that of its gate, unless the gate has several.
fn local_address(gate: &ListenAddress, socket: &OwnedFd) -> PeerAddress {
    match gate {
        ListenAddress::Tcp(address) if !address.ip().is_unspecified() && address.port() > 0 => {
            PeerAddress::Inet(*address)
        }
        ListenAddress::Unix(_) => PeerAddress::Unix,
        _ => socket::local_address(socket.as_fd()).unwrap_or(PeerAddress::Unix),
    }
}
