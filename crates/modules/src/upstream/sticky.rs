//! `sticky`: requests of one session go to one server.

use std::fmt::Write as _;
use std::sync::Arc;

use turnpike_conf::{Complaint, Entry, value};
use turnpike_http::exchange::Exchange;
use turnpike_http::variables::{Template, VariableId};
use turnpike_upstream::Peer;

use super::sessions::Sessions;
use crate::common::cookie_expiry::Expires;
use crate::common::zone;

/// A plan in the making.
type Builder<'e> = turnpike_plan::builder::Builder<'e, Exchange>;

/// Ten years, in seconds: `expires=max`.
const MAX_AGE_S: u64 = 315_360_000;

/// How long a session is remembered without a word, in milliseconds.
const SESSION_MS: u64 = 600_000;

/// Least size of a zone of sessions: eight pages, nginx's.
const ZONE_BYTES_MIN: u64 = 8 * 4096;

/// The way in which requests are bound.
pub(crate) struct Sticky {
    /// Variables that may hold the server's identity, or the session's; the first that is not
    /// empty counts.
    lookup: Vec<VariableId>,
    cookie: Option<Cookie>,
    learn: Option<Learn>,
}

/// The cookie that is set.
struct Cookie {
    name: String,
    domain: Option<Template>,
    path: Option<String>,
    expires: Option<Expires>,
    http_only: bool,
    secure: bool,
    same_site: Option<Template>,
}

/// Sessions that the servers begin themselves.
struct Learn {
    create: Vec<VariableId>,
    sessions: Arc<Sessions>,
    /// Learns from the head of a response already.
    from_header: bool,
}

impl Sticky {
    /// Reads the directive.
    ///
    /// # Errors
    /// nginx's message, without its place.
    pub(super) fn read(entry: &Entry, builder: &mut Builder<'_>) -> Result<Sticky, Complaint> {
        let words: Vec<&str> = entry
            .arguments
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        match words.as_slice() {
            ["cookie", name, parameters @ ..] => cookie(name, parameters, builder),
            ["route", variables @ ..] => route(variables, builder),
            ["learn", parameters @ ..] => learn(parameters, builder),
            [other, ..] => Err(format!("unknown parameter \"{other}\"").into()),
            [] => Err("invalid number of arguments in \"sticky\" directive".into()),
        }
    }

    /// The identity of the server that a request is bound to.
    pub(super) fn server(&self, exchange: &Exchange) -> Option<Vec<u8>> {
        let found = first(exchange, &self.lookup)?;
        match &self.learn {
            None => Some(found),
            Some(learn) => learn.sessions.server(&found, exchange.lane.clock.now_ms()),
        }
    }

    /// The head of a response of this peer goes to the client.
    pub(super) fn answered(&self, exchange: &mut Exchange, peer: &Peer) {
        if let Some(cookie) = &self.cookie {
            let value = cookie.value(exchange, peer.sticky_id());
            exchange
                .response
                .fields_mut()
                .add(b"Set-Cookie", value.as_bytes());
        }
        if self.learn.as_ref().is_some_and(|learn| learn.from_header) {
            self.learn(exchange, peer);
        }
    }

    /// A response of this peer was passed on whole.
    pub(super) fn ended(&self, exchange: &Exchange, peer: &Peer) {
        if self.learn.as_ref().is_some_and(|learn| !learn.from_header) {
            self.learn(exchange, peer);
        }
    }

    fn learn(&self, exchange: &Exchange, peer: &Peer) {
        let Some(learn) = &self.learn else { return };
        let now_ms = exchange.lane.clock.now_ms();
        let server = peer.sticky_id();
        if let Some(session) = first(exchange, &learn.create) {
            learn.sessions.begin(&session, server, now_ms);
        } else if let Some(session) = first(exchange, &self.lookup) {
            learn.sessions.go_on(&session, server, now_ms);
        }
    }
}

impl Cookie {
    fn value(&self, exchange: &Exchange, server: &str) -> String {
        let mut text = format!("{}={server}", self.name);
        // Writing to a String cannot fail.
        if let Some(expires) = self.expires {
            let date = expires.date(exchange.lane.clock.unix_seconds());
            let age_s = match expires {
                Expires::Max => MAX_AGE_S,
                Expires::Seconds(seconds) => seconds,
            };
            let _ = write!(text, "; expires={date}; max-age={age_s}");
        }
        let evaluated = |template: &Option<Template>| {
            let value = template.as_ref().map(|template| template.value(exchange));
            String::from_utf8_lossy(&value.unwrap_or_default()).into_owned()
        };
        let domain = evaluated(&self.domain);
        if !domain.is_empty() {
            let _ = write!(text, "; domain={domain}");
        }
        if self.http_only {
            text.push_str("; httponly");
        }
        if self.secure {
            text.push_str("; secure");
        }
        let mut same_site = evaluated(&self.same_site);
        if !same_site.is_empty() {
            if !is_same_site(&same_site) {
                same_site = "strict".to_owned();
            }
            let _ = write!(text, "; samesite={same_site}");
        }
        if let Some(path) = &self.path {
            let _ = write!(text, "; path={path}");
        }
        text
    }
}

fn is_same_site(text: &str) -> bool {
    ["strict", "lax", "none"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(text))
}

/// The first of these variables that is not empty.
fn first(exchange: &Exchange, variables: &[VariableId]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    variables.iter().find_map(|id| {
        value.clear();
        let found = exchange.variable(*id, &mut value) && !value.is_empty();
        found.then(|| std::mem::take(&mut value))
    })
}

fn cookie(name: &str, parameters: &[&str], builder: &mut Builder<'_>) -> Result<Sticky, Complaint> {
    if name.is_empty() {
        return Err(complaint("empty cookie name").into());
    }
    let mut cookie = Cookie {
        name: name.to_owned(),
        domain: None,
        path: None,
        expires: None,
        http_only: false,
        secure: false,
        same_site: None,
    };
    for parameter in parameters {
        cookie_parameter(parameter, &mut cookie, builder)?;
    }
    let variable = builder.variables.reference(&format!("cookie_{name}"));
    Ok(Sticky {
        lookup: vec![variable],
        cookie: Some(cookie),
        learn: None,
    })
}

fn cookie_parameter(
    parameter: &str,
    cookie: &mut Cookie,
    builder: &mut Builder<'_>,
) -> Result<(), Complaint> {
    let twice = |name: &str| complaint(&format!("parameter \"{name}\" is duplicate"));
    let none = |name: &str| complaint(&format!("no value for \"{name}\""));
    let (name, given) = match parameter.split_once('=') {
        Some((name, given)) => (name, Some(given)),
        None => (parameter, None),
    };
    match (name, given) {
        ("domain", Some(_)) if cookie.domain.is_some() => return Err(twice(name).into()),
        ("path", Some(_)) if cookie.path.is_some() => return Err(twice(name).into()),
        ("expires", Some(_)) if cookie.expires.is_some() => return Err(twice(name).into()),
        ("samesite", Some(_)) if cookie.same_site.is_some() => return Err(twice(name).into()),
        ("httponly", None) if cookie.http_only => return Err(twice(name).into()),
        ("secure", None) if cookie.secure => return Err(twice(name).into()),
        ("domain" | "path", Some("")) => return Err(none(name).into()),
        ("domain", Some(given)) => {
            let text = turnpike_conf::bytes_of(given);
            cookie.domain = Some(Template::compile(&text, &mut builder.variables)?);
        }
        ("path", Some(given)) => cookie.path = Some(given.to_owned()),
        ("expires", Some("max")) => cookie.expires = Some(Expires::Max),
        ("expires", Some(given)) => {
            let invalid = || complaint("invalid \"expires\" parameter value");
            let seconds = value::seconds(given).ok_or_else(invalid)?;
            cookie.expires = Some(Expires::Seconds(seconds));
        }
        ("httponly", None) => cookie.http_only = true,
        ("secure", None) => cookie.secure = true,
        ("samesite", Some(given)) => {
            let text = turnpike_conf::bytes_of(given);
            let template = Template::compile(&text, &mut builder.variables)?;
            if template.constant().is_some() && !is_same_site(given) {
                return Err(complaint("invalid \"samesite\" parameter value").into());
            }
            cookie.same_site = Some(template);
        }
        _ => return Err(format!("unknown parameter \"{parameter}\"").into()),
    }
    Ok(())
}

fn route(variables: &[&str], builder: &mut Builder<'_>) -> Result<Sticky, Complaint> {
    let mut lookup = Vec::new();
    for variable in variables {
        let name = variable
            .strip_prefix('$')
            .ok_or_else(|| format!("invalid variable name \"{variable}\""))?;
        lookup.push(builder.variables.reference(name));
    }
    Ok(Sticky {
        lookup,
        cookie: None,
        learn: None,
    })
}

fn learn(parameters: &[&str], builder: &mut Builder<'_>) -> Result<Sticky, Complaint> {
    let (mut lookup, mut create) = (Vec::new(), Vec::new());
    let (mut declared, mut timeout_ms, mut from_header) = (None, None, false);
    for parameter in parameters {
        let (name, given) = match parameter.split_once('=') {
            Some((name, given)) => (name, Some(given)),
            None => (*parameter, None),
        };
        match (name, given) {
            ("zone", Some(_)) if declared.is_some() => {
                return Err(complaint("duplicate zone").into());
            }
            ("zone", Some(given)) => declared = Some(sessions_zone(given)?),
            ("timeout", Some(_)) if timeout_ms.is_some() => {
                return Err(complaint("duplicate timeout").into());
            }
            ("timeout", Some(given)) => {
                let time_ms = value::milliseconds(given).filter(|time_ms| *time_ms > 0);
                timeout_ms = Some(time_ms.ok_or_else(|| complaint("invalid timeout"))?);
            }
            ("create" | "lookup", Some(given)) => {
                let missing =
                    || complaint(&format!("missing variable in the \"{name}\" parameter"));
                let variable = given.strip_prefix('$').ok_or_else(missing)?;
                let id = builder.variables.reference(variable);
                if name == "create" {
                    &mut create
                } else {
                    &mut lookup
                }
                .push(id);
            }
            ("header", None) => from_header = true,
            _ => return Err(format!("unknown parameter \"{parameter}\"").into()),
        }
    }
    let missing = |name: &str| complaint(&format!("\"{name}\" parameter is not specified"));
    if lookup.is_empty() {
        return Err(missing("lookup").into());
    }
    if create.is_empty() {
        return Err(missing("create").into());
    }
    let (name, size_bytes) = declared.ok_or_else(|| missing("zone"))?;
    let timeout_ms = timeout_ms.unwrap_or(SESSION_MS);
    let identity = format!("{size_bytes}:{timeout_ms}");
    let make = || Sessions::new(size_bytes, timeout_ms);
    let sessions = zone::open(builder, "sticky", &name, &identity, make)?;
    Ok(Sticky {
        lookup,
        cookie: None,
        learn: Some(Learn {
            create,
            sessions,
            from_header,
        }),
    })
}

fn sessions_zone(given: &str) -> Result<(String, u64), Complaint> {
    let (name, size) = given
        .split_once(':')
        .ok_or_else(|| complaint("zone size is not specified"))?;
    if name.is_empty() {
        return Err(complaint("zone name is not specified").into());
    }
    let size_bytes = value::size(size).ok_or_else(|| complaint("invalid zone size"))?;
    if size_bytes < ZONE_BYTES_MIN {
        return Err(complaint("zone is too small").into());
    }
    Ok((name.to_owned(), size_bytes))
}

/// What nginx makes of a handler's short complaint.
fn complaint(what: &str) -> String {
    format!("\"sticky\" directive {what}")
}
