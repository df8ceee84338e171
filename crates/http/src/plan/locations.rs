//! Locations of a server block: exact, prefix and regular expression, with nginx's precedence.

use std::collections::HashMap;

use super::{LocationIndex, Pattern, Plan};
use crate::exchange::Exchange;
use crate::regex::Undecided;

/// The locations of one level: of a server block, or inside another location.
#[derive(Default)]
pub struct LocationTree {
    exact: HashMap<Box<[u8]>, LocationIndex>,
    /// Sorted by prefix.
    prefixes: Vec<Prefix>,
    patterns: Vec<(Pattern, LocationIndex)>,
    /// Locations that send their own name without its slash to themselves, by that path.
    redirects: HashMap<Box<[u8]>, LocationIndex>,
}

struct Prefix {
    text: Box<[u8]>,
    location: LocationIndex,
    /// `^~`: no regular expression is tried after it.
    final_prefix: bool,
    /// The next shorter prefix that this one begins with.
    parent: Option<usize>,
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
        if self.prefixes.iter().any(|prefix| &*prefix.text == text) {
            return false;
        }
        self.prefixes.push(Prefix {
            text: text.into(),
            location,
            final_prefix,
            parent: None,
        });
        true
    }

    /// Adds `location ~ PATTERN`.
    pub fn add_pattern(&mut self, pattern: Pattern, location: LocationIndex) {
        self.patterns.push((pattern, location));
    }

    /// Lets the path without the slash at the end of `text` lead to the location of that name.
    pub fn add_redirect(&mut self, text: &[u8], location: LocationIndex) {
        if let Some(path) = text.strip_suffix(b"/") {
            self.redirects.insert(path.into(), location);
        }
    }

    /// Sorts the prefixes; called once, after the last was added.
    pub fn finish(&mut self) {
        self.prefixes
            .sort_by(|left, right| left.text.cmp(&right.text));
        for index in 0..self.prefixes.len() {
            let text = self.prefixes[index].text.clone();
            let parent = (0..index)
                .rev()
                .find(|&other| text.starts_with(&self.prefixes[other].text));
            self.prefixes[index].parent = parent;
        }
    }

    fn longest_prefix(&self, path: &[u8]) -> Option<&Prefix> {
        let after = self
            .prefixes
            .partition_point(|prefix| &*prefix.text <= path);
        let mut index = after.checked_sub(1)?;
        loop {
            let prefix = &self.prefixes[index];
            if path.starts_with(&prefix.text) {
                return Some(prefix);
            }
            index = prefix.parent?;
        }
    }
}

impl LocationTree {
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
        if let Some(prefix) = tree.longest_prefix(path) {
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
        for (pattern, location) in &tree.patterns {
            if pattern.matches(exchange, path)? {
                let nested = &self.location(*location).tree;
                return Ok(match self.find_location(nested, exchange, path)? {
                    Found::Nothing => Found::Decided(*location),
                    Found::Prefix(inner) | Found::Decided(inner) => Found::Decided(inner),
                    redirect => redirect,
                });
            }
        }
        Ok(found)
    }
}
