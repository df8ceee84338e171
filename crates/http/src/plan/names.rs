//! Which server block a host name belongs to, with nginx's precedence: exact, longest wildcard in
//! front, longest wildcard at the end, first regular expression, default.

use std::sync::Arc;

use turnpike_plan::keys::KeyMap;

use super::{Pattern, PatternList, ServerIndex};
use crate::exchange::Exchange;
use crate::regex::Undecided;

/// The names of the server blocks on one listening address.
#[derive(Default)]
pub struct NameTable {
    exact: KeyMap<ServerIndex>,
    /// `*.example.com` under `.example.com`.
    leading: KeyMap<ServerIndex>,
    /// `www.example.*` under `www.example.`.
    trailing: KeyMap<ServerIndex>,
    patterns: PatternList<ServerIndex>,
}

/// What a name given to `server_name` says.
#[derive(Clone, Debug)]
pub enum NameMatch {
    /// This very name.
    Exact(Vec<u8>),
    /// Any name that ends so (the text begins with a dot).
    Leading(Vec<u8>),
    /// Any name that begins so (the text ends with a dot).
    Trailing(Vec<u8>),
    /// What the pattern matches.
    Pattern(Arc<Pattern>),
}

impl NameMatch {
    /// The name as it is written in a configuration.
    pub fn text(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            NameMatch::Exact(name) => text(name),
            NameMatch::Leading(name) => format!("*{}", text(name)),
            NameMatch::Trailing(name) => format!("{}*", text(name)),
            NameMatch::Pattern(pattern) => format!("~{}", pattern.regex.pattern()),
        }
    }
}

impl NameTable {
    /// Adds a name. `false`: another block of this address has it already and keeps it.
    pub fn add(&mut self, name: &NameMatch, server: ServerIndex) -> bool {
        let (table, text) = match name {
            NameMatch::Exact(text) => (&mut self.exact, text),
            NameMatch::Leading(text) => (&mut self.leading, text),
            NameMatch::Trailing(text) => (&mut self.trailing, text),
            NameMatch::Pattern(pattern) => {
                self.patterns.add(Arc::clone(pattern), server);
                return true;
            }
        };
        if table.contains_key(text.as_slice()) {
            return false;
        }
        table.insert(text.as_slice().into(), server);
        true
    }

    /// Makes ready for look-ups; called once, after the last was added.
    pub fn finish(&mut self) {
        self.patterns.finish();
    }

    /// Whether a look-up can find anything but the default.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty()
            && self.leading.is_empty()
            && self.trailing.is_empty()
            && self.patterns.is_empty()
    }

    /// The server block for a lower-case host name.
    ///
    /// # Errors
    /// When a regular expression came to no verdict.
    pub fn find(&self, host: &[u8], exchange: &Exchange) -> Result<Option<ServerIndex>, Undecided> {
        if let Some(&server) = self.exact.get(host) {
            return Ok(Some(server));
        }
        if !self.leading.is_empty() {
            for (at, _) in host
                .iter()
                .enumerate()
                .filter(|(at, byte)| **byte == b'.' && *at > 0)
            {
                if let Some(&server) = self.leading.get(&host[at..]) {
                    return Ok(Some(server));
                }
            }
        }
        if !self.trailing.is_empty() {
            for (at, _) in host
                .iter()
                .enumerate()
                .rev()
                .filter(|(_, byte)| **byte == b'.')
            {
                if let Some(&server) = self.trailing.get(&host[..=at]) {
                    return Ok(Some(server));
                }
            }
        }
        self.patterns.first(exchange, host)
    }
}
