//! Judging a Referer field.

use std::sync::PoisonError;

use turnpike_http::exchange::Exchange;
use turnpike_http::regex::{Regex, Undecided};
use turnpike_http::variables::Evaluate;

use super::plan::{ByLocation, Referers};

impl Evaluate<Exchange> for ByLocation {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let valid = match all.get(&exchange.walk.location().0) {
            None => Ok(true),
            Some(referers) => referers.welcome(exchange, exchange.field(b"referer")),
        };
        match valid {
            Ok(true) => true,
            Ok(false) => {
                out.push(b'1');
                true
            }
            Err(Undecided) => false,
        }
    }
}

impl Referers {
    /// Whether a request with this field, or without it, is welcome.
    fn welcome(&self, exchange: &Exchange, referer: Option<&[u8]>) -> Result<bool, Undecided> {
        /// Longer hosts are welcome nowhere.
        const HOST_BYTES_MAX: usize = 256;
        let Some(referer) = referer else {
            return Ok(self.none || self.is_empty());
        };
        let Some(rest) = without_scheme(referer) else {
            return Ok(self.blocked || self.is_empty());
        };
        let end = memchr::memchr2(b'/', b':', rest).unwrap_or(rest.len());
        if end > HOST_BYTES_MAX {
            return Ok(self.is_empty());
        }
        let host = rest[..end].to_ascii_lowercase();
        if let Some(start) = self.hosts.find(&host) {
            let start = start.as_deref().unwrap_or_default();
            return Ok(path(rest).starts_with(start));
        }
        let any = |patterns: &[Regex], subject: &[u8]| {
            for pattern in patterns {
                if exchange.is_match(pattern, subject)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        Ok(any(&self.server_patterns, &host)? || any(&self.patterns, rest)? || self.is_empty())
    }

    fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.patterns.is_empty() && self.server_patterns.is_empty()
    }
}

/// What stands behind `http://` or `https://`; `None` where neither does, or too little follows
/// for a host: nginx's measure is `http://i.ru`.
pub(super) fn without_scheme(referer: &[u8]) -> Option<&[u8]> {
    const SHORTEST: usize = "http://i.ru".len();
    if referer.len() < SHORTEST {
        return None;
    }
    [&b"http://"[..], b"https://"]
        .into_iter()
        .find_map(|scheme| {
            let (start, rest) = referer.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        })
}

/// The path and what follows it.
pub(super) fn path(rest: &[u8]) -> &[u8] {
    let slash = rest.iter().position(|byte| *byte == b'/');
    &rest[slash.unwrap_or(rest.len())..]
}
