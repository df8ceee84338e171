//! Ports with the wildcard address and others: `listen 80;` beside `listen 192.0.2.1:80;`.
//!
//! nginx opens only the wildcard then, and asks each connection for its local address. Here each
//! address has a socket of its own, and the kernel prefers the one that names the address. It lets
//! both be bound if all have `SO_REUSEPORT` (socket(7)).

use std::collections::HashSet;

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::sys::socket::Kind;

/// A port of a protocol and an address family; `true` is IPv6.
type Port = (Kind, bool, u16);

/// The ports with both kinds of addresses.
#[derive(Debug, Default)]
pub(super) struct SharedPorts(HashSet<Port>);

impl SharedPorts {
    pub(super) fn of<'a>(addresses: impl Iterator<Item = &'a ListenAddress>) -> Self {
        let (mut wildcards, mut others) = (HashSet::new(), HashSet::new());
        for (port, is_wildcard) in addresses.filter_map(port) {
            if is_wildcard {
                wildcards.insert(port)
            } else {
                others.insert(port)
            };
        }
        Self(wildcards.intersection(&others).copied().collect())
    }

    pub(super) fn has(&self, address: &ListenAddress) -> bool {
        port(address).is_some_and(|(port, _)| self.0.contains(&port))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The port of an address, and whether it is the wildcard; `None`: it has none.
fn port(address: &ListenAddress) -> Option<(Port, bool)> {
    match address {
        ListenAddress::Tcp(own) | ListenAddress::Udp(own) => {
            let port = (address.kind(), own.is_ipv6(), own.port());
            Some((port, own.ip().is_unspecified())).filter(|_| own.port() != 0)
        }
        ListenAddress::Unix(_) => None,
    }
}
