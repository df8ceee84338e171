//! A session: one client's connection from its accept to its log line.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_plan::proxy_header::ProxyHeader;
use turnpike_plan::regex::{Allowance, Captures, Groups, Regex, Undecided};
use turnpike_plan::rooms::Rooms;
use turnpike_plan::tls::{HasTlsSession, TlsSession, host_of};
use turnpike_plan::variables::{self, Subject, Values, VariableId, VariableTable};

use crate::lane::{LanePlan, LaneShared};
use crate::own_connections::OwnConnection;
use crate::phase::Status;
use crate::plan::{Listen, Server};
use crate::upstream::Try;

/// A session. The future that serves it owns it.
pub struct Session {
    pub lane: Rc<LaneShared>,
    /// The plan that it began with, and ends with.
    pub plan: Rc<LanePlan>,
    /// The place of its listen in the plan.
    pub listen: usize,
    /// The place of its server in the plan.
    server: usize,
    /// The connection's number.
    pub serial: u64,
    /// The client, as far as it is known: a trusted proxy may say that it is another.
    pub peer: PeerAddress,
    /// The peer of the connection, where that is another.
    pub connection_peer: Option<PeerAddress>,
    /// The address that the client connected to.
    pub local: PeerAddress,
    /// What the PROXY protocol header said, where there was one.
    pub proxy_header: Option<ProxyHeader>,
    /// What its TLS session has agreed on; `None`: it came without TLS.
    pub tls: Option<Box<TlsSession>>,
    /// What was read before the content, and is not passed on yet.
    pub preread: Vec<u8>,
    /// When the connection was accepted, in the lane's monotonic milliseconds.
    pub started_ms: u64,
    /// The address whose server serves the connection from now on; `None`: this session does.
    pub pass_to: Option<ListenAddress>,
    /// How often the connection was passed on before.
    pub passes: u8,
    /// The addresses of ours that it has come through, where other sessions have passed it on.
    pub(crate) came_through: Vec<ListenAddress>,
    /// What it has opened to an address of ours.
    pub(crate) own_connection: Option<OwnConnection>,
    /// How it ended.
    pub status: Option<Status>,
    pub bytes_received: Cell<u64>,
    pub bytes_sent: Cell<u64>,
    /// The servers that were tried, in their order.
    pub tries: Vec<Try>,
    /// What is being done, as the log says it behind `while`.
    pub action: Cell<&'static str>,
    /// What families keep with it.
    pub rooms: Rooms,
    values: RefCell<Values>,
    matching: RefCell<Matching>,
}

/// What a session has to do with regular expressions. It does not wait for heavy ones: what is
/// beyond its allowance has no verdict, and the session ends.
struct Matching {
    allowance: Allowance,
    captures: Captures,
    failures: u32,
}

impl Session {
    /// A session of a connection that was accepted.
    pub(crate) fn new(
        lane: Rc<LaneShared>,
        plan: Rc<LanePlan>,
        listen: usize,
        [peer, local]: [PeerAddress; 2],
    ) -> Self {
        Self {
            serial: lane.next_serial(),
            started_ms: lane.clock.now_ms(),
            lane,
            server: plan.listens[listen].default_server,
            plan,
            listen,
            peer,
            connection_peer: None,
            local,
            proxy_header: None,
            tls: None,
            preread: Vec::new(),
            pass_to: None,
            passes: 0,
            came_through: Vec::new(),
            own_connection: None,
            status: None,
            bytes_received: Cell::new(0),
            bytes_sent: Cell::new(0),
            tries: Vec::new(),
            action: Cell::new(""),
            rooms: Rooms::default(),
            values: RefCell::default(),
            matching: RefCell::new(Matching {
                allowance: Allowance::LANE,
                captures: Captures::default(),
                failures: 0,
            }),
        }
    }

    /// The server that it belongs to.
    pub fn server(&self) -> &Server {
        &self.plan.servers[self.server]
    }

    /// Chooses the server that has this name, which the client asks for, among those of the
    /// address. Where none has it, the session stays with the server that it has.
    pub fn choose_server(&mut self, name: &[u8]) {
        let plan = self.plan.clone();
        let names = &plan.listens[self.listen].names;
        let Some(name) = host_of(name).filter(|_| !names.is_empty()) else {
            return;
        };
        let name = name.to_ascii_lowercase();
        // Without a verdict the session ends.
        if let Ok(Some(server)) = names.find(&name, self) {
            self.server = server;
        }
    }

    /// The address that it came by.
    pub fn listen(&self) -> &Listen {
        &self.plan.listens[self.listen]
    }

    /// Takes another client's address; the connection's own stays known.
    pub fn replace_peer(&mut self, peer: PeerAddress) {
        let before = std::mem::replace(&mut self.peer, peer);
        self.connection_peer.get_or_insert(before);
    }

    /// Begins to try a server.
    pub fn begin_try(&mut self, address: Arc<str>) {
        let now_ms = self.lane.clock.now_ms();
        self.tries.push(Try::new(address, now_ms));
    }

    /// The last server is connected to.
    pub fn connected(&mut self) {
        let now_ms = self.lane.clock.now_ms();
        if let Some(one) = self.tries.last_mut() {
            one.connect_ms = Some(now_ms.saturating_sub(one.started_ms));
        }
    }

    /// Ends the try of the last server.
    pub fn end_try(&mut self) {
        let now_ms = self.lane.clock.now_ms();
        if let Some(one) = self.tries.last_mut() {
            one.session_ms = Some(now_ms.saturating_sub(one.started_ms));
        }
    }

    /// Appends a variable's value to `out`; `false` when there is none.
    pub fn variable(&self, id: VariableId, out: &mut Vec<u8>) -> bool {
        variables::append(self, id, out)
    }

    /// Stores a value, as `set` does: the variable may take it itself.
    pub fn set_variable(&mut self, id: VariableId, value: &[u8]) {
        match self.plan.variables().assignment(id) {
            Some(assignment) => assignment.make(self, value),
            None => self.values.get_mut().store(id, Some(value)),
        }
    }

    /// Writes a line to the error log of the server.
    pub fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        crate::log::write(self, level, message);
    }
}

impl HasTlsSession for Session {
    fn tls_session(&self) -> Option<&TlsSession> {
        self.tls.as_deref()
    }
}

impl Subject for Session {
    fn variables(&self) -> &VariableTable<Self> {
        self.plan.variables()
    }

    fn values(&self) -> &RefCell<Values> {
        &self.values
    }

    fn group(&self, number: usize, take: &mut dyn FnMut(&[u8])) {
        let matching = self.matching.borrow();
        if let Some(group) = matching.captures.group(number) {
            take(group);
        }
    }

    fn capture(&self, regex: &Regex, text: &[u8]) -> Result<bool, Undecided> {
        let mut matching = self.matching.borrow_mut();
        let Matching {
            allowance,
            captures,
            failures,
        } = &mut *matching;
        let mut groups = Groups::new();
        match regex.program().on_lane(text, allowance, &mut groups) {
            Ok(false) => Ok(false),
            Ok(true) => {
                match regex.group_count() {
                    0 => captures.clear(),
                    _ => captures.set(text, &groups),
                }
                Ok(true)
            }
            Err(failure) => {
                *failures += 1;
                drop(matching);
                let line = regex.failed(failure.message(), failure.0, text);
                self.log(Level::Alert, format_args!("{line}"));
                Err(Undecided)
            }
        }
    }

    fn match_failures(&self) -> u32 {
        self.matching.borrow().failures
    }

    fn is_undecided(&self) -> bool {
        self.match_failures() > 0
    }

    fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        Session::log(self, level, message);
    }
}
