//! What the directives of this family mean for a location.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Context, Entry, View};
use turnpike_http::phase::{FilterPlace, HandlerPlace};
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::variables::Template;

use super::handler::{RequestFields, ResponseFields};

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let of_responses = ["more_set_headers", "more_clear_headers"];
    let changes = read(view, builder, of_responses)?;
    if !changes.is_empty() {
        draft.add_filter(FilterPlace::Headers, Arc::new(ResponseFields(changes)));
    }
    let of_requests = ["more_set_input_headers", "more_clear_input_headers"];
    let changes = read(view, builder, of_requests)?;
    if !changes.is_empty() {
        draft.add_handler(HandlerPlace::Rewrite, Arc::new(RequestFields(changes)));
    }
    Ok(())
}

/// What one directive changes.
pub(super) struct Changes {
    /// Which messages are meant.
    pub(super) scope: Scope,
    pub(super) fields: Vec<Change>,
}

/// Which messages a directive is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scope {
    /// None: all.
    pub(super) types: Vec<Box<[u8]>>,
    /// None: all.
    pub(super) statuses: Vec<u16>,
    /// Only fields that are there.
    pub(super) replaces: bool,
    /// Beside fields of that name.
    pub(super) adds: bool,
}

/// The change of a field.
pub(super) struct Change {
    pub(super) name: Box<[u8]>,
    /// Whether the name is the beginning of names.
    pub(super) is_prefix: bool,
    /// An empty value takes the field away.
    pub(super) value: Template,
}

/// The directives of both names, those of outer levels first.
fn read(
    view: View<'_>,
    builder: &mut Builder<'_>,
    names: [&str; 2],
) -> Result<Vec<Changes>, ConfError> {
    let mut entries = Vec::new();
    collect(view, names, &mut entries);
    let entries = entries.into_iter();
    entries
        .map(|entry| {
            let words: Vec<&str> = entry.arguments.iter().map(|word| &*word.text).collect();
            let name = entry.row.name;
            let parsed = parse(name, &words).map_err(|words| view.error(entry.span, words))?;
            let (scope, fields) = parsed;
            let fields = fields.into_iter().map(|(name, value)| {
                let bytes = turnpike_conf::bytes_of(name);
                let prefix = bytes.strip_suffix(b"*");
                Ok(Change {
                    name: prefix.unwrap_or(&bytes).into(),
                    is_prefix: prefix.is_some(),
                    value: builder.template(view, entry, &turnpike_conf::bytes_of(value))?,
                })
            });
            Ok(Changes {
                scope,
                fields: fields.collect::<Result<_, _>>()?,
            })
        })
        .collect()
}

fn collect<'a>(view: View<'a>, names: [&str; 2], entries: &mut Vec<&'a Entry>) {
    if let Some(parent) = view.parent()
        && parent.context() != Context::Main
    {
        collect(parent, names, entries);
    }
    entries.extend(view.own_of(&names));
}

/// What the server itself answers for: where a message ends, and what is of the connection.
const REFUSED: &[&str] = &[
    "connection",
    "content-length",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Fields of responses that are sent once.
const SINGLE: &[&str] = &[
    "content-type",
    "date",
    "etag",
    "last-modified",
    "location",
    "server",
];

/// Fields as they are written.
type NamesAndValues<'a> = Vec<(&'a str, &'a str)>;

/// A directive's scope, and the names and values of its fields.
///
/// # Errors
/// What is wrong with its arguments, as the module says it.
pub(super) fn parse<'a>(
    directive: &str,
    words: &[&'a str],
) -> Result<(Scope, NamesAndValues<'a>), Complaint> {
    let (sets, is_input) = (directive.contains("_set_"), directive.contains("_input_"));
    let mut scope = Scope::default();
    let mut fields = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut list = || {
            let list = words.next().map(|list| list.split_ascii_whitespace());
            list.ok_or_else(|| format!("{directive}: option {word} takes an argument."))
        };
        match *word {
            "-t" => scope
                .types
                .extend(list()?.map(|name| name.as_bytes().into())),
            "-s" if !is_input => {
                for status in list()? {
                    let number = status.parse().ok().filter(|number| *number > 0);
                    let invalid = || format!("{directive}: invalid status \"{status}\"");
                    scope.statuses.push(number.ok_or_else(invalid)?);
                }
            }
            "-r" if is_input && sets => scope.replaces = true,
            "-a" if !is_input && sets => scope.adds = true,
            option if option.starts_with('-') => {
                return Err(format!("{directive}: invalid option name: \"{option}\"").into());
            }
            field if sets => {
                let (name, value) = field.split_once(':').unwrap_or((field, ""));
                fields.push((name.trim(), value.trim_start()));
            }
            name => fields.push((name.trim_end_matches(':').trim(), "")),
        }
    }
    for (name, _) in &fields {
        check_name(directive, name, scope.adds)?;
    }
    Ok((scope, fields))
}

fn check_name(directive: &str, name: &str, adds: bool) -> Result<(), Complaint> {
    let plain = name.strip_suffix('*').unwrap_or(name);
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !plain.bytes().all(is_token) {
        return Err(format!("{directive}: invalid header name \"{name}\"").into());
    }
    let is_in = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(name));
    if is_in(REFUSED) {
        return Err(format!(
            "{directive}: \"{name}\" belongs to the protocol and cannot be changed, remove it here"
        )
        .into());
    }
    if adds && is_in(SINGLE) {
        return Err(format!("{directive}: can not append builtin headers \"{name}\"").into());
    }
    Ok(())
}

/// What the module checks of the arguments.
pub(super) fn check(name: &str, words: &[&str]) -> Result<(), Complaint> {
    parse(name, words).map(|_| ())
}
