//! Whether a client may have a compressed response, by nginx's rules for gzip and those of the
//! known modules for brotli and zstd.

use turnpike_http::engine::is_old_msie;
use turnpike_http::exchange::Exchange;
use turnpike_http::regex::Regex;
use turnpike_http::response::Response;
use turnpike_wire::date;
use turnpike_wire::message::{Known, Version};

use super::encoder::Coding;

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
    /// How much the client likes the response in this coding, in thousandths; 0: it must not get
    /// it. Only gzip is withheld from proxies and from clients of old.
    pub(super) fn weight(&self, exchange: &Exchange, coding: Coding) -> u16 {
        let Some(codings) = exchange.known_field(Known::AcceptEncoding) else {
            return 0;
        };
        let version = exchange.request().head().version;
        if coding != Coding::Gzip {
            return match version {
                Version::Http09 => 0,
                _ => coding.weight(codings),
            };
        }
        let fits = if self.http10 {
            version != Version::Http09
        } else {
            version >= Version::Http11
        };
        if !fits {
            return 0;
        }
        let weight = if codings.starts_with(b"gzip,") {
            1000
        } else {
            coding.weight(codings)
        };
        let allowed = weight > 0
            && !self.is_disabled(exchange)
            && (exchange.known_field(Known::Via).is_none() || self.proxied.allows(exchange));
        if allowed { weight } else { 0 }
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
    pub(super) fn add_vary(&self, response: &mut Response) {
        if !self.vary {
            return;
        }
        let says_so = response.fields().values(b"Vary").any(|value| {
            let mut names = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"Accept-Encoding"))
        });
        if !says_so {
            response.vary_by_coding();
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
