//! What this family does with a request.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Filter;
use turnpike_http::variables::{Evaluate, VariableId, append_named, request_number};
use turnpike_lane::log::Level;

use super::identifier::Identifier;
use crate::common::by_location::ByLocation;
use crate::common::cookie_expiry::Expires;

/// What the directives of a location say.
pub(super) struct Settings {
    pub(super) mode: Mode,
    /// The cookie's name.
    pub(super) name: String,
    /// What stands behind the cookie's date.
    pub(super) attributes: String,
    pub(super) expires: Option<Expires>,
    pub(super) mark: Option<u8>,
    pub(super) p3p: Option<Vec<u8>>,
    /// The number that says where an identifier was given.
    pub(super) service: Option<u32>,
    /// `$uid_reset`.
    pub(super) reset: VariableId,
}

/// What is done with the cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The cookie is read.
    Log,
    /// The cookie is given, in the first form.
    V1,
    /// The cookie is given.
    On,
}

/// What a client's cookie means.
struct Known {
    identifier: Identifier,
    /// Whether it has the mark that is asked for.
    has_mark: bool,
}

impl Settings {
    /// The identifier that the client has. What is wrong with its cookie is logged once, when
    /// `reports`.
    fn known(&self, exchange: &Exchange, reports: bool) -> Option<Known> {
        let mut cookie = Vec::new();
        if !append_named(exchange, &format!("cookie_{}", self.name), &mut cookie) {
            return None;
        }
        let identifier = Identifier::read(&cookie);
        if identifier.is_none() && reports {
            let wrong = if cookie.len() < 22 {
                "too short"
            } else {
                "invalid"
            };
            let cookie = Quoted(&cookie);
            exchange.log(
                Level::Error,
                format_args!("client sent {wrong} userid cookie \"{cookie}\""),
            );
        }
        Some(Known {
            identifier: identifier?,
            has_mark: self
                .mark
                .is_none_or(|mark| Identifier::has_mark(&cookie, mark)),
        })
    }

    /// The identifier that the client gets. `None`: it keeps the one that it has.
    fn given(&self, exchange: &Exchange, reports: bool) -> Option<Identifier> {
        let Some(known) = self.known(exchange, reports) else {
            return Some(self.new_identifier(exchange));
        };
        let mut reset = Vec::new();
        exchange.variable(self.reset, &mut reset);
        match reset.as_slice() {
            b"" | b"0" if known.has_mark => return None,
            b"" | b"0" => return Some(known.identifier),
            b"log" if reports => {
                let (name, identifier) = (&self.name, known.identifier.in_hexadecimal());
                exchange.log(
                    Level::Notice,
                    format_args!("userid cookie \"{name}={identifier}\" was reset"),
                );
            }
            _ => {}
        }
        Some(self.new_identifier(exchange))
    }

    /// The same whenever it is asked for in a request.
    fn new_identifier(&self, exchange: &Exchange) -> Identifier {
        let random = request_number(exchange) as u64;
        let time = exchange.lane.clock.unix_seconds() as u32;
        let service = self.service;
        match self.mode {
            Mode::V1 => {
                let service = service.unwrap_or(0).to_ne_bytes();
                Identifier::new(service, time.to_ne_bytes(), random)
            }
            Mode::On | Mode::Log => {
                let address = || local_address(exchange);
                let service = service.map_or_else(address, u32::to_be_bytes);
                Identifier::new(service, time.to_be_bytes(), random)
            }
        }
    }

    fn cookie(&self, exchange: &Exchange, identifier: Identifier) -> String {
        let mut text = format!("{}={}", self.name, identifier.encode(self.mark));
        if let Some(expires) = self.expires {
            let date = expires.date(exchange.lane.clock.unix_seconds());
            // Writing to a String cannot fail.
            let _ = write!(text, "; expires={date}");
        }
        text.push_str(&self.attributes);
        text
    }
}

/// The last four bytes of the address that the client has reached.
fn local_address(exchange: &Exchange) -> [u8; 4] {
    match exchange.local_address().map(|address| address.ip()) {
        None => [0; 4],
        Some(IpAddr::V4(address)) => address.octets(),
        Some(IpAddr::V6(address)) => {
            let [.., a, b, c, d] = address.octets();
            [a, b, c, d]
        }
    }
}

/// Gives the cookie.
pub(super) struct UserIdFilter(pub(super) Arc<Settings>);

impl Filter for UserIdFilter {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let settings = &*self.0;
        if let Some(identifier) = settings.given(exchange, true) {
            let cookie = settings.cookie(exchange, identifier);
            let fields = exchange.response.fields_mut();
            fields.add(b"Set-Cookie", cookie.as_bytes());
            if let Some(p3p) = &settings.p3p {
                fields.add(b"P3P", p3p);
            }
        }
        None
    }
}

/// `$uid_got` and `$uid_set`.
pub(super) struct Shown {
    pub(super) settings: ByLocation<Settings>,
    /// Whether it is the identifier that is given.
    pub(super) is_given: bool,
}

impl Evaluate<Exchange> for Shown {
    fn evaluate(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        let Some(settings) = self.settings.of(exchange) else {
            return false;
        };
        let identifier = match (self.is_given, settings.mode) {
            (true, Mode::Log) => None,
            (true, Mode::On | Mode::V1) => settings.given(exchange, false),
            (false, _) => settings
                .known(exchange, false)
                .map(|known| known.identifier),
        };
        let Some(identifier) = identifier else {
            return false;
        };
        let text = format!("{}={}", settings.name, identifier.in_hexadecimal());
        out.extend_from_slice(text.as_bytes());
        true
    }
}

/// `$uid_reset` where it was not set.
pub(super) struct NotReset;

impl Evaluate<Exchange> for NotReset {
    fn evaluate(&self, _: &Exchange, _: &mut Vec<u8>) -> bool {
        true
    }
}
