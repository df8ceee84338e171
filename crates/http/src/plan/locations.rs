//! Locations of a server block: exact, prefix, regular expression and predicate, with nginx's
//! precedence.

use std::sync::Arc;

use turnpike_plan::keys::KeyMap;
use turnpike_plan::pattern::Pattern;
use turnpike_plan::pattern_list::PatternList;
use turnpike_plan::regex::{Purpose, Undecided};
use turnpike_plan::variables::{self, Subject, VariableId};

use super::index::LocationIndex;
use super::prefixes::PrefixTree;

/// The locations of one level: of a server block, or inside another location.
#[derive(Default)]
pub struct LocationTree {
    pub(super) exact: KeyMap<LocationIndex>,
    pub(super) prefixes: PrefixTree<Prefix>,
    pub(super) patterns: PatternList<LocationIndex>,
    /// In the order of the file: the first whose variable is true is found.
    predicates: Vec<(VariableId, LocationIndex)>,
    /// Whether the search goes on behind a prefix: there are patterns or predicates.
    pub(super) goes_on: bool,
    /// Locations that send their own name without its slash to themselves, by that path.
    pub(super) redirects: KeyMap<LocationIndex>,
}

#[derive(Clone, Copy)]
pub(super) struct Prefix {
    pub(super) location: LocationIndex,
    /// `^~`: no regular expression and no predicate is tried after it.
    pub(super) final_prefix: bool,
}

/// What was found for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A prefix: regular expressions and predicates of an enclosing level may still win over it.
    Prefix(LocationIndex),
    /// An exact location, a regular expression or a predicate: the search is over.
    Decided(LocationIndex),
    /// A location whose name has one more slash: the client is redirected to it.
    Redirect(LocationIndex),
    /// None: the enclosing location holds.
    Nothing,
}

impl LocationTree {
    /// Adds `location = TEXT`. `false`: there is one already.
    pub fn add_exact(&mut self, text: &[u8], location: LocationIndex) -> bool {
        self.exact.insert(text.into(), location).is_none()
    }

    /// Adds `location TEXT` or `location ^~ TEXT`. `false`: there is one already.
    pub fn add_prefix(&mut self, text: &[u8], location: LocationIndex, final_prefix: bool) -> bool {
        let prefix = Prefix {
            location,
            final_prefix,
        };
        self.prefixes.add(text, prefix)
    }

    /// Adds `location ~ PATTERN`.
    pub fn add_pattern(&mut self, pattern: Pattern, location: LocationIndex) {
        self.patterns.add(Arc::new(pattern), location);
    }

    /// Adds `location $VARIABLE`.
    pub fn add_predicate(&mut self, variable: VariableId, location: LocationIndex) {
        self.predicates.push((variable, location));
    }

    /// Lets the path without the slash at the end of `text` lead to the location of that name.
    pub fn add_redirect(&mut self, text: &[u8], location: LocationIndex) {
        if let Some(path) = text.strip_suffix(b"/") {
            self.redirects.insert(path.into(), location);
        }
    }

    /// Makes ready for look-ups; called once, after the last was added.
    pub fn finish(&mut self, purpose: Purpose) {
        self.prefixes.finish();
        self.patterns.finish(purpose);
        self.goes_on = !self.patterns.is_empty() || !self.predicates.is_empty();
    }

    /// The location of the first pattern that matches the path, or else of the first predicate that
    /// holds.
    ///
    /// # Errors
    /// A pattern or the value of a variable has no result.
    pub(super) fn beyond_prefixes<S: Subject>(
        &self,
        subject: &S,
        path: &[u8],
    ) -> Result<Option<LocationIndex>, Undecided> {
        if let Some(location) = self.patterns.first(subject, path)? {
            return Ok(Some(location));
        }
        for (variable, location) in &self.predicates {
            if variables::holds(subject, *variable)? {
                return Ok(Some(*location));
            }
        }
        Ok(None)
    }

    /// Whether no location stands here.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty() && !self.goes_on
    }
}
