//! What the directives in force in a location add.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Context, Entry, View, value};
use turnpike_http::plan::Builder;
use turnpike_http::variables::Template;

/// Everything that a location adds to a response.
pub(super) struct Added {
    pub(super) expires: Option<Expires>,
    pub(super) fields: Vec<Arc<Field>>,
}

/// Everything that a location adds behind a body.
pub(super) struct Trailers {
    pub(super) fields: Vec<Arc<Field>>,
}

/// One `add_header` or `add_trailer`.
pub(super) struct Field {
    pub(super) name: Box<[u8]>,
    pub(super) kind: Kind,
    pub(super) value: Template,
    pub(super) always: bool,
}

/// How a field is put into a response: a few have a place of their own there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    LastModified,
    EntityTag,
    CacheControl,
    Other,
}

/// `expires`.
pub(super) enum Expires {
    Fixed(Expiry),
    /// Read at each response; whether `modified` stands before it.
    Variable(Template, bool),
}

/// When a response expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expiry {
    Off,
    Epoch,
    Max,
    /// So many seconds from now.
    Access(i64),
    /// So many seconds from the last modification.
    Modified(i64),
    /// When the clock next shows so many seconds after midnight.
    Daily(i64),
}

/// Fields compiled so far, by directive: locations that inherit them share them.
#[derive(Default)]
struct Compiled(HashMap<*const Entry, Arc<Field>>);

impl Added {
    pub(super) fn read(view: View<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        let fields = fields(view, "add_header", "add_header_inherit", builder)?;
        let expires = expires(view, builder)?;
        Ok(Self { expires, fields })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.expires.is_none() && self.fields.is_empty()
    }
}

impl Trailers {
    pub(super) fn read(view: View<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        let fields = fields(view, "add_trailer", "add_trailer_inherit", builder)?;
        Ok(Self { fields })
    }
}

/// The fields of the directives in force.
fn fields(
    view: View<'_>,
    name: &str,
    inherit: &str,
    builder: &mut Builder<'_>,
) -> Result<Vec<Arc<Field>>, ConfError> {
    let mut entries = Vec::new();
    collect(view, name, inherit, &mut entries);
    let fields = entries.into_iter();
    fields.map(|entry| field(view, entry, builder)).collect()
}

/// The directives in force: the one named `inherit` says which outer ones are.
fn collect<'a>(view: View<'a>, name: &str, inherit: &str, entries: &mut Vec<&'a Entry>) {
    entries.extend(view.own_all(name));
    let own = view.own(name).is_some();
    let inherits = match view.choice(inherit) {
        "off" => false,
        "merge" => true,
        _ => !own,
    };
    if let Some(parent) = view.parent()
        && inherits
        && parent.context() != Context::Main
    {
        collect(parent, name, inherit, entries);
    }
}

fn field(
    view: View<'_>,
    entry: &Entry,
    builder: &mut Builder<'_>,
) -> Result<Arc<Field>, ConfError> {
    let key: *const Entry = entry;
    if let Some(field) = builder.store::<Compiled>().0.get(&key) {
        return Ok(Arc::clone(field));
    }
    let always = match entry.arguments.get(2).map(|word| word.text.as_str()) {
        None => false,
        Some("always") => true,
        Some(other) => {
            let message = format!("invalid parameter \"{other}\"");
            return Err(view.error(entry.span, message));
        }
    };
    let bytes = |index: usize| turnpike_conf::bytes_of(entry.argument(index));
    let name = bytes(0);
    let kind = if name.eq_ignore_ascii_case(b"Last-Modified") {
        Kind::LastModified
    } else if name.eq_ignore_ascii_case(b"ETag") {
        Kind::EntityTag
    } else if name.eq_ignore_ascii_case(b"Cache-Control") {
        Kind::CacheControl
    } else {
        Kind::Other
    };
    let field = Arc::new(Field {
        name: name.into(),
        kind,
        value: builder.template(view, entry, &turnpike_wire::message::unfold(&bytes(1)))?,
        always,
    });
    builder
        .store::<Compiled>()
        .0
        .insert(key, Arc::clone(&field));
    Ok(field)
}

fn expires(view: View<'_>, builder: &mut Builder<'_>) -> Result<Option<Expires>, ConfError> {
    let Some(entry) = view.nearest("expires") else {
        return Ok(None);
    };
    let refused = |words: &str| view.error(entry.span, format!("\"expires\" directive {words}"));
    let (text, modified) = match &*entry.arguments {
        [text] => (text, false),
        [word, text] if word.text == "modified" => (text, true),
        _ => return Err(refused("invalid value")),
    };
    let template = builder.template(view, entry, &text.bytes())?;
    if template.constant().is_none() {
        return Ok(Some(Expires::Variable(template, modified)));
    }
    match Expiry::parse(&text.text, modified).map_err(refused)? {
        Expiry::Off => Ok(None),
        expiry => Ok(Some(Expires::Fixed(expiry))),
    }
}

impl Expiry {
    /// Reads what `expires` is given.
    ///
    /// # Errors
    /// nginx's words, which stand behind `"expires" directive`.
    pub(super) fn parse(text: &str, modified: bool) -> Result<Self, &'static str> {
        const DAY_S: u64 = 24 * 60 * 60;
        match text {
            "epoch" if !modified => return Ok(Self::Epoch),
            "max" if !modified => return Ok(Self::Max),
            "off" if !modified => return Ok(Self::Off),
            _ => {}
        }
        let seconds = |text| value::seconds(text).ok_or("invalid value");
        if let Some(time) = text.strip_prefix('@') {
            if modified {
                return Err("daily time cannot be used with \"modified\" parameter");
            }
            return match seconds(time)? {
                time if time > DAY_S => Err("daily time value must be less than 24 hours"),
                time => Ok(Self::Daily(time as i64)),
            };
        }
        let seconds = match text.strip_prefix('-') {
            Some(rest) => -(seconds(rest)? as i64),
            None => seconds(text.strip_prefix('+').unwrap_or(text))? as i64,
        };
        Ok(if modified {
            Self::Modified(seconds)
        } else {
            Self::Access(seconds)
        })
    }
}

/// `[modified] time | @time | epoch | max | off`, or text with variables.
pub(super) fn check_expires(name: &str, words: &[&str]) -> Result<(), Complaint> {
    let (text, modified) = match words {
        [text] => (*text, false),
        ["modified", text] => (*text, true),
        _ => return Err(format!("\"{name}\" directive invalid value").into()),
    };
    if text.contains('$') {
        return Ok(());
    }
    let parsed = Expiry::parse(text, modified);
    parsed
        .map(|_| ())
        .map_err(|words| format!("\"{name}\" directive {words}").into())
}

/// `name value [always]`.
pub(super) fn check_field(_: &str, words: &[&str]) -> Result<(), Complaint> {
    match words.get(2) {
        None | Some(&"always") => Ok(()),
        Some(other) => Err(format!("invalid parameter \"{other}\"").into()),
    }
}
