//! Whether a client may have gzip, by nginx's rules.

use turnpike_http::engine::is_old_msie;
use turnpike_http::exchange::Exchange;
use turnpike_http::regex::Regex;
use turnpike_wire::date;
use turnpike_wire::message::{Known, Version};

/// What the directives say of clients.
pub(super) struct Acceptance {
    /// Whether responses say that they depend on this.
    pub(super) vary: bool,
    /// Whether HTTP/1.0 is enough.
    pub(super) http10: bool,
    pub(super) proxied: Proxied,
    pub(super) disabled: Vec<Regex>,
    pub(super) disabled_msie6: bool,
}

/// `gzip_proxied`: for which responses a proxy may have gzip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Proxied {
    pub(super) off: bool,
    pub(super) expired: bool,
    pub(super) no_cache: bool,
    pub(super) no_store: bool,
    pub(super) private: bool,
    pub(super) no_last_modified: bool,
    pub(super) no_etag: bool,
    pub(super) auth: bool,
    pub(super) any: bool,
}

impl Acceptance {
    /// Whether the response of the exchange may be sent as gzip.
    pub(super) fn accepts(&self, exchange: &Exchange) -> bool {
        let Some(codings) = exchange.known_field(Known::AcceptEncoding) else {
            return false;
        };
        let version = match self.http10 {
            true => exchange.request.head().version != Version::Http09,
            false => exchange.request.head().version >= Version::Http11,
        };
        version
            && (codings.starts_with(b"gzip,") || accepts_gzip(codings))
            && !self.is_disabled(exchange)
            && (exchange.known_field(Known::Via).is_none() || self.proxied.allows(exchange))
    }

    fn is_disabled(&self, exchange: &Exchange) -> bool {
        if self.disabled.is_empty() && !self.disabled_msie6 {
            return false;
        }
        let Some(agent) = exchange.known_field(Known::UserAgent) else {
            return false;
        };
        (self.disabled_msie6 && is_old_msie(agent))
            || self
                .disabled
                .iter()
                .any(|regex| exchange.is_match(regex, agent).unwrap_or(true))
    }

    /// Says in the response that it depends on what the client accepts.
    pub(super) fn add_vary(&self, exchange: &mut Exchange) {
        if !self.vary {
            return;
        }
        let fields = exchange.response.fields();
        let says_so = fields.values(b"Vary").any(|value| {
            let mut names = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"Accept-Encoding"))
        });
        if !says_so {
            exchange.response.vary_by_coding();
        }
    }
}

impl Proxied {
    fn allows(self, exchange: &Exchange) -> bool {
        if self.off || self.any {
            return self.any && !self.off;
        }
        if self.auth && exchange.known_field(Known::Authorization).is_some() {
            return true;
        }
        let response = &exchange.response;
        let fields = response.fields();
        if let Some(expires) = fields.values(b"Expires").next() {
            let now = exchange.lane.clock.unix_seconds() as i64;
            let then = match fields.values(b"Date").next() {
                Some(value) => date::parse(value),
                None => Some(now),
            };
            return self.expired && date::parse(expires).is_some_and(|at| Some(at) < then);
        }
        let mut controls = fields.values(b"Cache-Control").peekable();
        if controls.peek().is_some() {
            return controls.any(|value| self.wants_control(value));
        }
        // nginx means a field of the server that it asked, not the time of a file of its own.
        let is_foreign = response.places().last_modified.is_some();
        let has_date = self.no_last_modified && is_foreign;
        let has_tag = self.no_etag && !response.etag().is_empty();
        !has_date && !has_tag
    }

    fn wants_control(self, value: &[u8]) -> bool {
        let mut directives = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        directives.any(|directive| {
            let name = directive.split(|byte| *byte == b'=').next();
            let name = name.unwrap_or_default();
            (self.no_cache && name.eq_ignore_ascii_case(b"no-cache"))
                || (self.no_store && name.eq_ignore_ascii_case(b"no-store"))
                || (self.private && name.eq_ignore_ascii_case(b"private"))
        })
    }
}

/// Whether an Accept-Encoding field takes gzip (RFC 9110 section 12.5.3): named, and not with a
/// weight of zero. `*` is not taken for it.
pub(super) fn accepts_gzip(codings: &[u8]) -> bool {
    codings.split(|byte| *byte == b',').any(|one| {
        let mut parts = one.splitn(2, |byte| *byte == b';').map(<[u8]>::trim_ascii);
        let is_gzip = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(b"gzip"));
        is_gzip && parts.next().is_none_or(has_weight)
    })
}

/// Whether a parameter is a weight that is more than zero.
fn has_weight(parameter: &[u8]) -> bool {
    let Some((b'q' | b'Q', rest)) = parameter.split_first() else {
        return parameter.is_empty();
    };
    let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else {
        return false;
    };
    let value = value.trim_ascii_start();
    match value.split_first() {
        Some((b'1', rest)) => is_fraction(rest, |digit| digit == b'0'),
        Some((b'0', rest)) => {
            is_fraction(rest, |digit| digit.is_ascii_digit())
                && rest.iter().any(|byte| matches!(byte, b'1'..=b'9'))
        }
        _ => false,
    }
}

/// Nothing, or a dot and at most three digits.
fn is_fraction(text: &[u8], digit: impl Fn(u8) -> bool) -> bool {
    match text.split_first() {
        None => true,
        Some((b'.', digits)) => digits.len() <= 3 && digits.iter().all(|byte| digit(*byte)),
        Some(_) => false,
    }
}
