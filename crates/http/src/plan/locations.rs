//! Locations of a server block: exact, prefix and regular expression, with nginx's precedence.

use std::sync::Arc;

use turnpike_plan::keys::KeyMap;

use super::prefixes::PrefixTree;
use super::{LocationIndex, Pattern, PatternList, Plan};
use crate::exchange::Exchange;
use crate::regex::Undecided;

/// The locations of one level: of a server block, or inside another location.
#[derive(Default)]
pub struct LocationTree {
    exact: KeyMap<LocationIndex>,
    prefixes: PrefixTree<Prefix>,
    patterns: PatternList<LocationIndex>,
    /// Locations that send their own name without its slash to themselves, by that path.
    redirects: KeyMap<LocationIndex>,
}

#[derive(Clone, Copy)]
struct Prefix {
    location: LocationIndex,
    /// `^~`: no regular expression is tried after it.
    final_prefix: bool,
}

/// What was found for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A prefix: an enclosing level's regular expressions may still win over it.
    Prefix(LocationIndex),
    /// An exact location or a regular expression: the search is over.
    Decided(LocationIndex),
    /// A location whose name has a slash more: the client is told of it.
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

    /// Lets the path without the slash at the end of `text` lead to the location of that name.
    pub fn add_redirect(&mut self, text: &[u8], location: LocationIndex) {
        if let Some(path) = text.strip_suffix(b"/") {
            self.redirects.insert(path.into(), location);
        }
    }

    /// Makes ready for look-ups; called once, after the last was added.
    pub fn finish(&mut self) {
        self.prefixes.finish();
        self.patterns.finish();
    }

    /// Whether no location stands here.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty() && self.patterns.is_empty()
    }
}

impl Plan {
    /// Finds the location for a path within `tree`, nested ones included.
    ///
    /// An exact match wins; else the longest prefix is remembered; else, unless that prefix is
    /// final (`^~`), the first regular expression that matches wins over it.
    ///
    /// # Errors
    /// When a regular expression came to no verdict.
    pub fn find_location(
        &self,
        tree: &LocationTree,
        exchange: &Exchange,
        path: &[u8],
    ) -> Result<Found, Undecided> {
        if tree.is_empty() {
            return Ok(Found::Nothing);
        }
        if let Some(&location) = tree.exact.get(path) {
            return Ok(Found::Decided(location));
        }
        if let Some(&location) = tree.redirects.get(path) {
            return Ok(Found::Redirect(location));
        }
        let mut found = Found::Nothing;
        let mut patterns_wanted = true;
        if let Some(prefix) = tree.prefixes.longest(path) {
            patterns_wanted = !prefix.final_prefix;
            let nested = &self.location(prefix.location).tree;
            found = match self.find_location(nested, exchange, path)? {
                Found::Nothing => Found::Prefix(prefix.location),
                Found::Prefix(inner) => Found::Prefix(inner),
                decided => return Ok(decided),
            };
        }
        if !patterns_wanted {
            return Ok(found);
        }
        let Some(location) = tree.patterns.first(exchange, path)? else {
            return Ok(found);
        };
        let nested = &self.location(location).tree;
        Ok(match self.find_location(nested, exchange, path)? {
            Found::Nothing => Found::Decided(location),
            Found::Prefix(inner) | Found::Decided(inner) => Found::Decided(inner),
            redirect => redirect,
        })
    }
}
