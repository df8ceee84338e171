//! Names with wildcards, looked up as nginx looks them up: the name itself, then the longest
//! wildcard in front, then the longest at the end. It compiles no pattern and knows no request.

use turnpike_conf::Complaint;
use turnpike_plan::keys::KeyMap;

/// Values by name.
#[derive(Clone)]
pub(crate) struct Hostnames<T> {
    exact: KeyMap<T>,
    /// `*.example.com` under `.example.com`.
    leading: KeyMap<T>,
    /// `www.example.*` under `www.example.`.
    trailing: KeyMap<T>,
}

/// Why a name cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The text is no name, nor a wildcard at one of its ends.
    Invalid,
    /// The name is there already.
    Conflict,
}

impl Refusal {
    /// What is wrong with the name that was to be added, in nginx's words.
    pub(crate) fn complaint(self, name: &str) -> Complaint {
        match self {
            Self::Invalid => format!("invalid hostname or wildcard \"{name}\"").into(),
            Self::Conflict => format!("conflicting parameter \"{name}\"").into(),
        }
    }
}

/// What a name stands for.
enum Form<'a> {
    Exact(&'a [u8]),
    Leading(&'a [u8]),
    Trailing(&'a [u8]),
    /// `.example.com`: the name after the dot, and all that end with it.
    Both(&'a [u8]),
}

impl<T> Default for Hostnames<T> {
    fn default() -> Self {
        Self {
            exact: KeyMap::default(),
            leading: KeyMap::default(),
            trailing: KeyMap::default(),
        }
    }
}

impl<T: Clone> Hostnames<T> {
    /// Adds a text that stands for nothing but itself, case aside.
    pub(crate) fn add_exact(&mut self, text: &[u8], value: T) -> Result<(), Refusal> {
        insert(&mut self.exact, text, value)
    }

    /// Adds a name that may have a wildcard at its start or end.
    pub(crate) fn add(&mut self, name: &[u8], value: T) -> Result<(), Refusal> {
        match form(name).ok_or(Refusal::Invalid)? {
            Form::Exact(name) => insert(&mut self.exact, name, value),
            Form::Leading(end) => insert(&mut self.leading, end, value),
            Form::Trailing(start) => insert(&mut self.trailing, start, value),
            Form::Both(end) => {
                insert(&mut self.exact, &end[1..], value.clone())?;
                insert(&mut self.leading, end, value)
            }
        }
    }

    /// The value for a lower-case name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&T> {
        if let Some(value) = self.exact.get(name) {
            return Some(value);
        }
        let dots = || (0..name.len()).filter(|at| name[*at] == b'.');
        if !self.leading.is_empty() {
            let found = dots()
                .filter(|at| *at > 0)
                .find_map(|at| self.leading.get(&name[at..]));
            if found.is_some() {
                return found;
            }
        }
        if self.trailing.is_empty() {
            return None;
        }
        dots().rev().find_map(|at| self.trailing.get(&name[..=at]))
    }

    /// Whether there is no name.
    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.leading.is_empty() && self.trailing.is_empty()
    }
}

fn insert<T>(table: &mut KeyMap<T>, name: &[u8], value: T) -> Result<(), Refusal> {
    let name = name.to_ascii_lowercase().into_boxed_slice();
    if table.contains_key(&name) {
        return Err(Refusal::Conflict);
    }
    table.insert(name, value);
    Ok(())
}

fn form(name: &[u8]) -> Option<Form<'_>> {
    let plain = |rest: &[u8]| {
        let empty_label = rest.windows(2).any(|pair| pair == b"..");
        !empty_label && !rest.contains(&b'*') && !rest.contains(&0)
    };
    let (form, rest) = match name {
        [b'*', end @ ..] if end.len() > 1 && end[0] == b'.' => (Form::Leading(end), end),
        [b'.', _, ..] => (Form::Both(name), name),
        [start @ .., b'*'] if start.len() > 1 && start.ends_with(b".") => {
            (Form::Trailing(start), start)
        }
        name => (Form::Exact(name), name),
    };
    plain(rest).then_some(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_wins() {
        let mut names = Hostnames::default();
        for (name, value) in [
            ("example.com", 1),
            ("*.example.com", 2),
            ("*.a.Example.com", 3),
            ("www.*", 4),
            (".example.org", 5),
        ] {
            names.add(name.as_bytes(), value).expect(name);
        }
        let cases = [
            ("example.com", Some(1)),
            ("b.example.com", Some(2)),
            ("b.a.example.com", Some(3)),
            ("www.example.com", Some(2)),
            ("www.net", Some(4)),
            ("example.org", Some(5)),
            ("x.example.org", Some(5)),
            ("net", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(names.find(name.as_bytes()).copied(), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let mut names = Hostnames::default();
        let cases = [
            ("a.b", Ok(())),
            ("A.B", Err(Refusal::Conflict)),
            (".a.b", Err(Refusal::Conflict)),
            ("a.*.b", Err(Refusal::Invalid)),
            ("*a.b", Err(Refusal::Invalid)),
            ("a..b", Err(Refusal::Invalid)),
            ("*.*", Err(Refusal::Invalid)),
            ("*.c", Ok(())),
            ("*.c", Err(Refusal::Conflict)),
        ];
        for (name, expected) in cases {
            assert_eq!(names.add(name.as_bytes(), ()), expected, "{name}");
        }
    }
}
