//! Matches of a request: what they may still cost, what is known already, and what becomes of
//! those without a verdict.
//!
//! A handler that matches gets `Err` if there is no verdict, and stops; its own verdict then does
//! not count. The engine looks after each handler whether that happened. If the request may wait,
//! the match is finished off the lane, and the handler is asked again, which then finds the verdict
//! here. Otherwise the request is answered with 500. Once the response's head is on its way, there
//! is nothing left to answer: a value without a verdict is no value (`-` in logs).

pub(crate) mod matching;

use std::sync::Arc;

use super::pool::{Job, MatchResult, Refusal};
use turnpike_plan::regex::{Allowance, Captures, Groups, LANE_STEPS, Regex};

use crate::plan::index::LocationIndex;

/// Matches of one request that are finished off the lane. A client could make one request hold a
/// thread for long otherwise, where a configuration has many patterns.
const OFF_LANE_MAX: u8 = 8;

/// Matches that a request remembers: those finished off the lane, and those that took much on it,
/// so that they do not take it again when a handler is asked again.
const KNOWN_MAX: usize = 32;

/// Steps that are worth remembering.
const KNOWN_STEPS_MIN: u64 = LANE_STEPS / 16;

/// What a request has to do with regular expressions.
pub struct Turn {
    pub(super) allowance: Allowance,
    known: Vec<Known>,
    state: MatchState,
    /// Whether the step that goes on may be taken again.
    may_wait: bool,
    /// Whether the head is on its way.
    late: bool,
    /// Whether 500 was answered for a match already: its own page must not lead to it again.
    answered: bool,
    finished_off_lane: u8,
    failures: u32,
    /// Captures from before the step, where it has replaced them.
    before: Captures,
    replaced: bool,
    groups: Groups,
    position: Position,
}

#[derive(Default)]
enum MatchState {
    #[default]
    Decided,
    Heavy(Job),
    Failed,
}

struct Known {
    serial: u64,
    subject: Arc<[u8]>,
    found: MatchResult,
}

/// Where a program of rewrite directives goes on when it is asked again: it must not do twice what
/// it has done.
#[derive(Default)]
pub struct Position {
    /// Index of the directive in each block, innermost first; empty at the beginning.
    pub steps: Vec<usize>,
    /// The location that was in force there.
    pub location: Option<LocationIndex>,
    /// What else the program has to know.
    pub flag: bool,
}

impl Default for Turn {
    fn default() -> Self {
        Turn {
            allowance: Allowance::LANE,
            known: Vec::new(),
            state: MatchState::Decided,
            may_wait: false,
            late: false,
            answered: false,
            finished_off_lane: 0,
            failures: 0,
            before: Captures::default(),
            replaced: false,
            groups: Groups::new(),
            position: Position::default(),
        }
    }
}

impl Turn {
    /// Makes ready for another request. The room for captures is kept.
    pub(crate) fn clear(&mut self) {
        self.allowance = Allowance::LANE;
        self.known.clear();
        self.state = MatchState::Decided;
        self.may_wait = false;
        self.late = false;
        self.answered = false;
        self.finished_off_lane = 0;
        self.failures = 0;
        self.replaced = false;
        self.position.steps.clear();
    }

    /// Remembers what was found off the lane. Others were served meanwhile: the request may use as
    /// much as at its beginning.
    pub(super) fn learn(&mut self, serial: u64, subject: Arc<[u8]>, found: MatchResult) {
        self.allowance = Allowance::LANE;
        self.remember(serial, subject, found);
    }

    fn remember(&mut self, serial: u64, subject: Arc<[u8]>, found: MatchResult) {
        if self.known.len() >= KNOWN_MAX {
            self.known.remove(0);
        }
        self.known.push(Known {
            serial,
            subject,
            found,
        });
    }

    fn known(&self, serial: u64, subject: &[u8]) -> Option<&Known> {
        let mut known = self.known.iter();
        known.find(|known| known.serial == serial && *known.subject == *subject)
    }

    /// What is known already, or can be found out within the allowance. The groups are in
    /// `self.groups`.
    fn find(&mut self, regex: &Regex, subject: &[u8]) -> MatchResult {
        let program = &regex.program();
        if let Some(known) = self.known(program.serial, subject) {
            let found = known.found.clone();
            if let Ok(Some(groups)) = &found {
                self.groups.clone_from(groups);
            }
            return found;
        }
        let before = self.allowance.steps;
        let mut groups = std::mem::take(&mut self.groups);
        let found = program.on_lane(subject, &mut self.allowance, &mut groups);
        self.groups = groups;
        if before.saturating_sub(self.allowance.steps) >= KNOWN_STEPS_MIN
            && let Ok(found) = found
        {
            let groups = found.then(|| self.groups.clone());
            self.remember(program.serial, subject.into(), Ok(groups));
        }
        match found {
            Ok(true) => Ok(Some(Groups::new())),
            Ok(false) => Ok(None),
            Err(failure) => Err(Refusal::Failed(failure)),
        }
    }

    /// What becomes of a match without a verdict: whether it is to be logged.
    fn undecided(&mut self, regex: &Regex, subject: &[u8], refusal: Refusal) -> bool {
        let heavy = match refusal {
            Refusal::Failed(failure) => failure.is_limit() || failure.is_stack(),
            Refusal::Full | Refusal::Lost => false,
        };
        let known = self.known(regex.program().serial, subject).is_some();
        if heavy && self.may_wait && !known && self.finished_off_lane < OFF_LANE_MAX {
            self.finished_off_lane += 1;
            self.state = MatchState::Heavy(Job {
                program: regex.program().clone(),
                subject: subject.into(),
            });
            return false;
        }
        self.failures += 1;
        if !self.late {
            self.state = MatchState::Failed;
        }
        true
    }

    /// Keeps the captures from before the step, should it have to be taken again.
    fn keep(&mut self, captures: &mut Captures) {
        if !std::mem::replace(&mut self.replaced, true) {
            std::mem::swap(&mut self.before, captures);
        }
    }
}
