//! The server block for a host name, with nginx's precedence: exact, longest wildcard at the start,
//! longest wildcard at the end, first regular expression, default.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, View};

use crate::builder::Builder;
use crate::keys::KeyMap;
use crate::pattern::{Matcher, Pattern};
use crate::pattern_list::PatternList;
use crate::regex::{Case, Purpose, Undecided};

/// The names of the server blocks on one listening address; `T` identifies the block.
pub struct NameTable<T> {
    /// `None`: the name is taken but has no block, see [`NameMatch::Both`].
    exact: KeyMap<Option<T>>,
    /// `*.example.com` under `.example.com`.
    leading: KeyMap<T>,
    /// `www.example.*` under `www.example.`.
    trailing: KeyMap<T>,
    patterns: PatternList<T>,
}

impl<T> Default for NameTable<T> {
    fn default() -> Self {
        Self {
            exact: KeyMap::default(),
            leading: KeyMap::default(),
            trailing: KeyMap::default(),
            patterns: PatternList::default(),
        }
    }
}

/// The meaning of an argument of `server_name`.
#[derive(Clone, Debug)]
pub enum NameMatch {
    /// This name.
    Exact(Vec<u8>),
    /// Any name with this end (the text begins with a dot).
    Leading(Vec<u8>),
    /// Any name with this end, and the name after the dot. If another block has the former, the
    /// latter is taken but has no block, as in nginx.
    Both(Vec<u8>),
    /// Any name with this beginning (the text ends with a dot).
    Trailing(Vec<u8>),
    /// Any name that the pattern matches.
    Pattern(Arc<Pattern>),
    /// No name, where names are looked up: nginx refuses it only there ([`NameMatch::is_invalid`]).
    Invalid(String),
}

/// The names of a server block; the empty name if there are none.
///
/// # Errors
/// nginx's message about the first invalid name.
pub fn server_names<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<Vec<NameMatch>, ConfError> {
    let mut names = Vec::new();
    for entry in view.own_all("server_name") {
        let place = view.place(entry.span);
        for word in entry.arguments.iter() {
            let name = NameMatch::read(&word.text, &place, builder);
            names.push(name.map_err(|message| view.error(entry.span, message))?);
            if word.text.contains('/') && !word.text.starts_with('~') {
                let name = &word.text;
                let message = format!("server name \"{name}\" has suspicious symbols");
                builder.warn(view, entry, message);
            }
        }
    }
    if names.is_empty() {
        names.push(NameMatch::Exact(Vec::new()));
    }
    Ok(names)
}

/// The first name of a server block, for redirects and `$server_name`.
pub fn primary_name(view: View<'_>, host_name: &str) -> Vec<u8> {
    let word = view
        .own("server_name")
        .and_then(|entry| entry.arguments.first());
    let text = match word.map(|word| word.text.as_str()) {
        Some(text) if text.starts_with('~') => text.to_owned(),
        Some(text) => text.to_ascii_lowercase(),
        None => String::new(),
    };
    match text.as_str() {
        "$hostname" => host_name.as_bytes().to_vec(),
        _ => text.strip_prefix('.').unwrap_or(&text).as_bytes().to_vec(),
    }
}

impl NameMatch {
    /// Reads an argument of the `server_name` at `place`.
    fn read<S>(text: &str, place: &str, builder: &mut Builder<'_, S>) -> Result<Self, Complaint> {
        let invalid = || format!("server name \"{text}\" is invalid");
        if let Some(pattern) = text.strip_prefix('~') {
            if pattern.is_empty() {
                return Err(format!("empty regex in server name \"{text}\"").into());
            }
            let case = Case::of_server_name(pattern);
            let pattern = Pattern::compile(pattern, case, place, &mut builder.variables)?;
            return Ok(NameMatch::Pattern(Arc::new(pattern)));
        }
        let is_cut = text.starts_with('*') && (text.len() < 3 || !text.starts_with("*."));
        if is_cut || text == "." {
            return Err(invalid().into());
        }
        let lower = text.to_ascii_lowercase();
        let stars = lower.matches('*').count();
        // A leading dot comes first in nginx too: behind it, a star is a letter.
        let is_wildcard =
            lower.starts_with("*.") || lower.starts_with('.') || lower.ends_with(".*");
        if lower.contains("..") || stars > 1 || (stars == 1 && !is_wildcard) {
            return Ok(NameMatch::Invalid(text.to_owned()));
        }
        if let Some(rest) = lower.strip_prefix("*.") {
            return Ok(NameMatch::Leading(format!(".{rest}").into_bytes()));
        }
        match lower.as_str() {
            _ if lower.starts_with('.') => Ok(NameMatch::Both(lower.into_bytes())),
            _ if lower.ends_with(".*") => {
                let name = lower.strip_suffix('*').unwrap_or(&lower);
                Ok(NameMatch::Trailing(name.as_bytes().to_vec()))
            }
            "$hostname" => Ok(NameMatch::Exact(builder.host_name.clone().into_bytes())),
            _ => Ok(NameMatch::Exact(lower.into_bytes())),
        }
    }

    /// Whether it is no name.
    pub fn is_invalid(&self) -> bool {
        matches!(self, NameMatch::Invalid(_))
    }

    /// The name in the syntax of the configuration.
    pub fn text(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            NameMatch::Exact(name) | NameMatch::Both(name) => text(name),
            NameMatch::Leading(name) => format!("*{}", text(name)),
            NameMatch::Trailing(name) => format!("{}*", text(name)),
            NameMatch::Pattern(pattern) => format!("~{}", pattern.regex.pattern()),
            NameMatch::Invalid(name) => name.clone(),
        }
    }
}

impl<T: Copy> NameTable<T> {
    /// Adds a name. `false`: another block of this address already has it and keeps it.
    pub fn add(&mut self, name: &NameMatch, server: T) -> bool {
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
            NameMatch::Invalid(_) => true,
        }
    }

    /// Prepares for look-ups; called once, after the last name was added.
    pub fn finish(&mut self, purpose: Purpose) {
        self.patterns.finish(purpose);
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
    /// A regular expression had no result.
    pub fn find<M: Matcher>(&self, host: &[u8], matcher: &M) -> Result<Option<T>, Undecided> {
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
        self.patterns.first(matcher, host)
    }
}

fn insert<V>(table: &mut KeyMap<V>, name: &[u8], value: V) -> bool {
    let is_free = !table.contains_key(name);
    if is_free {
        table.insert(name.into(), value);
    }
    is_free
}
