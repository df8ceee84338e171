//! Copies of answers that clients get without a lane: families that answer from a store note which
//! item of it an answer is, and withdraw the copies of what changes there. Nothing is copied here.

use std::sync::Arc;

use turnpike_cache::zone::CopyHolder;
use turnpike_express::{Derivation, Publisher, Source, Withdrawn};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::Builder;
use turnpike_http::rooms::Rooms;
use turnpike_http::variables::{Template, VariableTable};
use turnpike_plan::rooms::Room;

/// The store of all files: its items are their paths. Other stores are zones, by their names; one
/// of this name would be withdrawn with the files, and no more.
const FILES: &[u8] = b"/";

/// The keeper of copies, for the locations of a plan.
#[derive(Default)]
struct Offered(Option<Arc<Copies>>);

/// Where copies are kept.
pub(crate) struct Copies(Arc<Publisher>);

impl Copies {
    /// Has the locations of a plan note what their answers are: copies are kept there.
    pub(crate) fn offer(builder: &mut Builder<'_>, publisher: &Arc<Publisher>) -> Arc<Copies> {
        let copies = Arc::new(Copies(publisher.clone()));
        builder.store::<Offered>().0 = Some(copies.clone());
        copies
    }

    /// Where copies of a plan's answers are kept; `None`: nobody keeps any. To be asked for by
    /// locations, after the directives of the http level were read.
    pub(crate) fn of(builder: &mut Builder<'_>) -> Option<Arc<Copies>> {
        builder.store::<Offered>().0.clone()
    }

    /// How often copies were withdrawn; to be read before what is answered is looked up.
    pub(crate) fn withdrawals(&self) -> u64 {
        self.0.withdrawals()
    }

    /// The copies of what was made from a file are sent no more.
    pub(crate) fn withdraw_file(&self, path: &[u8]) {
        self.0.withdraw(Withdrawn::Item(FILES, path));
    }

    /// The same of all files.
    pub(crate) fn withdraw_files(&self) {
        self.0.withdraw(Withdrawn::Store(FILES));
    }
}

impl CopyHolder for Copies {
    fn withdraw(&self, zone: &str, key: Option<&[u8]>) {
        self.0.withdraw(match key {
            Some(key) => Withdrawn::Item(zone.as_bytes(), key),
            None => Withdrawn::Store(zone.as_bytes()),
        });
    }
}

/// What the answer of an exchange was made from, as far as it was noted.
#[derive(Default)]
pub(crate) struct Original {
    /// The first that was noted.
    derivation: Option<Derivation>,
    /// Whether there was another one.
    is_mixed: bool,
    /// The path, where it is a file.
    path: Vec<u8>,
    /// Until when it is as it was answered, in Unix milliseconds; 0: until it is withdrawn.
    until_ms: u64,
}

impl Room for Original {
    fn clear(&mut self) {
        self.path.clear();
        *self = Original {
            path: std::mem::take(&mut self.path),
            ..Original::default()
        };
    }
}

impl Original {
    /// Notes that the answer is what a zone has stored under a key, as it is until that time in
    /// Unix milliseconds. `withdrawals` was read before it was looked up.
    pub(crate) fn note_stored(
        rooms: &mut Rooms,
        withdrawals: u64,
        (zone, key): (&str, &[u8]),
        until_ms: u64,
    ) {
        let source = Source::new(zone.as_bytes(), key);
        let original: &mut Original = rooms.get_mut();
        original.note(Derivation {
            source,
            withdrawals,
        });
        original.until_ms = until_ms;
    }

    /// Notes that the answer is a file. `withdrawals` was read before it was opened.
    pub(crate) fn note_file(rooms: &mut Rooms, withdrawals: u64, path: &[u8]) {
        let original: &mut Original = rooms.get_mut();
        original.note(Derivation {
            source: Source::new(FILES, path),
            withdrawals,
        });
        original.path.clear();
        original.path.extend_from_slice(path);
    }

    /// What was noted of an exchange; `None`: nothing.
    pub(crate) fn noted(exchange: &Exchange) -> Option<&Original> {
        let original: Option<&Original> = exchange.rooms.get();
        original.filter(|original| original.derivation.is_some())
    }

    /// What withdraws the answer.
    ///
    /// # Errors
    /// More than one item: a copy can be withdrawn for one only.
    pub(crate) fn derivation(&self) -> Result<Option<Derivation>, Mixed> {
        if self.is_mixed {
            Err(Mixed)
        } else {
            Ok(self.derivation)
        }
    }

    /// The path of the file that it is; `None`: it is none.
    pub(crate) fn path(&self) -> Option<&[u8]> {
        (!self.path.is_empty()).then_some(&*self.path)
    }

    /// Until when it is as it was answered, in Unix milliseconds; `None`: until it is withdrawn.
    pub(crate) fn until_ms(&self) -> Option<u64> {
        (self.until_ms != 0).then_some(self.until_ms)
    }

    fn note(&mut self, derivation: Derivation) {
        match self.derivation {
            None => self.derivation = Some(derivation),
            Some(_) => self.is_mixed = true,
        }
    }
}

/// An answer was made from more than one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mixed;

/// Variables whose values follow from the gate, host, method, path and query of a request.
const SAME_FOR_ALL: &[&str] = &[
    "args",
    "document_uri",
    "host",
    "http_host",
    "is_args",
    "proxy_host",
    "proxy_port",
    "query_string",
    "request_method",
    "request_uri",
    "scheme",
    "server_addr",
    "server_name",
    "server_port",
    "uri",
];

/// Whether a text has the same value for all requests with one host, method, path and query.
pub(crate) fn is_same_for_all(template: &Template, variables: &VariableTable) -> bool {
    names_same_for_all(template.text(), |name| variables.is_prefixed(name))
}

fn names_same_for_all(text: &[u8], is_prefixed: impl Fn(&str) -> bool) -> bool {
    names(text).all(|name| is_named_same_for_all(&name, &is_prefixed))
}

fn is_named_same_for_all(name: &str, is_prefixed: impl Fn(&str) -> bool) -> bool {
    SAME_FOR_ALL.contains(&name) || (name.starts_with("arg_") && is_prefixed(name))
}

/// Whether a text has the same value for all such requests that have neither cookies nor passwords.
pub(crate) fn is_same_without_cookies(template: &Template, variables: &VariableTable) -> bool {
    names_same_without_cookies(template.text(), |name| variables.is_prefixed(name))
}

fn names_same_without_cookies(text: &[u8], is_prefixed: impl Fn(&str) -> bool) -> bool {
    names(text).all(|name| {
        is_named_same_for_all(&name, &is_prefixed)
            || (name.starts_with("cookie_") && is_prefixed(&name))
            || matches!(&*name, "http_cookie" | "http_authorization")
    })
}

/// The names of the variables in a text, in lower case; one that is no name is empty.
fn names(text: &[u8]) -> impl Iterator<Item = String> + '_ {
    let rests = text.split(|byte| *byte == b'$').skip(1);
    rests.map(|rest| {
        let rest = rest.strip_prefix(b"{").unwrap_or(rest);
        let is_end = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'_';
        let end = rest.iter().position(is_end).unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text, whether it is the same for all requests, and for all without cookies.
    const TEXTS: &[(&str, bool, bool)] = &[
        ("", true, true),
        ("constant", true, true),
        ("$scheme$proxy_host$request_uri", true, true),
        ("${host}:$ARG_page/$uri$is_args$args", true, true),
        ("$arg_", true, true),
        ("$cookie_user", false, true),
        ("$arg_map", false, false),
        ("$cookie_map", false, false),
        ("$http_authorization", false, true),
        ("$http_accept", false, false),
        ("$host$remote_addr", false, false),
        ("$1", false, false),
        ("$uri$", false, false),
        ("$my_host", false, false),
    ];

    #[test]
    fn texts_are_the_same_where_their_variables_are() {
        for (text, for_all, without_cookies) in TEXTS {
            let is_prefixed = |name: &str| !name.ends_with("_map");
            let found = [
                names_same_for_all(text.as_bytes(), is_prefixed),
                names_same_without_cookies(text.as_bytes(), is_prefixed),
            ];
            assert_eq!(found, [*for_all, *without_cookies], "{text}");
        }
    }
}
