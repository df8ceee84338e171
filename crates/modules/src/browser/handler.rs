//! `$modern_browser`, `$ancient_browser`, `$msie`.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use turnpike_http::exchange::Exchange;
use turnpike_http::plan::LocationIndex;
use turnpike_http::variables::{Evaluate, VariableRow};

/// A kind of browser: where in a User-Agent its name and its version stand.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Bytes before the part in which the name is looked for.
    skip: usize,
    /// The name.
    mark: &'static [u8],
    /// Bytes from the name's start to the version.
    add: usize,
}

const fn kind(name: &'static str, before: &str, mark: &'static str, add: usize) -> Kind {
    Kind {
        name,
        skip: before.len(),
        mark: mark.as_bytes(),
        add,
    }
}

/// The kinds that `modern_browser` knows.
pub(super) const KINDS: &[Kind] = &[
    kind("opera", "", "Opera", "Opera ".len()),
    kind("msie", "Mozilla/4.0 (compatible; ", "MSIE ", "MSIE ".len()),
    kind("gecko", "Mozilla/5.0 (", "rv:", "rv:".len()),
    kind("safari", "Mozilla/5.0 (", "Safari/", "Safari/".len()),
    kind(
        "konqueror",
        "Mozilla/5.0 (compatible; ",
        "Konqueror/",
        "Konqueror/".len(),
    ),
];

/// From which version on a kind is modern.
pub(super) struct Rule {
    pub(super) kind: &'static Kind,
    pub(super) version: u64,
}

/// The rules of a location.
#[derive(Default)]
pub(super) struct Browsers {
    pub(super) modern: Vec<Rule>,
    pub(super) ancient: Vec<Box<[u8]>>,
    pub(super) unlisted_is_modern: bool,
    pub(super) netscape4_is_ancient: bool,
    pub(super) modern_value: Box<[u8]>,
    pub(super) ancient_value: Box<[u8]>,
}

/// Rules by location. Written while the plan is built, read by requests.
#[derive(Clone, Default)]
pub(super) struct Ages(Arc<RwLock<HashMap<u32, Arc<Browsers>>>>);

impl Ages {
    /// Remembers the rules of a location.
    pub(super) fn insert(&self, location: LocationIndex, browsers: Browsers) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(location.0, Arc::new(browsers));
    }

    fn of(&self, exchange: &Exchange) -> Option<Arc<Browsers>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&exchange.walk.location().0).cloned()
    }
}

/// `$modern_browser`.
pub(super) struct Modern(pub(super) Ages);

/// `$ancient_browser`.
pub(super) struct Ancient(pub(super) Ages);

impl Evaluate<Exchange> for Modern {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        if let Some(browsers) = self.0.of(exchange)
            && browsers.is_modern(exchange.field(b"User-Agent"))
        {
            out.extend_from_slice(&browsers.modern_value);
        }
        true
    }
}

impl Evaluate<Exchange> for Ancient {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        match self.0.of(exchange) {
            Some(browsers) if browsers.is_modern(exchange.field(b"User-Agent")) => {}
            Some(browsers) => out.extend_from_slice(&browsers.ancient_value),
            // Without a rule every browser is ancient.
            None => out.push(b'1'),
        }
        true
    }
}

impl Browsers {
    /// Whether a browser is modern; one without a name is what unlisted ones are.
    pub(super) fn is_modern(&self, agent: Option<&[u8]>) -> bool {
        let Some(agent) = agent else {
            return self.unlisted_is_modern;
        };
        for rule in &self.modern {
            let part = agent.get(rule.kind.skip..).unwrap_or_default();
            let Some(start) = memchr::memmem::find(part, rule.kind.mark) else {
                continue;
            };
            let version = part.get(start + rule.kind.add..).unwrap_or_default();
            return version_of(version) >= rule.version;
        }
        if self.netscape4_is_ancient && is_netscape4(agent) {
            return false;
        }
        let mut ancient = self.ancient.iter();
        if ancient.any(|text| memchr::memmem::find(agent, text).is_some()) {
            return false;
        }
        self.unlisted_is_modern
    }
}

/// The version at the start of a text; as [`super::plan::version`], but it ends where it ends.
fn version_of(text: &[u8]) -> u64 {
    let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let length = text.iter().take_while(is_part).count();
    let text = String::from_utf8_lossy(&text[..length]);
    super::plan::version(&text).unwrap_or(u64::MAX)
}

fn is_netscape4(agent: &[u8]) -> bool {
    let version = agent.strip_prefix(b"Mozilla/".as_slice());
    version.is_some_and(|version| matches!(version.first(), Some(b'1'..=b'4')))
}

pub(super) const VARIABLES: &[VariableRow] = &[VariableRow {
    name: "msie",
    get: msie,
    set: None,
    summary: "1 if the User-Agent identifies the browser as MSIE.",
}];

/// nginx looks for the name with a version of one digit and a dot, as MSIE 4 to 9 had.
fn msie(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let agent = exchange.field(b"User-Agent").unwrap_or_default();
    let name = memchr::memmem::find(agent, b"MSIE ");
    if name.is_some_and(|start| agent.len() > start + "MSIE x.".len()) {
        out.push(b'1');
    }
    true
}
