//! What the PROXY protocol's header of a connection said, for variables and for those who pass it
//! on.

use turnpike_wire::proxy_protocol::{Addresses, Header};

/// What a header said.
#[derive(Clone, Debug)]
pub struct ProxyHeader {
    /// Both ends of the proxied connection, where the sender knows them.
    pub addresses: Option<Addresses>,
    /// Client and server address as version 1 wrote them; empty in version 2.
    pub texts: [Box<[u8]>; 2],
    /// The additions of version 2.
    pub tlvs: Box<[u8]>,
}

impl ProxyHeader {
    /// Copies what a parsed header says out of `bytes`, which it was parsed from.
    pub fn new(header: &Header, bytes: &[u8]) -> ProxyHeader {
        let text = |pick: fn(&Addresses) -> turnpike_wire::Span| {
            header
                .addresses
                .as_ref()
                .map_or_else(Box::default, |found| pick(found).of(bytes).into())
        };
        ProxyHeader {
            addresses: header.addresses,
            texts: [
                text(|found| found.source_text),
                text(|found| found.destination_text),
            ],
            tlvs: header.tlvs.of(bytes).into(),
        }
    }
}
