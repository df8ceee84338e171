//! Which server block a host name belongs to, with nginx's precedence: exact, longest wildcard in
//! front, longest wildcard at the end, first regular expression, default.

use std::sync::Arc;

use turnpike_plan::keys::KeyMap;
use turnpike_plan::pattern::Pattern;
use turnpike_plan::pattern_list::PatternList;
use turnpike_plan::regex::Undecided;
use turnpike_plan::variables::Subject;

use super::index::ServerIndex;

/// The names of the server blocks on one listening address.
#[derive(Default)]
pub struct NameTable {
    /// `None`: the name is taken and leads nowhere, see [`NameMatch::Both`].
    exact: KeyMap<Option<ServerIndex>>,
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
    /// Any name that ends so, and the name behind the dot. Where another block has the former, the
    /// latter is taken and nobody's, as in nginx.
    Both(Vec<u8>),
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
            NameMatch::Exact(name) | NameMatch::Both(name) => text(name),
            NameMatch::Leading(name) => format!("*{}", text(name)),
            NameMatch::Trailing(name) => format!("{}*", text(name)),
            NameMatch::Pattern(pattern) => format!("~{}", pattern.regex.pattern()),
        }
    }
}

impl NameTable {
    /// Adds a name. `false`: another block of this address has it already and keeps it.
    pub fn add(&mut self, name: &NameMatch, server: ServerIndex) -> bool {
        match name {
            NameMatch::Exact(text) => insert(&mut self.exact, text, Some(server)),
            NameMatch::Leading(text) => insert(&mut self.leading, text, server),
            NameMatch::Trailing(text) => insert(&mut self.trailing, text, server),
            NameMatch::Both(text) => {
                let is_free = !self.leading.contains_key(text.as_slice());
                let exact = is_free.then_some(server);
                insert(
                    &mut self.exact,
                    text.strip_prefix(b".").unwrap_or(text),
                    exact,
                ) && insert(&mut self.leading, text, server)
            }
            NameMatch::Pattern(pattern) => {
                self.patterns.add(Arc::clone(pattern), server);
                true
            }
        }
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
    pub fn find<S: Subject>(
        &self,
        host: &[u8],
        subject: &S,
    ) -> Result<Option<ServerIndex>, Undecided> {
        if let Some(&Some(server)) = self.exact.get(host) {
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
        self.patterns.first(subject, host)
    }
}

fn insert<T>(table: &mut KeyMap<T>, name: &[u8], value: T) -> bool {
    let is_free = !table.contains_key(name);
    if is_free {
        table.insert(name.into(), value);
    }
    is_free
}
