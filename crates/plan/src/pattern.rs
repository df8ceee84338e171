//! Patterns of directives: a regular expression, and the variables of its named groups.

use std::error::Error;
use std::fmt;

use crate::regex::{Allowance, Case, Regex, RegexError, Undecided};
use crate::variables::{DuplicateVariable, Subject, VariableId, VariableTable};
use turnpike_conf::Complaint;

/// A pattern with the variables of its named groups.
#[derive(Debug)]
pub struct Pattern {
    /// The expression.
    pub regex: Regex,
    /// Group number and variable.
    pub names: Vec<(usize, VariableId)>,
}

/// Why a pattern cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// PCRE2 refuses the expression.
    Regex(RegexError),
    /// The name of a group is the name of a variable that cannot be changed.
    Name(DuplicateVariable),
}

impl fmt::Display for PatternError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Regex(error) => error.fmt(out),
            PatternError::Name(error) => error.fmt(out),
        }
    }
}

impl Error for PatternError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            PatternError::Regex(error) => error,
            PatternError::Name(error) => error,
        })
    }
}

impl From<PatternError> for Complaint {
    fn from(error: PatternError) -> Complaint {
        error.to_string().into()
    }
}

/// A holder of matches, which pays for them and keeps their groups where it has a use for them.
/// Every subject of variables is one.
pub trait Matcher {
    /// Matches `text`.
    ///
    /// # Errors
    /// The match had no result; the matcher records that.
    fn matches(&self, pattern: &Pattern, text: &[u8]) -> Result<bool, Undecided>;

    /// Calls with the remaining allowance of the matches.
    fn with_allowance<T>(&self, call: impl FnOnce(&mut Allowance) -> T) -> T;
}

impl<S: Subject> Matcher for S {
    fn matches(&self, pattern: &Pattern, text: &[u8]) -> Result<bool, Undecided> {
        pattern.matches(self, text)
    }

    fn with_allowance<T>(&self, call: impl FnOnce(&mut Allowance) -> T) -> T {
        Subject::with_allowance(self, call)
    }
}

impl Pattern {
    /// Compiles a pattern and defines a variable for each named group. `place` is its place in the
    /// configuration ([`turnpike_conf::View::place`]).
    ///
    /// # Errors
    /// PCRE2's error, or that of a name that cannot be defined.
    pub fn compile<S>(
        pattern: &str,
        case: Case,
        place: &str,
        variables: &mut VariableTable<S>,
    ) -> Result<Self, PatternError> {
        let regex = Regex::shared(pattern, case, place, &mut variables.programs);
        let regex = regex.map_err(PatternError::Regex)?;
        let names = regex
            .names()
            .iter()
            .map(|(group, name)| Ok((*group, variables.define_stored(name)?)))
            .collect::<Result<_, DuplicateVariable>>()
            .map_err(PatternError::Name)?;
        Ok(Self { regex, names })
    }

    /// Matches `text`; a match stores the groups and the named variables in the subject. A match
    /// without groups clears those of an earlier one.
    ///
    /// # Errors
    /// The match had no result; the subject records that.
    pub fn matches<S: Subject>(&self, subject: &S, text: &[u8]) -> Result<bool, Undecided> {
        if !subject.capture(&self.regex, text)? {
            return Ok(false);
        }
        for (group, id) in &self.names {
            let mut found = false;
            subject.group(*group, &mut |text| {
                found = true;
                subject.values().borrow_mut().store(*id, Some(text));
            });
            if !found {
                subject.values().borrow_mut().store(*id, None);
            }
        }
        Ok(true)
    }
}
