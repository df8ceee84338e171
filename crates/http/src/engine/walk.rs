//! Where a request is on its way through the phases, and what has happened to it there.
//!
//! The engine alone moves it. Others learn from it, and say what they did to the path.

use crate::phase::order::Phase;

/// Internal redirects that one request may take; nginx's number. More is a loop in the
/// configuration, answered with 500.
const INTERNAL_REDIRECTS_MAX: u8 = 10;

/// On whose behalf an exchange runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A client's own request.
    #[default]
    Request,
    /// A request that another one made, which looks at its answer, or nobody does.
    Subrequest,
    /// A request that another one made, whose answer is a part of that one's response.
    Part,
    /// The content of a request is made once more, to renew what is stored of it.
    Renewal,
}

/// The way of a request through the phases.
pub struct Walk {
    pub(super) phase: Phase,
    /// Next handler of the phase.
    pub(super) handler: usize,
    /// On whose behalf the exchange runs.
    pub(super) purpose: Purpose,
    /// Whether a rewrite changed the path since the location was found.
    pub(super) path_changed: bool,
    /// See [`Walk::is_path_below_alias`].
    pub(super) path_below_alias: bool,
    /// See [`Walk::target_holds`].
    pub(super) target_holds: bool,
    /// See [`Walk::location_holds`].
    pub(super) location_holds: bool,
    /// Redirects that may still be taken, and one that ends in an error; at 0 that has happened.
    pub(super) redirects_left: u8,
    /// Whether the present location was reached by an internal redirect.
    pub(super) internal: bool,
    /// See [`Walk::error_status`].
    pub(super) error_status: u16,
    /// Whether an `error_page` was followed, so that its own errors lead to no other.
    pub(super) error_page_taken: bool,
    /// Status of a refusal that `satisfy any` holds back until all have been asked.
    pub(super) access_status: u16,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            phase: Phase::PostRead,
            handler: 0,
            purpose: Purpose::Request,
            path_changed: false,
            path_below_alias: false,
            target_holds: true,
            location_holds: true,
            redirects_left: INTERNAL_REDIRECTS_MAX + 1,
            internal: false,
            error_status: 0,
            error_page_taken: false,
            access_status: 0,
        }
    }
}

impl Walk {
    /// The walk of a subrequest, which is internal.
    pub(crate) fn of_subrequest() -> Self {
        Self {
            purpose: Purpose::Subrequest,
            internal: true,
            target_holds: false,
            ..Self::default()
        }
    }

    /// The walk of a subrequest whose answer is a part of a response.
    pub(crate) fn of_part() -> Self {
        Self {
            purpose: Purpose::Part,
            ..Self::of_subrequest()
        }
    }

    /// The walk of a copy that renews what is stored of a request.
    pub(crate) fn of_renewal(walk: &Walk) -> Self {
        Self {
            phase: Phase::Content,
            purpose: Purpose::Renewal,
            target_holds: walk.target_holds,
            location_holds: walk.location_holds,
            internal: walk.internal,
            ..Self::default()
        }
    }

    /// Whether the target that the client wrote still says what is asked for: a proxy may pass it
    /// on as it came. Not so after a rewrite, an internal redirect, or a change of the query.
    pub fn target_holds(&self) -> bool {
        self.target_holds
    }

    /// Whether the path is the one that the location was found for: not so after a rewrite that
    /// stays in its location, when no part of the path stands for the location any more.
    pub fn location_holds(&self) -> bool {
        self.location_holds
    }

    /// Whether path or location are not those that the client's target led to.
    pub fn is_internal(&self) -> bool {
        self.internal
    }

    /// Whether the path was made to be looked up below the folder that an alias of a regular
    /// expression names, as `try_files` does; such an alias is the whole file name otherwise.
    pub(crate) fn is_path_below_alias(&self) -> bool {
        self.path_below_alias
    }

    /// Status that the answer takes whatever its handler says: of the error that led here; or 0.
    pub(crate) fn error_status(&self) -> u16 {
        self.error_status
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
        self.target_holds = false;
    }

    /// The path is to be looked up below an alias's folder: see [`Walk::is_path_below_alias`].
    pub fn path_goes_below_alias(&mut self) {
        self.path_below_alias = true;
    }

    /// A rewrite directive has changed the path. The location is looked for again at the end of
    /// the phase, unless [`Walk::stay_in_location`] says otherwise.
    pub fn path_rewritten(&mut self) {
        self.internal = true;
        self.target_holds = false;
        self.path_changed = true;
    }

    /// The location stays as it is, even where the path was rewritten.
    pub fn stay_in_location(&mut self) {
        if std::mem::take(&mut self.path_changed) {
            self.location_holds = false;
        }
    }
}
