//! The sessions of a lane.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use tokio::sync::Notify;
use turnpike_lane::event_loop::{EventLoop, Owner};
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket::{self, PeerAddress};
use turnpike_lane::transport::Transport;
use turnpike_plan::passed::{PassedConnection, PassedFacts, Receiver};

use crate::client::Client;
use crate::cut::Cut;
use crate::flow_table::{FlowTable, Registered};
use crate::lane::{LanePlan, LaneShared};
use crate::phase::{NewClient, Phase, Steps};
use crate::plan::Server;
use crate::serve::serve;
use crate::session::Session;
use crate::stepped::SteppedSessions;

/// The sessions of one lane. Each goes on under the plan it began with: in steps where it only
/// passes bytes on, else as a future on the lane's runtime.
pub struct Sessions {
    pub(crate) lane: Rc<LaneShared>,
    /// The number of this protocol.
    pub(crate) owner: Owner,
    pub(crate) flows: Rc<FlowTable>,
    /// A flow was turned away since the last tick, and that was said.
    pub(crate) is_full: bool,
    /// The plan in force.
    pub(crate) plan: Rc<LanePlan>,
    /// Plans before it that sessions may still hold: what they buffer goes by time too.
    pub(crate) old_plans: Vec<Weak<LanePlan>>,
    pub(crate) stepped: SteppedSessions,
    /// Futures.
    pub(crate) under_way: Rc<Cell<usize>>,
    /// Notified when a future ends.
    pub(crate) ended: Rc<Notify>,
    /// Connections that sessions pass to other addresses, until they are taken.
    pub(crate) passed: Rc<RefCell<Vec<PassedConnection>>>,
    pub(crate) cut: Rc<Cut>,
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

    /// Does it with the present plan and those before it that are still held.
    pub(crate) fn every_plan(&mut self, does: impl Fn(&LanePlan)) {
        does(&self.plan);
        self.old_plans.retain(|old| {
            let old = old.upgrade();
            old.inspect(|old| does(old)).is_some()
        });
    }
}

impl Receiver for Sessions {
    fn place_of(&self, address: &ListenAddress) -> Option<usize> {
        let mut listens = self.plan.listens.iter();
        listens.position(|listen| listen.address == *address)
    }

    fn receive(
        &mut self,
        event_loop: &mut EventLoop,
        listen: usize,
        transport: Transport,
        facts: PassedFacts,
    ) {
        let plan = Rc::clone(&self.plan);
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
        self.every_plan(LanePlan::flush);
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
pub(crate) fn local_address(gate: &ListenAddress, socket: &OwnedFd) -> PeerAddress {
    match gate {
        ListenAddress::Tcp(address) if !address.ip().is_unspecified() && address.port() > 0 => {
            PeerAddress::Inet(*address)
        }
        ListenAddress::Unix(_) => PeerAddress::Unix,
        _ => socket::local_address(socket.as_fd()).unwrap_or(PeerAddress::Unix),
    }
}
