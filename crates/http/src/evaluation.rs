//! What variables and regular expressions have found out for a request. All of it changes while the
//! exchange is only borrowed, so each part is borrowed for itself, and never over a call that may
//! evaluate something.

use std::cell::RefCell;

use turnpike_plan::regex::Captures;
use turnpike_plan::variables::Values;

use crate::regex::turn::Turn;

/// The values and the matches of a request.
#[derive(Default)]
pub struct Evaluation {
    values: RefCell<Values>,
    captures: RefCell<Captures>,
    turn: RefCell<Turn>,
}

impl Evaluation {
    /// Values of variables that were stored or computed once.
    pub(crate) fn values(&self) -> &RefCell<Values> {
        &self.values
    }

    /// Groups of the last regular expression that matched.
    pub fn captures(&self) -> &RefCell<Captures> {
        &self.captures
    }

    /// The memory of the text that matched last.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.captures.get_mut().buffer()
    }

    /// What the regular expressions may cost, and those that came to no verdict.
    pub(crate) fn turn(&self) -> &RefCell<Turn> {
        &self.turn
    }

    /// Makes ready for the next request; the room is kept.
    pub(crate) fn clear(&mut self) {
        self.values.get_mut().clear();
        self.captures.get_mut().clear();
        self.turn.get_mut().clear();
    }
}
