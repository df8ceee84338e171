//! Patterns of directives: a regular expression, and the variables of its named groups.

use crate::regex::{Regex, Undecided};
use crate::variables::{Subject, VariableId, VariableTable};

/// A pattern with the variables of its named groups.
#[derive(Debug)]
pub struct Pattern {
    /// The expression.
    pub regex: Regex,
    /// Group number and variable.
    pub names: Vec<(usize, VariableId)>,
}

impl Pattern {
    /// Compiles a pattern and defines a variable for each named group. `place` is its place in the
    /// configuration ([`turnpike_conf::View::place`]).
    ///
    /// # Errors
    /// PCRE2's error, or that of a name that cannot be defined.
    pub fn compile<S>(
        pattern: &str,
        caseless: bool,
        place: &str,
        variables: &mut VariableTable<S>,
    ) -> Result<Self, String> {
        let regex = Regex::new(pattern, caseless, place)?;
        let names = regex
            .names()
            .iter()
            .map(|(group, name)| Ok((*group, variables.define_stored(name)?)))
            .collect::<Result<_, String>>()?;
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
