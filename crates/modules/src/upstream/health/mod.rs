//! `health_check` and `match`: active checks of the group that a location passes requests to.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Directive, Entry, View, bytes_of, value};
use turnpike_http::h1::origin::RequestLines;
use turnpike_http::plan::Builder;
use turnpike_http::regex::Regex;
use turnpike_upstream::{Asks, Check, CheckRules, CheckTls, Group};
use turnpike_wire::message::{RequestWriter as _, Version};

use super::background::{self, BackgroundTasks};
use super::handler::Upstream;
use super::matches::{self, Match};
use question::{Answer, HttpQuestion};

mod question;

/// A `match` block: every condition must hold.
#[derive(Default)]
pub(super) struct Conditions {
    statuses: Vec<Statuses>,
    fields: Vec<Field>,
    bodies: Vec<Body>,
    required: Vec<Required>,
}

/// `status`: one of these, or none of them.
struct Statuses {
    not: bool,
    ranges: Vec<(u16, u16)>,
}

/// `header`.
struct Field {
    name: Vec<u8>,
    wish: Expected,
}

enum Expected {
    Present,
    Absent,
    Is(Vec<u8>),
    IsNot(Vec<u8>),
    Like(Regex),
    Unlike(Regex),
}

/// A variable of `require`: those that an answer has without a client who asked.
enum Required {
    /// `$upstream_status`.
    Status,
    /// `$upstream_http_NAME`.
    Field(Vec<u8>),
    /// `$upstream_cookie_NAME`.
    Cookie(Vec<u8>),
}

/// `body`.
struct Body {
    not: bool,
    regex: Regex,
}

impl Conditions {
    /// What is wrong with an answer, as the log has it behind `while`.
    fn judge(&self, answer: &Answer<'_>) -> Result<(), &'static str> {
        let status = answer.status;
        let of = |wanted: &Statuses| {
            let mut ranges = wanted.ranges.iter();
            ranges.any(|(first, last)| (*first..=*last).contains(&status)) != wanted.not
        };
        if !self.statuses.iter().all(of) {
            return Err("checking status code");
        }
        if !self.fields.iter().all(|field| field.holds(answer)) {
            return Err("checking header");
        }
        // What is undecided is not good.
        let says = |body: &Body| body.regex.decide(answer.body) == Ok(!body.not);
        if !self.bodies.iter().all(says) {
            return Err("checking body");
        }
        if self.required.iter().all(|required| required.holds(answer)) {
            Ok(())
        } else {
            Err("checking required variables")
        }
    }
}

impl Required {
    /// The variable of that name; `None` where only a client's request would have it.
    fn of(name: &str) -> Option<Required> {
        if name == "upstream_status" {
            return Some(Required::Status);
        }
        let field = name.strip_prefix("upstream_http_").map(bytes_of);
        let cookie = name.strip_prefix("upstream_cookie_").map(bytes_of);
        field
            .map(Required::Field)
            .or_else(|| cookie.map(Required::Cookie))
    }

    /// Whether its value is neither empty nor "0".
    fn holds(&self, answer: &Answer<'_>) -> bool {
        let says = |value: &[u8]| !value.is_empty() && value != b"0";
        match self {
            Required::Status => true,
            Required::Field(wanted) => {
                let mut fields = answer.fields.iter();
                let found = fields.find(|(name, _)| is_named(name, wanted));
                found.is_some_and(|(_, value)| says(value))
            }
            Required::Cookie(wanted) => {
                let cookies = answer.fields.values(b"Set-Cookie");
                let mut values = cookies.filter_map(|text| {
                    let pair = text.split(|byte| *byte == b';').next()?;
                    let at = pair.iter().position(|byte| *byte == b'=')?;
                    (pair[..at].trim_ascii() == wanted).then(|| pair[at + 1..].trim_ascii())
                });
                values.next().is_some_and(says)
            }
        }
    }
}

/// Whether a field has the name that a variable spells with underscores.
fn is_named(field: &[u8], variable: &[u8]) -> bool {
    let spelled = field.iter().map(|byte| match byte {
        b'-' => b'_',
        byte => byte.to_ascii_lowercase(),
    });
    spelled.eq(variable.iter().copied())
}

impl Field {
    fn holds(&self, answer: &Answer<'_>) -> bool {
        let value = answer.fields.value(&self.name);
        match (&self.wish, value) {
            (Expected::Present, value) => value.is_some(),
            (Expected::Absent, value) => value.is_none(),
            (Expected::Is(wanted), value) => value == Some(wanted.as_slice()),
            (Expected::IsNot(wanted), value) => value != Some(wanted.as_slice()),
            (Expected::Like(regex), value) => {
                value.is_some_and(|value| regex.decide(value) == Ok(true))
            }
            (Expected::Unlike(regex), value) => {
                value.is_none_or(|value| regex.decide(value) == Ok(false))
            }
        }
    }
}

impl Match for Conditions {
    fn add(&mut self, line: &Directive, place: &str) -> Result<(), Complaint> {
        let words: Vec<&str> = line
            .arguments
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        match (line.name.text.as_str(), words.as_slice()) {
            ("status", ["!", ranges @ ..]) => self.add_statuses(true, ranges),
            ("status", ranges) => self.add_statuses(false, ranges),
            ("header", ["!", name]) => self.add_field(name, Expected::Absent),
            ("header", [name]) => self.add_field(name, Expected::Present),
            ("header", [name, operator, wanted]) => {
                let wish = match *operator {
                    "=" => Expected::Is(bytes_of(wanted)),
                    "!=" => Expected::IsNot(bytes_of(wanted)),
                    "~" => Expected::Like(Regex::case_sensitive(wanted, place)?),
                    "!~" => Expected::Unlike(Regex::case_sensitive(wanted, place)?),
                    other => {
                        return Err(format!("invalid operator \"{other}\" in \"header\"").into());
                    }
                };
                self.add_field(name, wish)
            }
            ("body", [operator @ ("~" | "!~"), pattern]) => {
                let regex = Regex::case_sensitive(pattern, place)?;
                let not = *operator == "!~";
                self.bodies.push(Body { not, regex });
                Ok(())
            }
            (name @ ("header" | "body"), _) => {
                Err(format!("invalid parameters of \"{name}\"").into())
            }
            ("require", []) => Err("invalid parameters of \"require\"".into()),
            ("require", names) => names.iter().try_for_each(|name| self.require(name)),
            (name, _) => Err(format!("unknown directive \"{name}\"").into()),
        }
    }
}

impl Conditions {
    fn add_statuses(&mut self, not: bool, ranges: &[&str]) -> Result<(), Complaint> {
        let mut read = Vec::new();
        for range in ranges {
            let invalid = || format!("invalid status \"{range}\"");
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let code = |text: &str| {
                let code = value::number(text).and_then(|code| u16::try_from(code).ok());
                let code = code.filter(|code| (100..=599).contains(code));
                code.ok_or_else(invalid)
            };
            let (first, last) = (code(first)?, code(last)?);
            if first > last {
                return Err(invalid().into());
            }
            read.push((first, last));
        }
        if read.is_empty() {
            return Err("invalid parameters of \"status\"".into());
        }
        self.statuses.push(Statuses { not, ranges: read });
        Ok(())
    }

    fn require(&mut self, text: &str) -> Result<(), Complaint> {
        let invalid = || format!("invalid variable name \"{text}\"");
        let name = text.strip_prefix('$').ok_or_else(invalid)?;
        let required = Required::of(name).ok_or_else(|| {
            format!(
                "\"require\" accepts only $upstream_status, $upstream_http_NAME and \
                 $upstream_cookie_NAME, not \"{text}\": a check has no client request"
            )
        })?;
        self.required.push(required);
        Ok(())
    }

    fn add_field(&mut self, name: &str, wish: Expected) -> Result<(), Complaint> {
        let name = bytes_of(name);
        self.fields.push(Field { name, wish });
        Ok(())
    }
}

/// What a proxying family says of the location whose group is checked.
pub(crate) struct Checked<'a> {
    /// The group.
    pub upstream: &'a Upstream,
    /// `Host` of the questions.
    pub host: &'a [u8],
    /// TLS, where the group speaks it.
    pub tls: Option<CheckTls>,
    /// What connections begin with.
    pub proxy_header: Vec<u8>,
    /// How long a connection may take, in milliseconds.
    pub connect_timeout_ms: u64,
    /// How long a peer may be silent, in milliseconds.
    pub read_timeout_ms: u64,
}

/// Has the group checked where the location says so.
///
/// # Errors
/// nginx's, of parameters.
pub(crate) fn check(
    view: View<'_>,
    builder: &mut Builder<'_>,
    checked: &Checked<'_>,
) -> Result<(), ConfError> {
    let Some(entry) = view.own("health_check") else {
        return Ok(());
    };
    let log = background::log(view, builder)?;
    let place = |message: Complaint| view.error(entry.span, message);
    let mut rules = CheckRules::default();
    let mut question = HttpQuestion {
        request: Vec::new(),
        conditions: None,
        read_timeout_ms: checked.read_timeout_ms,
    };
    let uri = parameters(entry, &mut rules, &mut question, builder).map_err(place)?;
    question.request = request(&uri, checked.host, rules.keepalive_time_ms > 0);
    let check = Check {
        group: Arc::downgrade(checked.upstream.group()),
        number: number(&rules, checked.upstream.group()).map_err(place)?,
        rules,
        question: Asks::Connection(Arc::new(question)),
        proxy_header: checked.proxy_header.clone(),
        tls: checked.tls.clone(),
        connect_timeout_ms: checked.connect_timeout_ms,
        log,
    };
    builder.store::<BackgroundTasks>().add(Arc::new(check));
    Ok(())
}

/// The number of a check with these rules in its group.
///
/// # Errors
/// nginx's message, of rules that do not fit one another and of a group with too many checks.
pub(super) fn number(rules: &CheckRules, group: &Group) -> Result<u32, Complaint> {
    if rules.persistent && !rules.mandatory {
        return Err("\"persistent\" parameter requires \"mandatory\"".into());
    }
    let number = group.add_check();
    number.ok_or_else(|| "too many health checks".into())
}

/// The request of a check.
fn request(uri: &[u8], host: &[u8], keeps_connection: bool) -> Vec<u8> {
    let mut request = Vec::new();
    let mut lines = RequestLines::new(&mut request, Version::Http11);
    lines.line(b"GET", uri);
    lines.host(host);
    if !keeps_connection {
        lines.field(b"Connection", b"close");
    }
    lines.end();
    request
}

/// Reads the parameters; the path that is asked for.
fn parameters(
    entry: &Entry,
    rules: &mut CheckRules,
    question: &mut HttpQuestion,
    builder: &mut Builder<'_>,
) -> Result<Vec<u8>, Complaint> {
    let mut uri = b"/".to_vec();
    for word in entry.arguments.iter() {
        let text = word.text.as_str();
        if rule(text, rules)? {
            continue;
        }
        match text.split_once('=') {
            Some(("keepalive_time", given)) => {
                let time_ms = value::milliseconds(given);
                rules.keepalive_time_ms = time_ms.ok_or_else(|| invalid(text))?;
            }
            Some(("uri", given)) if given.starts_with('/') && !given.contains(' ') => {
                uri = bytes_of(given);
            }
            Some(("match", given)) => {
                question.conditions = Some(matches::named(given, builder)?);
                rules.name = given.to_owned();
            }
            _ => return Err(invalid(text).into()),
        }
    }
    Ok(uri)
}

/// Reads a parameter that checks have in every protocol; `false` if this is none of them.
///
/// # Errors
/// nginx's message, of its value.
pub(super) fn rule(text: &str, rules: &mut CheckRules) -> Result<bool, Complaint> {
    let (name, given) = match text.split_once('=') {
        Some((name, given)) => (name, Some(given)),
        None => (text, None),
    };
    let count = |given: &str| {
        let count = value::number(given).and_then(|count| u32::try_from(count).ok());
        count
            .filter(|count| *count > 0)
            .ok_or_else(|| invalid(text))
    };
    match (name, given) {
        ("interval", Some(given)) => {
            let interval_ms = value::milliseconds(given).filter(|time_ms| *time_ms > 0);
            rules.interval_ms = interval_ms.ok_or_else(|| invalid(text))?;
        }
        ("jitter", Some(given)) => {
            rules.jitter_ms = value::milliseconds(given).ok_or_else(|| invalid(text))?;
        }
        ("fails", Some(given)) => rules.fails = count(given)?,
        ("passes", Some(given)) => rules.passes = count(given)?,
        ("port", Some(given)) => {
            let port = u16::try_from(count(given)?);
            rules.port = Some(port.map_err(|_| invalid(text))?);
        }
        ("mandatory", None) => rules.mandatory = true,
        ("persistent", None) => rules.persistent = true,
        _ => return Ok(false),
    }
    Ok(true)
}

/// nginx's message about a parameter.
pub(super) fn invalid(text: &str) -> String {
    format!("invalid parameter \"{text}\"")
}

#[cfg(test)]
mod tests;
