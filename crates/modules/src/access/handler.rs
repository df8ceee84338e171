//! Asks the rules.

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::settings::Satisfy;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket::PeerAddress;

use crate::common::address_refusal;
use turnpike_plan::cidr::Cidr;

/// The clients that a rule is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    /// Everybody.
    All,
    /// Clients of unix sockets.
    Unix,
    /// Clients of these addresses.
    Range(Cidr),
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// The clients that the rule is for.
    pub(super) who: Who,
    /// Whether it keeps them out.
    pub(super) denies: bool,
}

/// The rules of a location.
pub(super) struct Rules {
    rules: Vec<Rule>,
    /// Whether a rule is for IPv4 addresses: then those that came over IPv6 are taken as such.
    /// Otherwise the rules for IPv6 are for them, as in nginx: nobody gets around `deny ::/0`.
    has_ipv4: bool,
}

impl Rules {
    pub(super) fn new(rules: Vec<Rule>) -> Self {
        let is_for_ipv4 = |rule: &Rule| matches!(rule.who, Who::All | Who::Range(Cidr::V4(..)));
        let has_ipv4 = rules.iter().any(is_for_ipv4);
        Self { rules, has_ipv4 }
    }

    /// Whether the first rule that fits denies; `None` when none fits.
    pub(super) fn denies(&self, peer: PeerAddress) -> Option<bool> {
        let fits = |rule: &&Rule| match (rule.who, peer) {
            (Who::All, _) | (Who::Unix, PeerAddress::Unix) => true,
            (Who::Range(range), PeerAddress::Inet(address)) => {
                if self.has_ipv4 {
                    range.contains(address.ip())
                } else {
                    range.contains_as_is(address.ip())
                }
            }
            _ => false,
        };
        self.rules.iter().find(fits).map(|rule| rule.denies)
    }
}

impl Handler for Rules {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        match self.denies(exchange.requester.peer()) {
            None => Verdict::Declined,
            Some(false) => Verdict::Finished,
            Some(true) => {
                if exchange.location().settings.satisfy == Satisfy::All {
                    exchange.log(Level::Error, format_args!("access forbidden by rule"));
                    address_refusal::note(&mut exchange.rooms);
                }
                Verdict::Status(403)
            }
        }
    }
}
