//! `proxy_protocol`: each connection to a server begins with who the client is, by the PROXY
//! protocol. It is then one client's, and is not kept for another.

use std::net::{IpAddr, SocketAddr};

use turnpike_conf::View;
use turnpike_http::exchange::Exchange;
use turnpike_wire::proxy_protocol::{Transport, write_v1, write_v2};

/// The version of the header that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyHeader {
    /// No header.
    No,
    /// Version 1, a line of text.
    V1,
    /// Version 2, binary.
    V2,
}

impl ProxyHeader {
    /// Reads the directive in force.
    pub(crate) fn read(view: View<'_>) -> Self {
        match view.choice("proxy_protocol") {
            "on" => Self::V1,
            "v2" => Self::V2,
            _ => Self::No,
        }
    }

    /// What the connection for this exchange begins with: the client as `$remote_addr` has it, and
    /// the address that it has connected to.
    pub(crate) fn of(self, exchange: &Exchange) -> Vec<u8> {
        if self == Self::No {
            return Vec::new();
        }
        let ends = exchange.client.peer().inet().zip(exchange.local_address());
        self.header(ends, Transport::Stream)
    }

    /// The header for these ends; without them it says that it speaks for nobody. Version 1 knows
    /// no other transport than TCP.
    pub(crate) fn header(
        self,
        ends: Option<(SocketAddr, SocketAddr)>,
        transport: Transport,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::No => {}
            Self::V1 => write_v1(&mut out, ends.map(of_one_family)),
            Self::V2 => {
                let written = write_v2(&mut out, ends, transport, &[], None);
                debug_assert!(written.is_ok(), "nothing is added that could be too long");
            }
        }
        out
    }
}

/// A line has one family for both addresses.
fn of_one_family((source, destination): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    match source.is_ipv4() == destination.is_ipv4() {
        true => (source, destination),
        false => (mapped(source), mapped(destination)),
    }
}
