//! What a `stream` block means: typed, resolved once, never changed, shared by all lanes.

mod assemble;

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_lane::gate::{AcceptMode, ListenAddress, ListenOptions};
use turnpike_lane::log::ErrorLog;
use turnpike_lane::sys::socket::Kind;
use turnpike_plan::builder::{Offers, Shared};
use turnpike_plan::lane::{HasLaneStates, LaneStateMaker};
use turnpike_plan::phases::ByPhase;
use turnpike_plan::protocol::{PlanListen, ProtocolPlan};
use turnpike_plan::server_names::NameTable;
use turnpike_plan::tls::{ServerTls, VerifyClient};

use crate::own_connections::Destination;
use crate::phase::{Content, Handler, HandlerPlace, Logger, PHASE_COUNT, Phase};
use crate::session::Session;
use crate::variables::{VariableRow, VariableTable};

pub use turnpike_plan::builder::PlanError;

/// A plan in the making.
pub type Builder<'e> = turnpike_plan::builder::Builder<'e, Session>;

/// A folder of directives: its rows, its variables, and what they add to a server.
#[derive(Clone, Copy)]
pub struct Family {
    /// The name, as the reference groups by it.
    pub name: &'static str,
    /// The directives.
    pub rows: &'static [Row],
    /// What people wrote about the directives, for the reference.
    pub reference: &'static [ReferenceText],
    /// The variables.
    pub variables: fn() -> &'static [VariableRow],
    /// Reads what stands at the stream level, before any server is looked at. Its error is the
    /// first, placed; those after it are reported to the builder.
    pub stream: fn(View<'_>, &mut Builder<'_>) -> Result<(), ConfError>,
    /// Adds to a server what the directives in force there ask for.
    pub server: fn(View<'_>, &mut Builder<'_>, &mut ServerDraft) -> Result<(), ConfError>,
}

impl Family {
    /// A family that has and does nothing: each names what it has besides.
    pub const NONE: Self = Self {
        name: "",
        rows: &[],
        reference: &[],
        variables: || &[],
        stream: |_, _| Ok(()),
        server: |_, _, _| Ok(()),
    };
}

/// What a family adds to a server.
#[derive(Default)]
pub struct ServerDraft {
    /// What the server says of TLS, whether its listens use it or not.
    pub tls: Option<Tls>,
    /// The error where a TLS listener needs a certificate and the server names none.
    pub no_certificate: Option<&'static str>,
    content: Option<Arc<dyn Content>>,
    handlers: Vec<(HandlerPlace, Arc<dyn Handler>)>,
    loggers: Vec<Arc<dyn Logger>>,
}

/// A configuration, resolved.
pub struct Plan {
    /// Counts the configurations since the start; a reload adds one.
    pub generation: u64,
    /// Listening addresses.
    pub listens: Vec<Listen>,
    pub servers: Vec<Server>,
    /// Every address that connections are accepted at, whatever its protocol, in the order of their
    /// gates: where `pass` may pass them.
    pub destinations: Vec<ListenAddress>,
    /// The places of listens of TCP and UDP, by port.
    by_port: HashMap<u16, Vec<usize>>,
    shared: Shared<Session>,
    /// See [`ProtocolPlan::keep`].
    kept: Vec<Arc<dyn Any + Send + Sync>>,
}

/// A listening address with the servers behind it.
pub struct Listen {
    pub address: ListenAddress,
    /// Socket options.
    pub options: ListenOptions,
    /// How lanes share it.
    pub mode: AcceptMode,
    /// The place in the plan of the server that serves what no name claims.
    pub default_server: usize,
    /// Names of the servers on this address, which TLS clients ask for.
    pub names: NameTable<usize>,
    /// Connections begin with a PROXY protocol header.
    pub proxy_protocol: bool,
    /// Connections use TLS (`ssl`).
    pub ssl: bool,
}

/// TLS with the clients of a server.
pub struct Tls {
    pub tls: ServerTls,
    pub verify_client: VerifyClient,
    /// How long a handshake may take, in milliseconds; 0 is without limit.
    pub handshake_timeout_ms: u64,
}

/// What says of all addresses how lanes share them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accept {
    /// `accept_mutex`.
    pub mutex: bool,
    /// Tengine's `reuse_port`.
    pub reuse_port: bool,
}

/// A server block.
pub struct Server {
    /// The first name; empty: it has none.
    pub name: Vec<u8>,
    pub settings: ServerSettings,
    /// Where its errors are written.
    pub error_log: ErrorLog,
    /// What it says of TLS.
    pub tls: Option<Tls>,
    /// What is done with its connections; `None`: they are closed.
    pub content: Option<Arc<dyn Content>>,
    /// Write down its sessions.
    pub loggers: Vec<Arc<dyn Logger>>,
    handlers: ByPhase<Arc<dyn Handler>, PHASE_COUNT>,
}

/// The directives of the core.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    pub preread_bytes: usize,
    /// 0 is without limit, here and below.
    pub preread_timeout_ms: u64,
    pub proxy_protocol_timeout_ms: u64,
    pub no_delay: bool,
}

impl ServerDraft {
    /// Sets what is done with the server's connections.
    ///
    /// # Errors
    /// When another directive has done so.
    pub fn set_content(&mut self, content: Arc<dyn Content>) -> Result<(), &'static str> {
        match self.content.replace(content) {
            None => Ok(()),
            Some(_) => Err("is duplicate"),
        }
    }

    /// Adds a handler at its place.
    pub fn add_handler(&mut self, place: HandlerPlace, handler: Arc<dyn Handler>) {
        self.handlers.push((place, handler));
    }

    /// Adds a logger.
    pub fn add_logger(&mut self, logger: Arc<dyn Logger>) {
        self.loggers.push(logger);
    }
}

impl Server {
    /// Handlers of a phase, in order.
    pub fn handlers(&self, phase: Phase) -> &[Arc<dyn Handler>] {
        self.handlers.of(phase as usize)
    }
}

impl Plan {
    /// Whether what is sent to that address may come by a listen of this plan. It may be another
    /// machine's where a listen is for all addresses of this one.
    pub(crate) fn is_own(&self, kind: Kind, destination: Destination<'_>) -> bool {
        let address = match destination {
            Destination::Inet(address) => address,
            Destination::Unix(path) => {
                let is_it = |listen: &Listen| match &listen.address {
                    ListenAddress::Unix(own) => **own == *path,
                    _ => false,
                };
                return self.listens.iter().any(is_it);
            }
        };
        let ip = address.ip().to_canonical();
        let is_it = |place: &usize| {
            let own = &self.listens[*place].address;
            let (ListenAddress::Tcp(listen) | ListenAddress::Udp(listen)) = own else {
                return false;
            };
            let listen = listen.ip().to_canonical();
            own.kind() == kind && (listen == ip || listen.is_unspecified() || ip.is_unspecified())
        };
        let places = self.by_port.get(&address.port());
        places.is_some_and(|places| places.iter().any(is_it))
    }

    /// Every variable that the configuration names.
    pub fn variables(&self) -> &VariableTable {
        &self.shared.variables
    }

    /// The machine's name when the plan was built.
    pub fn host_name(&self) -> &str {
        &self.shared.host_name
    }
}

impl ProtocolPlan for Plan {
    fn offers(&self) -> &Offers {
        &self.shared.offers
    }

    fn listens(&self) -> impl ExactSizeIterator<Item = PlanListen<'_>> {
        self.listens.iter().map(|listen| PlanListen {
            address: &listen.address,
            options: &listen.options,
            mode: listen.mode,
        })
    }

    fn server_count(&self) -> usize {
        self.servers.len()
    }

    fn keep(&mut self, kept: Arc<dyn Any + Send + Sync>) {
        self.kept.push(kept);
    }
}

impl HasLaneStates for Plan {
    fn lane_states(&self) -> &[LaneStateMaker] {
        &self.shared.lane_states
    }
}
