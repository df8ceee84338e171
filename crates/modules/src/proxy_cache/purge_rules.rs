//! Which requests purge: by conditions, as in NGINX Plus, or as in the module ngx_cache_purge, by a
//! method.

use turnpike_conf::{ConfError, Entry};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::Builder;
use turnpike_http::variables::Template;

use crate::common::predicates::{self, any_holds};
use crate::pass::view::PassView;
use turnpike_plan::cidr::Cidr;

/// How a purge by request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// By 204, as in NGINX Plus.
    Status,
    /// By a page, as in the module ngx_cache_purge.
    Page,
}

/// The requests of a location that purge.
pub(super) enum PurgeRule {
    /// Requests for which one of the values is neither empty nor "0".
    Conditions(Vec<Template>),
    /// Requests with a method.
    Method(ByMethod),
}

/// `METHOD from ADDRESS ...`.
pub(super) struct ByMethod {
    method: Box<[u8]>,
    /// The clients that may purge; none names all of them.
    from: Option<Vec<Cidr>>,
}

/// What a rule says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// The request does not purge.
    No,
    /// The request purges, and is answered so.
    Purges(Reply),
    /// The request would purge, and its client may not.
    Forbidden,
}

impl PurgeRule {
    /// Reads `..._cache_purge`.
    ///
    /// # Errors
    /// An address that cannot be read, or what is wrong with a variable.
    pub(super) fn read(pass: PassView<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        if let Some(entry) = pass.nearest("cache_purge")
            && let Some(rule) = by_method(pass, entry)?
        {
            return Ok(rule);
        }
        let conditions = predicates::read(pass.view, &pass.name("cache_purge"), builder)?;
        Ok(Self::Conditions(conditions))
    }

    /// What it says of a request.
    pub(super) fn ruling(&self, exchange: &Exchange) -> Ruling {
        match self {
            Self::Conditions(conditions) => {
                if !conditions.is_empty() && any_holds(exchange, conditions) {
                    Ruling::Purges(Reply::Status)
                } else {
                    Ruling::No
                }
            }
            Self::Method(rule) if exchange.method_name() != &*rule.method => Ruling::No,
            Self::Method(rule) => {
                if rule.allows(exchange) {
                    Ruling::Purges(Reply::Page)
                } else {
                    Ruling::Forbidden
                }
            }
        }
    }
}

impl ByMethod {
    fn allows(&self, exchange: &Exchange) -> bool {
        let Some(from) = &self.from else {
            return true;
        };
        let client = exchange.requester.peer().inet();
        client.is_some_and(|client| from.iter().any(|range| range.contains(client.ip())))
    }
}

/// `off`, `on` or a method, and after it perhaps `from` with those who may. Nothing else is meant
/// by a first word in capitals.
fn by_method(pass: PassView<'_>, entry: &Entry) -> Result<Option<PurgeRule>, ConfError> {
    let words: Vec<&str> = entry
        .arguments
        .iter()
        .map(|word| word.text.as_str())
        .collect();
    let method = match words.first().copied() {
        Some("off") if words.len() == 1 => return Ok(Some(PurgeRule::Conditions(Vec::new()))),
        Some("on") => "PURGE",
        Some(word) if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            word
        }
        _ => return Ok(None),
    };
    let from = match words.get(1..).unwrap_or_default() {
        [] | ["from", "all"] => None,
        ["from", addresses @ ..] if !addresses.is_empty() => {
            let mut ranges = Vec::with_capacity(addresses.len());
            for text in addresses {
                let range = Cidr::parse(text).ok_or_else(|| {
                    let message = format!("invalid parameter \"{text}\"");
                    pass.view.error(entry.span, message)
                })?;
                ranges.push(range);
            }
            Some(ranges)
        }
        [word, ..] => {
            let message =
                format!("invalid parameter \"{word}\", expected \"from\" keyword and addresses");
            return Err(pass.view.error(entry.span, message));
        }
    };
    Ok(Some(PurgeRule::Method(ByMethod {
        method: method.as_bytes().into(),
        from,
    })))
}
