//! Where a request is on its way through the phases, what it asks for there, and what has happened
//! to it.
//!
//! The engine alone moves it. Others learn from it, and say what they did to the path.

use turnpike_wire::message::Method;

use crate::changed_fields::ChangedFields;
use crate::difference::Difference;
use crate::phase::order::Phase;
use crate::plan::index::{LocationIndex, ServerIndex};

/// Internal redirects that one request may take; nginx's number. More is a loop in the
/// configuration, answered with 500.
const INTERNAL_REDIRECTS_MAX: u8 = 10;

/// On whose behalf an exchange runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A client's own request.
    #[default]
    Request,
    /// A subrequest, whose response is used by the request that made it, or discarded.
    Subrequest,
    /// A request that another one made, whose answer is a part of that one's response.
    Part,
    /// The content of a request is made once more, to renew what is stored of it.
    Renewal,
}

/// The way of a request through the phases.
pub struct Walk {
    phase: Phase,
    /// Next handler of the phase.
    handler: usize,
    /// On whose behalf the exchange runs.
    purpose: Purpose,
    /// See [`Walk::only_decides`].
    only_decides: bool,
    /// What is asked for now.
    target: Target,
    /// The fields that it asks with.
    changed_fields: ChangedFields,
    /// Redirects that may still be taken, and one that ends in an error; at 0 that has happened.
    redirects_left: u8,
    /// Whether the present location was reached by an internal redirect.
    internal: bool,
    /// See [`Walk::error_status`].
    error_status: u16,
    /// Whether an `error_page` was followed, so that its own errors lead to no other.
    error_page_taken: bool,
    /// Status of a refusal that `satisfy any` holds back until all have been asked.
    access_status: u16,
    /// See [`Walk::difference`].
    difference: Option<Difference>,
}

/// The current target, and how the request came to it.
#[derive(Clone)]
struct Target {
    server: ServerIndex,
    location: LocationIndex,
    path: Vec<u8>,
    query: Vec<u8>,
    /// See [`Walk::has_query`].
    has_query: bool,
    /// The method in place of the client's.
    method: Option<Method>,
    /// Whether a rewrite changed the path since the location was found.
    path_changed: bool,
    /// See [`Walk::is_path_below_alias`].
    path_below_alias: bool,
    /// See [`Walk::target_holds`].
    is_as_written: bool,
    /// See [`Walk::location_holds`].
    location_holds: bool,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            server: ServerIndex(0),
            location: LocationIndex(0),
            path: Vec::new(),
            query: Vec::new(),
            has_query: false,
            method: None,
            path_changed: false,
            path_below_alias: false,
            is_as_written: true,
            location_holds: true,
        }
    }
}

impl Target {
    /// Forgets what was asked for; the room is kept, and so is the server's default location, which
    /// stands until a request has named another one.
    fn clear(&mut self) {
        let mut path = std::mem::take(&mut self.path);
        let mut query = std::mem::take(&mut self.query);
        path.clear();
        query.clear();
        *self = Self {
            server: self.server,
            location: self.location,
            path,
            query,
            ..Self::default()
        };
    }
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            phase: Phase::PostRead,
            handler: 0,
            purpose: Purpose::Request,
            only_decides: false,
            target: Target::default(),
            changed_fields: ChangedFields::default(),
            redirects_left: INTERNAL_REDIRECTS_MAX + 1,
            internal: false,
            error_status: 0,
            error_page_taken: false,
            access_status: 0,
            difference: None,
        }
    }
}

/// Queries.
impl Walk {
    /// The server block in force.
    pub fn server(&self) -> ServerIndex {
        self.target.server
    }

    /// The location in force.
    pub fn location(&self) -> LocationIndex {
        self.target.location
    }

    /// The normalised path (`$uri`); redirects change it.
    pub fn path(&self) -> &[u8] {
        &self.target.path
    }

    /// The query without its question mark (`$args`).
    pub fn query(&self) -> &[u8] {
        &self.target.query
    }

    /// Whether there is a query, be it empty: the client's is not, one that the configuration sets
    /// may be.
    pub fn has_query(&self) -> bool {
        self.target.has_query
    }

    /// The method that is asked with where it is another than the client's.
    pub(crate) fn method(&self) -> Option<Method> {
        self.target.method
    }

    /// The fields that it asks with.
    pub(crate) fn changed_fields(&self) -> &ChangedFields {
        &self.changed_fields
    }

    /// On whose behalf the exchange runs.
    pub(crate) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Whether the response only decides about another request: its content is sent to no client.
    pub fn only_decides(&self) -> bool {
        self.only_decides
    }

    /// Why the response may be another for a request with the same host, path and query, in the
    /// locations where this request has been.
    pub fn difference(&self) -> Option<Difference> {
        self.difference
    }

    /// Whether the target that the client wrote still says what is asked for: a proxy may pass it
    /// on as it came. Not so after a rewrite, an internal redirect, or a change of the query.
    pub fn target_holds(&self) -> bool {
        self.target.is_as_written
    }

    /// Whether the path is the one that the location was found for: not so after a rewrite that
    /// stays in its location, when no part of the path stands for the location any more.
    pub fn location_holds(&self) -> bool {
        self.target.location_holds
    }

    /// Whether path or location are not those that the client's target led to.
    pub fn is_internal(&self) -> bool {
        self.internal
    }

    /// Whether the path was made to be looked up below the folder that an alias of a regular
    /// expression names, as `try_files` does; such an alias is the whole file name otherwise.
    pub(crate) fn is_path_below_alias(&self) -> bool {
        self.target.path_below_alias
    }

    /// Status that the answer takes whatever its handler says: of the error that led here; or 0.
    pub(crate) fn error_status(&self) -> u16 {
        self.error_status
    }
}

/// Changes by handlers.
impl Walk {
    /// Notes why the response may differ, unless there is a reason already: by a handler that is
    /// the same for all in some cases only.
    pub fn note_difference(&mut self, difference: Option<Difference>) {
        self.difference = self.difference.or(difference);
    }

    /// Puts another location in force, and nothing else: see
    /// [`Exchange::switch_location`](crate::exchange::Exchange::switch_location).
    pub fn set_location(&mut self, location: LocationIndex) {
        self.target.location = location;
    }

    /// The path, to be changed.
    pub fn path_mut(&mut self) -> &mut Vec<u8> {
        &mut self.target.path
    }

    /// Sets the query, which may be empty.
    pub fn set_query(&mut self, query: &[u8]) {
        self.target.query.clear();
        self.target.query.extend_from_slice(query);
        self.target.has_query = true;
    }

    /// Empties the query. If there is none, none is there afterwards.
    pub fn clear_query(&mut self) {
        self.target.query.clear();
    }

    /// The query that was taken from a target counts as one, though it is empty.
    pub fn keep_empty_query(&mut self) {
        self.target.has_query = true;
    }

    /// Takes the query that is a part of a target; an empty one is none.
    pub(crate) fn read_query(&mut self, query: &[u8]) {
        self.set_query(query);
        self.target.has_query = !query.is_empty();
    }

    /// Goes to another path and query, as `error_page`, `index` and `try_files` do. The caller
    /// returns [`crate::phase::Verdict::Redirect`].
    pub fn redirect_to(&mut self, path: &[u8], query: &[u8]) {
        self.target.path.clear();
        self.target.path.extend_from_slice(path);
        self.read_query(query);
    }

    /// From now on it is asked for with this method, whatever the client's is.
    pub fn ask_with(&mut self, method: Method) {
        self.target.method = Some(method);
    }

    /// The fields that it asks with, to be changed.
    pub(crate) fn changed_fields_mut(&mut self) -> &mut ChangedFields {
        &mut self.changed_fields
    }

    /// The server block in force is this one.
    pub(crate) fn set_server(&mut self, server: ServerIndex) {
        self.target.server = server;
    }

    pub(crate) fn set_error_status(&mut self, status: u16) {
        self.error_status = status;
    }

    /// Whether `error_page` is looked at: not for the errors of such a page, unless it is
    /// recursive, nor where redirects have gone in a circle.
    pub(crate) fn error_pages_apply(&self) -> bool {
        !self.error_page_taken && self.redirects_left != 0
    }

    /// `error_page` is looked at, for the last time unless it is recursive.
    pub(crate) fn look_at_error_pages(&mut self, recursive: bool) {
        self.error_page_taken = !recursive;
    }

    /// Path or query are no longer those that the client wrote.
    pub fn target_changed(&mut self) {
        self.target.is_as_written = false;
    }

    /// The path is to be looked up below an alias's folder: see [`Walk::is_path_below_alias`].
    pub fn path_goes_below_alias(&mut self) {
        self.target.path_below_alias = true;
    }

    /// A rewrite directive has changed the path. The location is looked for again at the end of
    /// the phase, unless [`Walk::stay_in_location`] says otherwise.
    pub fn path_rewritten(&mut self) {
        self.internal = true;
        self.target.is_as_written = false;
        self.target.path_changed = true;
    }

    /// The location stays as it is, even where the path was rewritten.
    pub fn stay_in_location(&mut self) {
        if std::mem::take(&mut self.target.path_changed) {
            self.target.location_holds = false;
        }
    }
}

/// How it begins.
impl Walk {
    /// Makes ready for the next request; the room is kept.
    pub(crate) fn clear(&mut self) {
        let mut target = std::mem::take(&mut self.target);
        target.clear();
        let mut changed_fields = std::mem::take(&mut self.changed_fields);
        changed_fields.clear();
        *self = Self {
            target,
            changed_fields,
            ..Self::default()
        };
    }

    /// The walk of a subrequest begins, for a path of its own; it is internal. Its answer is a part
    /// of the response of the request that made it, or is looked at, or nobody does.
    pub(crate) fn begin_subrequest(&mut self, purpose: Purpose, path: &[u8], query: &[u8]) {
        self.purpose = purpose;
        self.internal = true;
        self.target.is_as_written = false;
        self.redirect_to(path, query);
    }

    /// The subrequest only decides about the request that made it.
    pub(crate) fn decide_only(&mut self) {
        self.only_decides = true;
    }

    /// The walk of a copy begins, which stands where this walk stands: the content is made once
    /// more.
    pub(crate) fn begin_in_place(&mut self, walk: &Walk, purpose: Purpose) {
        self.phase = Phase::Content;
        self.purpose = purpose;
        self.only_decides = walk.only_decides;
        self.internal = walk.internal;
        self.target = Target {
            path_changed: false,
            path_below_alias: false,
            ..walk.target.clone()
        };
    }
}

/// Changes by the engine.
impl Walk {
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// The next handler of the phase.
    pub(super) fn handler(&self) -> usize {
        self.handler
    }

    /// Goes to the beginning of a phase.
    pub(super) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.handler = 0;
    }

    /// The next handler of the phase is this one.
    pub(super) fn go_to_handler(&mut self, handler: usize) {
        self.handler = handler;
    }

    /// Whether a rewrite changed the path since the location was found.
    pub(super) fn is_path_changed(&self) -> bool {
        self.target.path_changed
    }

    /// The location was found for the path as it is, or the path has changed since.
    pub(super) fn set_path_changed(&mut self, changed: bool) {
        self.target.path_changed = changed;
    }

    /// Counts a redirect; `false`: that was one too many.
    pub(super) fn take_redirect(&mut self) -> bool {
        self.redirects_left = self.redirects_left.saturating_sub(1);
        self.redirects_left > 0
    }

    /// An internal redirect has led to the present path.
    pub(super) fn redirected(&mut self) {
        self.internal = true;
        self.access_status = 0;
        self.target.is_as_written = false;
        self.target.location_holds = true;
        self.target.path_below_alias = false;
    }

    /// A named location is gone to, with the path as it is.
    pub(super) fn sent_to_named(&mut self) {
        self.internal = true;
        self.access_status = 0;
        self.target.path_changed = false;
    }

    /// The refusal that `satisfy any` holds back; 0 where there is none.
    pub(super) fn access_status(&self) -> u16 {
        self.access_status
    }

    /// Holds a refusal back; 0 forgets it.
    pub(super) fn set_access_status(&mut self, status: u16) {
        self.access_status = status;
    }
}
