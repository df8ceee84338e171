//! The plan itself: flat tables that lanes only read.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use turnpike_lane::log::ErrorLog;
use turnpike_plan::builder::{Offers, Shared};
use turnpike_plan::lane::{HasLaneStates, LaneStateMaker};
use turnpike_plan::metrics;
use turnpike_plan::phases::ByPhase;
use turnpike_plan::protocol::{PlanListen, ProtocolPlan};
use turnpike_plan::regex::Undecided;
use turnpike_plan::tls::{ServerTls, VerifyClient};
use turnpike_plan::variables::{Subject, VariableTable};

use super::index::{ListenIndex, LocationIndex, ServerIndex};
use super::listen::Listen;
use super::locations::{Found, LocationTree};
use crate::difference::Difference;
use crate::exchange::Exchange;
use crate::phase::{Filter, FilterPlace, Handler, Logger, PHASE_COUNT, Phase};
use crate::sampling::SampleSource;
use crate::settings::location::LocationSettings;
use crate::settings::server::{EventsSettings, ServerSettings};
use turnpike_quic::HostKey;

/// A configuration, resolved.
pub struct Plan {
    /// Counts the configurations since the start; a reload adds one.
    pub generation: u64,
    /// `events { }`.
    pub events: EventsSettings,
    /// Whether any message of the level `debug` may be written: by an `error_log` of that level, or
    /// about a client that `debug_connection` names.
    pub(crate) is_debugged: bool,
    pub(super) shared: Shared<Exchange>,
    /// Listening addresses.
    pub listens: Vec<Listen>,
    pub(super) servers: Vec<Server>,
    pub(super) locations: Vec<Location>,
    pub(super) sample_sources: Vec<Arc<dyn SampleSource>>,
    /// The key of QUIC, where it is spoken.
    pub(crate) quic_key: Option<HostKey>,
    /// See [`ProtocolPlan::keep`].
    pub(super) kept: Vec<Arc<dyn Any + Send + Sync>>,
}

/// A server block.
pub struct Server {
    /// The first name, for `$server_name` and redirects; empty when none was given.
    pub name: Arc<[u8]>,
    /// Settings that hold before a location is known.
    pub settings: ServerSettings,
    /// The block's own location: settings and handlers for what no location covers.
    pub root: LocationIndex,
    pub tree: LocationTree,
    /// Locations called `@name`.
    pub named: HashMap<String, LocationIndex>,
}

/// A location: its settings and what handles a request in it.
pub struct Location {
    /// As written, for the log.
    pub name: Vec<u8>,
    /// The directives of the core.
    pub settings: Arc<LocationSettings>,
    /// Where its errors are written.
    pub error_log: ErrorLog,
    /// Locations inside it; most have none.
    pub tree: Option<Box<LocationTree>>,
    /// Whether it stands for a regular expression (matters to `alias`).
    pub regex: bool,
    /// Whether it is an `if` or `limit_except` block, or a server's own.
    pub unnamed: bool,
    /// Whether it is called `@name`: reached only from inside, and keeps the path it is given.
    pub named: bool,
    pub(super) handlers: ByPhase<Arc<dyn Handler>, PHASE_COUNT>,
    pub(super) filters: Vec<(FilterPlace, Arc<dyn Filter>)>,
    pub(super) loggers: Vec<Arc<dyn Logger>>,
    /// Why responses may differ for requests with the same host, path and query.
    pub(crate) difference: Option<Difference>,
    /// Answers alone, where set; otherwise the handlers of the content phase are asked in turn.
    pub content: Option<Arc<dyn Handler>>,
    /// Whether a request for its name without the slash at the end is sent here.
    pub auto_redirect: bool,
    /// Whether its content answers `CONNECT`.
    pub allows_connect: bool,
    /// TLS with the clients of a server, at the server's own location; `None`: it has no
    /// certificate.
    pub tls: Option<ServerTls>,
    /// Whether clients of a server have to show a certificate, at the server's own location.
    pub verify_client: VerifyClient,
    /// `limit_except`, where there is one.
    pub limit_except: Option<LimitExcept>,
}

/// `limit_except`: some methods go on here, the others in a location of their own.
pub struct LimitExcept {
    /// Methods that are not limited.
    pub methods: Vec<Vec<u8>>,
    /// Where the others go on.
    pub location: LocationIndex,
}

impl Plan {
    /// The gate of the same address as one of this plan, in another.
    pub(crate) fn same_listen(&self, index: ListenIndex, other: &Plan) -> Option<ListenIndex> {
        let address = &self.listen(index).address;
        let position = other
            .listens
            .iter()
            .position(|listen| listen.address == *address)?;
        Some(ListenIndex(position as u32))
    }

    /// The server block of that index.
    pub fn server(&self, index: ServerIndex) -> &Server {
        &self.servers[index.0 as usize]
    }

    /// The location of that index.
    pub fn location(&self, index: LocationIndex) -> &Location {
        &self.locations[index.0 as usize]
    }

    /// Whether there are a server block and a location of these indexes.
    pub(crate) fn has(&self, server: ServerIndex, location: LocationIndex) -> bool {
        (server.0 as usize) < self.servers.len() && (location.0 as usize) < self.locations.len()
    }

    /// The sources of samples, of which lanes write lines of access logs.
    pub(crate) fn sample_sources(&self) -> &[Arc<dyn SampleSource>] {
        &self.sample_sources
    }

    /// The listening address of that index.
    pub fn listen(&self, index: ListenIndex) -> &Listen {
        &self.listens[index.0 as usize]
    }

    /// The machine's name when the plan was built.
    pub fn host_name(&self) -> &str {
        &self.shared.host_name
    }

    /// Every variable that the configuration names.
    pub fn variables(&self) -> &VariableTable<Exchange> {
        &self.shared.variables
    }

    /// Adds what reads metrics of another protocol's plan.
    pub fn add_metric_readers(&mut self, readers: &[Arc<dyn metrics::Reader>]) {
        self.shared.offers.readers.extend_from_slice(readers);
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

impl Plan {
    /// Finds the location for a path within `tree`, nested ones included.
    ///
    /// An exact match wins; else the longest prefix is remembered; else, unless that prefix is
    /// final (`^~`), the first regular expression that matches wins over it.
    ///
    /// # Errors
    /// When a regular expression reached its limits.
    pub fn find_location<S: Subject>(
        &self,
        tree: &LocationTree,
        subject: &S,
        path: &[u8],
    ) -> Result<Found, Undecided> {
        if tree.is_empty() {
            return Ok(Found::Nothing);
        }
        if let Some(&location) = tree.exact.get(path) {
            return Ok(Found::Decided(location));
        }
        if let Some(&location) = tree.redirects.get(path) {
            return Ok(Found::Redirect(location));
        }
        let mut found = Found::Nothing;
        let mut goes_on = tree.goes_on;
        if let Some(prefix) = tree.prefixes.longest(path) {
            goes_on &= !prefix.final_prefix;
            found = match self.find_inside(prefix.location, subject, path)? {
                Found::Nothing => Found::Prefix(prefix.location),
                Found::Prefix(inner) => Found::Prefix(inner),
                decided => return Ok(decided),
            };
        }
        if !goes_on {
            return Ok(found);
        }
        let Some(location) = tree.beyond_prefixes(subject, path)? else {
            return Ok(found);
        };
        Ok(match self.find_inside(location, subject, path)? {
            Found::Nothing => Found::Decided(location),
            Found::Prefix(inner) | Found::Decided(inner) => Found::Decided(inner),
            redirect => redirect,
        })
    }

    /// Finds the location for a path among those inside another.
    fn find_inside<S: Subject>(
        &self,
        location: LocationIndex,
        subject: &S,
        path: &[u8],
    ) -> Result<Found, Undecided> {
        match &self.location(location).tree {
            Some(tree) => self.find_location(tree, subject, path),
            None => Ok(Found::Nothing),
        }
    }
}

impl HasLaneStates for Plan {
    fn lane_states(&self) -> &[LaneStateMaker] {
        &self.shared.lane_states
    }
}

impl Location {
    /// Handlers of a phase, in order.
    pub fn handlers(&self, phase: Phase) -> &[Arc<dyn Handler>] {
        self.handlers.of(phase as usize)
    }

    /// Whether a phase has no handlers here and decides nothing by itself: most are such.
    pub(crate) fn is_passed(&self, phase: Phase) -> bool {
        self.handlers.is_empty(phase as usize)
            && !matches!(phase, Phase::PreContent | Phase::Content)
    }

    /// Filters in the order in which they see a response.
    pub fn filters(&self) -> &[(FilterPlace, Arc<dyn Filter>)] {
        &self.filters
    }

    /// The loggers of exchanges that ended here.
    pub fn loggers(&self) -> &[Arc<dyn Logger>] {
        &self.loggers
    }
}
