//! Building a plan from a checked configuration, with the directive families' help.
//!
//! The builder goes on after an error, so that `-t` can report all of them. What it builds
//! touches the outside world only through [`Environment`]: the master opens files, the serving
//! process is handed them, tests have none.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use turnpike_conf::{ConfError, ReferenceText, Row, View};
use turnpike_lane::log::Level;
pub use turnpike_plan::environment::Environment;

use super::index::LocationIndex;
use super::listen::Listen;
use super::resolved::{Location, Plan, Server};
use crate::difference::Difference;
use crate::exchange::Exchange;
use crate::phase::{Filter, FilterPlace, Handler, HandlerPlace, Logger, Phase};
use crate::sampling::SampleSource;
use crate::settings::{self, EventsSettings, LocationSettings, ServerSettings};
use crate::variables::{VariableRow, table};
use turnpike_plan::Quoted;
use turnpike_plan::control::CommandRow;
use turnpike_plan::metrics;
use turnpike_plan::phases::ByPhase;
use turnpike_plan::tls::{ServerTls, VerifyClient};
use turnpike_quic::HostKey;

pub use turnpike_plan::builder::PlanError;

/// A folder of directives: its rows, its variables, and what they add to a location.
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
    /// The verbs that it offers on the control socket; [`Builder::command`] gives what carries
    /// them out.
    pub commands: &'static [CommandRow],
    /// The metrics that it counts; [`Builder::metrics`] gives what reads them.
    pub metrics: &'static [metrics::Row],
    /// Whether servers and locations get nothing from it while none of its directives is written
    /// anywhere. It is then asked at the http level alone, and costs the blocks inside nothing.
    pub is_silent_unless_written: bool,
    /// Reads what stands at the http level, before any server is looked at.
    pub http: fn(View<'_>, &mut Builder<'_>) -> Result<(), ConfError>,
    /// Reads what other families need of a location, and leaves it in [`Builder::store`]. Called
    /// for all families before any of them adds to the location.
    pub prepare_location: ReadLocation,
    /// Adds to a location what the directives in force there ask for. Called for every location,
    /// `if` and `limit_except` block, and for every server block's own location.
    pub location: ReadLocation,
}

/// A family's look at a location.
pub type ReadLocation = fn(View<'_>, &mut Builder<'_>, &mut LocationDraft) -> Result<(), ConfError>;

impl Family {
    /// A family that has and does nothing: each names what it has besides.
    pub const NONE: Self = Self {
        name: "",
        rows: &[],
        reference: &[],
        variables: || &[],
        commands: &[],
        metrics: &[],
        is_silent_unless_written: false,
        http: |_, _| Ok(()),
        prepare_location: |_, _, _| Ok(()),
        location: |_, _, _| Ok(()),
    };
}

/// A plan in the making: what is HTTP's of it, and the part that every protocol's plan has.
pub struct Builder<'e> {
    pub(super) base: turnpike_plan::builder::Builder<'e, Exchange>,
    pub(super) families: &'e [Family],
    /// The families that have something to say inside the http level.
    pub(super) families_inside: Arc<[Family]>,
    /// The core's directives of locations that are written anywhere.
    pub(super) settings_names: Arc<[&'static str]>,
    /// The core's settings by the number of the block that they are inherited from: most locations
    /// say nothing of their own.
    settings: HashMap<usize, Arc<LocationSettings>>,
    pub(super) servers: Vec<Server>,
    pub(super) locations: Vec<Option<Location>>,
    /// The error of a TLS listener with such a server, by the server's own location.
    pub(super) no_certificates: HashMap<LocationIndex, &'static str>,
    /// The key of QUIC, where it is spoken.
    pub(super) quic_key: Option<HostKey>,
    /// How many locations so far have a variable as their name.
    pub(super) predicates: usize,
    sample_sources: Vec<Arc<dyn SampleSource>>,
}

impl<'e> Deref for Builder<'e> {
    type Target = turnpike_plan::builder::Builder<'e, Exchange>;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl DerefMut for Builder<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.base
    }
}

/// What a family adds to a location.
pub struct LocationDraft {
    /// The location's index, fixed before it is finished.
    pub index: LocationIndex,
    /// The core's settings of the location.
    pub settings: Arc<LocationSettings>,
    /// Answers alone.
    pub content: Option<Arc<dyn Handler>>,
    /// Whether a request for the location's name without the slash at its end is sent to the
    /// location: set by families whose content knows no files (`proxy_pass` and its like).
    pub auto_redirect: bool,
    /// Whether the content answers `CONNECT`; elsewhere it is refused.
    pub allows_connect: bool,
    /// TLS with the clients of a server, whose own location this is.
    pub tls: Option<ServerTls>,
    /// The error where a TLS listener needs a certificate and such a server names none.
    pub no_certificate: Option<&'static str>,
    /// Whether the clients of such a server have to show a certificate.
    pub verify_client: VerifyClient,
    handlers: Vec<(HandlerPlace, Arc<dyn Handler>)>,
    filters: Vec<(FilterPlace, Arc<dyn Filter>)>,
    loggers: Vec<Arc<dyn Logger>>,
}

impl LocationDraft {
    /// Has a handler answer alone. `is_own`: a directive of this block says so. An `if` also has
    /// the handler of the location around it, unless it has one of its own.
    pub fn set_content(&mut self, handler: Arc<dyn Handler>, is_own: bool) {
        if is_own || self.content.is_none() {
            self.content = Some(handler);
        }
    }

    /// Adds a handler at its place.
    pub fn add_handler(&mut self, place: HandlerPlace, handler: Arc<dyn Handler>) {
        self.handlers.push((place, handler));
    }

    /// Adds a filter at its place.
    pub fn add_filter(&mut self, place: FilterPlace, filter: Arc<dyn Filter>) {
        self.filters.push((place, filter));
    }

    /// Adds a logger.
    pub fn add_logger(&mut self, logger: Arc<dyn Logger>) {
        self.loggers.push(logger);
    }
}

/// The reason that a handler at a place gives.
fn of_handler(place: HandlerPlace, handler: &dyn Handler) -> Option<Difference> {
    if handler.is_same_for_all() {
        return None;
    }
    match place.phase() {
        Phase::PostRead => Some(Difference::ClientAddress),
        Phase::ServerRewrite | Phase::FindLocation | Phase::Rewrite | Phase::PostRewrite => {
            Some(Difference::Rewrite)
        }
        Phase::PreAccess => Some(Difference::Limit),
        Phase::Access => Some(Difference::Access),
        Phase::PreContent => Some(Difference::BeforeContent),
        Phase::Content => Some(Difference::Content),
        Phase::Log => None,
    }
}

/// The first reason in a location for which responses may differ.
fn difference(draft: &LocationDraft) -> Option<Difference> {
    let of_handlers = draft
        .handlers
        .iter()
        .find_map(|(place, handler)| of_handler(*place, &**handler));
    let content = draft
        .content
        .iter()
        .any(|content| !content.is_same_for_all());
    let filters = draft
        .filters
        .iter()
        .any(|(_, filter)| !filter.is_same_for_all());
    of_handlers
        .or(content.then_some(Difference::Content))
        .or((!draft.settings.root.is_constant()).then_some(Difference::Folder))
        .or(filters.then_some(Difference::Filter))
}

impl<'e> Builder<'e> {
    /// A builder with the families' variables.
    pub fn new(families: &'e [Family], environment: &'e mut dyn Environment) -> Self {
        let rows = families
            .iter()
            .flat_map(|family| (family.variables)())
            .copied();
        Self {
            base: turnpike_plan::builder::Builder::new(table(rows), environment),
            families,
            families_inside: families.into(),
            settings_names: Arc::default(),
            settings: HashMap::new(),
            servers: Vec::new(),
            locations: Vec::new(),
            no_certificates: HashMap::new(),
            quic_key: None,
            predicates: 0,
            sample_sources: Vec::new(),
        }
    }

    /// Adds a source of samples, of which lanes write lines of access logs.
    pub fn add_sample_source(&mut self, source: Arc<dyn SampleSource>) {
        self.sample_sources.push(source);
    }

    /// Builds the location of a block that a family owns (`if`), as an unnamed one.
    ///
    /// # Errors
    /// The first that a directive of the core gave; those of families are reported.
    pub fn unnamed_location(&mut self, view: View<'_>) -> Result<LocationIndex, ConfError> {
        self.location(view, b"", |location| location.unnamed = true)
    }

    /// Builds a location from its block and those inside it.
    pub(super) fn location(
        &mut self,
        view: View<'_>,
        name: &[u8],
        finish: impl FnOnce(&mut Location),
    ) -> Result<LocationIndex, ConfError> {
        let index = LocationIndex(self.locations.len() as u32);
        self.locations.push(None);
        self.warn_of_types(view);
        settings::declare_folders(view, self.base.environment);
        let settings = self.settings(view)?;
        let mut draft = LocationDraft {
            index,
            settings,
            content: None,
            auto_redirect: false,
            allows_connect: false,
            tls: None,
            no_certificate: None,
            verify_client: VerifyClient::Off,
            handlers: Vec::new(),
            filters: Vec::new(),
            loggers: Vec::new(),
        };
        let families = Arc::clone(&self.families_inside);
        for family in families.iter() {
            if let Err(error) = (family.prepare_location)(view, self, &mut draft) {
                self.report(error);
            }
        }
        for family in families.iter() {
            if let Err(error) = (family.location)(view, self, &mut draft) {
                self.report(error);
            }
        }
        draft.filters.sort_by_key(|(place, _)| *place);
        if let Some(message) = draft.no_certificate {
            self.no_certificates.insert(index, message);
        }
        let error_log = self.base.error_log(view)?;
        let mut location = Location {
            difference: difference(&draft),
            name: name.to_vec(),
            settings: draft.settings,
            error_log,
            tree: None,
            regex: false,
            unnamed: false,
            named: false,
            handlers: ByPhase::new(draft.handlers, |place: HandlerPlace| place.phase() as usize),
            filters: draft.filters,
            loggers: draft.loggers,
            content: draft.content,
            auto_redirect: draft.auto_redirect,
            allows_connect: draft.allows_connect,
            tls: draft.tls,
            verify_client: draft.verify_client,
            limit_except: None,
        };
        finish(&mut location);
        self.locations[index.0 as usize] = Some(location);
        Ok(index)
    }

    /// The core's settings in a block.
    fn settings(&mut self, view: View<'_>) -> Result<Arc<LocationSettings>, ConfError> {
        let level = view.level_of_any(&self.settings_names);
        if let Some(settings) = self.settings.get(&level.block_number()) {
            return Ok(Arc::clone(settings));
        }
        let base = &mut self.base;
        let settings = LocationSettings::read(level, base.environment, &mut base.variables)?;
        let settings = Arc::new(settings);
        self.settings
            .insert(level.block_number(), Arc::clone(&settings));
        Ok(settings)
    }

    /// Warns of extensions that have two types, as nginx does; the last one holds.
    fn warn_of_types(&mut self, view: View<'_>) {
        let mut kinds: HashMap<Vec<u8>, &str> = HashMap::new();
        let blocks = view.own_all("types").filter_map(|block| view.child(block));
        for directive in blocks.flat_map(|inside| inside.data()) {
            let kind = directive.name.text.as_str();
            for word in directive.arguments.iter() {
                let extension = word.bytes().to_ascii_lowercase();
                let Some(old) = kinds.insert(extension.clone(), kind) else {
                    continue;
                };
                let extension = Quoted(&extension);
                let message = format!(
                    "duplicate extension \"{extension}\", content type: \"{kind}\", previous \
                     content type: \"{old}\""
                );
                let warning = view.error(directive.span, message);
                self.base.environment.warn(warning);
            }
        }
    }

    pub(super) fn server_settings(view: View<'_>) -> ServerSettings {
        ServerSettings::read(view)
    }

    pub(super) fn into_plan(
        self,
        generation: u64,
        events: EventsSettings,
        listens: Vec<Listen>,
    ) -> Result<Plan, Vec<ConfError>> {
        let shared = self.base.finish()?;
        let mut logs = self.locations.iter().flatten().map(|it| &it.error_log);
        Ok(Plan {
            generation,
            is_debugged: !events.debugged.is_empty() || logs.any(|log| log.enabled(Level::Debug)),
            events,
            shared,
            listens,
            servers: self.servers,
            locations: finished(self.locations),
            sample_sources: self.sample_sources,
            quic_key: self.quic_key,
            kept: Vec::new(),
        })
    }
}

/// An unfinished location takes no more room than a finished one, so that the list of many
/// thousands need not be copied.
const _: () = assert!(size_of::<Option<Location>>() == size_of::<Location>());

/// The locations, all of which are finished, in the memory that they are in.
#[expect(clippy::filter_map_identity, reason = "flatten() would copy them")]
fn finished(locations: Vec<Option<Location>>) -> Vec<Location> {
    let mut locations: Vec<Location> = locations.into_iter().filter_map(|it| it).collect();
    locations.shrink_to_fit();
    locations
}
