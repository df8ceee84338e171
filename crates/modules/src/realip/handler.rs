//! Replaces the client's address.

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::variables::{VariableRow, append_address, append_number};
use turnpike_lane::sys::socket::PeerAddress;

use super::forwarded::Trust;

/// The variables.
pub(super) const VARIABLES: &[VariableRow] = &[
    VariableRow {
        name: "realip_remote_addr",
        get: remote_address,
        set: None,
        summary: "The original client address of the connection, before it was replaced.",
    },
    VariableRow {
        name: "realip_remote_port",
        get: remote_port,
        set: None,
        summary: "The original client port of the connection, before it was replaced.",
    },
];

/// Where the client's address is.
#[derive(Debug)]
pub(super) enum Place {
    /// In a field that may be there several times and holds a list.
    ForwardedFor,
    /// In the header of the PROXY protocol.
    ProxyProtocol,
    /// In the first field of this name.
    Field(Box<[u8]>),
}

/// The replacement of a location.
pub(super) struct RealAddress {
    pub(super) trust: Trust,
    pub(super) place: Place,
    pub(super) recursive: bool,
}

impl Handler for RealAddress {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if !exchange.requester.is_named()
            && let Some(peer) = self.peer(exchange)
        {
            exchange.requester.set_named_peer(peer);
        }
        Verdict::Declined
    }
}

impl RealAddress {
    fn peer(&self, exchange: &Exchange) -> Option<PeerAddress> {
        let peer = exchange.requester.peer();
        if !self.trust.contains(peer) {
            return None;
        }
        match &self.place {
            Place::ProxyProtocol => {
                let header = exchange.requester.proxy_header()?;
                let addresses = header.addresses.as_ref()?;
                Some(PeerAddress::Inet(addresses.source))
            }
            Place::Field(name) => {
                let value = exchange.field(name)?;
                self.trust
                    .follow(peer, std::iter::once(value), self.recursive)
            }
            Place::ForwardedFor => {
                let values = exchange.fields().values(b"X-Forwarded-For");
                self.trust.follow(peer, values, self.recursive)
            }
        }
    }
}

fn connection_peer(exchange: &Exchange) -> PeerAddress {
    exchange.requester.connection_peer()
}

fn remote_address(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    match connection_peer(exchange) {
        PeerAddress::Inet(address) => {
            append_address(out, address.ip());
            true
        }
        PeerAddress::Unix => {
            out.extend_from_slice(b"unix:");
            true
        }
    }
}

fn remote_port(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    if let PeerAddress::Inet(address) = connection_peer(exchange)
        && address.port() > 0
    {
        append_number(out, u64::from(address.port()));
    }
    true
}
