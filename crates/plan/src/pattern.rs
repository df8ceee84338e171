//! Patterns of directives: a regular expression, and the variables that its named groups set.

use crate::regex::{Regex, Undecided};
use crate::variables::{Subject, VariableId, VariableTable};

/// A pattern with the variables that its named groups set.
#[derive(Debug)]
pub struct Pattern {
    /// The expression.
    pub regex: Regex,
    /// Group number and variable.
    pub names: Vec<(usize, VariableId)>,
}

impl Pattern {
    /// Compiles a pattern and defines a variable for each named group. `place` is where it stands
    /// ([`turnpike_conf::View::place`]).
    ///
    /// # Errors
    /// PCRE2's, or that of a name that cannot be defined.
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

    /// Matches `text`; when it does, the subject has the groups and the named variables. A match
    /// without groups leaves none of an earlier one.
    ///
    /// # Errors
    /// When there is no verdict, which the subject knows.
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
