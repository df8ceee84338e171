//! Conditions of requests that change files: `If-Match`, `If-None-Match` and `If-Unmodified-Since`
//! (RFC 9110 section 13.1), and WebDAV's `If` (RFC 4918 section 10.4).
//!
//! Conditions are judged on a thread that may block, after every other check and just before the
//! change, while no other request changes the same file ([`super::turns`]): whoever has read one
//! state of a file does not overwrite another.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnpike_http::exchange::Exchange;
use turnpike_lane::log::Level;
use turnpike_wire::message::Known;

use super::failure::{Failure, Refusal, quoted};
use super::if_field::{self, Condition, State};
use super::locks::LockZone;
use super::properties::{entity_tag, modified_s};
use super::uri::{file, path_of, without_slash};
use crate::common::conditions::{Comparison, is_unmodified, matches_tag};

/// The status of a condition that does not hold.
pub(super) const PRECONDITION_FAILED: u16 = 412;

/// The conditions of one request.
#[derive(Default)]
pub(super) struct Conditions {
    if_match: Option<Vec<u8>>,
    if_none_match: Option<Vec<u8>>,
    if_unmodified_since: Option<Vec<u8>>,
    /// The lists of `If`, of which one has to hold.
    lists: Option<Vec<List>>,
    /// The locks that state tokens name, and the files that the request is about.
    locks: Option<Arc<LockZone>>,
    paths: Vec<PathBuf>,
    now_ms: u64,
}

/// A list of `If`: all of it has to hold.
struct List {
    subject: Subject,
    conditions: Vec<Condition>,
}

/// What a list is about.
enum Subject {
    /// The resource of the request.
    Request,
    File(PathBuf),
    /// A resource of another server or location: nothing is known of it.
    Elsewhere,
}

impl Conditions {
    /// The conditions of a request that is about these files.
    ///
    /// # Errors
    /// An `If` that cannot be read: its author relies on it.
    pub(super) fn of(
        exchange: &Exchange,
        locks: Option<&Arc<LockZone>>,
        paths: Vec<PathBuf>,
    ) -> Result<Self, Refusal> {
        let known = |name| exchange.known_field(name).map(<[u8]>::to_vec);
        // The lines of a list are one list (RFC 9110 section 5.3); the others may stand once.
        let lines: Vec<&[u8]> = exchange.fields().values(b"If").collect();
        let lists = if lines.is_empty() {
            None
        } else {
            Some(lists(exchange, &lines.join(&b", "[..]))?)
        };
        Ok(Self {
            if_match: known(Known::IfMatch),
            if_none_match: known(Known::IfNoneMatch),
            if_unmodified_since: known(Known::IfUnmodifiedSince),
            lists,
            locks: locks.map(Arc::clone),
            paths,
            now_ms: exchange.lane.clock.now_ms(),
        })
    }

    /// Whether `If` may hold, by its state tokens alone: without a look at any file.
    pub(super) fn may_hold(&self) -> bool {
        let holds = |list: &List, condition: &Condition| match &condition.state {
            State::Token(token) => self.is_held(token, &list.subject) != condition.is_negated,
            State::Tag(_) => true,
        };
        self.any_list(holds)
    }

    /// Judges the conditions by the file at `path`, which the request is for.
    ///
    /// # Errors
    /// 412 if one does not hold.
    pub(super) fn check(&self, path: &Path) -> Result<(), Failure> {
        let there = fs::metadata(path).ok();
        if self.hold_for(there.as_ref()) && self.lists_hold(there.as_ref()) {
            return Ok(());
        }
        let path = quoted(path);
        Err(Failure {
            status: PRECONDITION_FAILED,
            level: Level::Info,
            text: format!("a condition of the request does not hold for \"{path}\""),
        })
    }

    /// The conditions of RFC 9110, in the order of its section 13.2.2.
    fn hold_for(&self, there: Option<&Metadata>) -> bool {
        let tag = there.and_then(entity_tag).unwrap_or_default();
        let is_there = there.is_some();
        let is_expected = match (&self.if_match, &self.if_unmodified_since) {
            (Some(list), _) => is_there && matches_tag(list, &tag, Comparison::Strong),
            (None, Some(since)) => is_unmodified(since, there.and_then(modified_s)),
            (None, None) => true,
        };
        let is_other = match &self.if_none_match {
            Some(list) => !(is_there && matches_tag(list, &tag, Comparison::Weak)),
            None => true,
        };
        is_expected && is_other
    }

    fn lists_hold(&self, there: Option<&Metadata>) -> bool {
        self.any_list(|list, condition| {
            let holds = match &condition.state {
                State::Token(token) => self.is_held(token, &list.subject),
                State::Tag(tag) => {
                    let own = match &list.subject {
                        Subject::Request => there.and_then(entity_tag),
                        Subject::File(path) => {
                            fs::metadata(path).ok().as_ref().and_then(entity_tag)
                        }
                        Subject::Elsewhere => None,
                    };
                    own.is_some_and(|own| matches_tag(tag, &own, Comparison::Strong))
                }
            };
            holds != condition.is_negated
        })
    }

    /// Whether there is no `If`, or one of its lists holds.
    fn any_list(&self, holds: impl Fn(&List, &Condition) -> bool) -> bool {
        let holds = |list: &List| list.conditions.iter().all(|one| holds(list, one));
        self.lists
            .as_ref()
            .is_none_or(|lists| lists.iter().any(holds))
    }

    /// Whether a lock of this name is held on what a list is about. A list without a resource is
    /// for all that the request changes, with the folders that it is in: clients do not name them.
    fn is_held(&self, token: &[u8], subject: &Subject) -> bool {
        let Some(locks) = &self.locks else {
            return false;
        };
        let is_held = |path: &PathBuf| locks.is_held(token, path, self.now_ms);
        match subject {
            Subject::Request => self.paths.iter().any(is_held),
            Subject::File(path) => is_held(path),
            Subject::Elsewhere => false,
        }
    }
}

/// The lists of `If`, with the files that they are about.
fn lists(exchange: &Exchange, field: &[u8]) -> Result<Vec<List>, Refusal> {
    let malformed = || (400, "client sent an invalid \"If\" header".to_owned());
    let read = if_field::lists(field).ok_or_else(malformed)?;
    let lists = read.into_iter().map(|(resource, conditions)| {
        let subject = match resource.map(|text| path_of(exchange, text)) {
            None => Subject::Request,
            Some(Ok(path)) => Subject::File(file(exchange, without_slash(&path))),
            Some(Err(_)) => Subject::Elsewhere,
        };
        List {
            subject,
            conditions,
        }
    });
    Ok(lists.collect())
}
