//! The content of a connection's PROXY protocol header, for variables and for passing it on.

use std::io::Write as _;
use std::net::SocketAddr;

use turnpike_wire::proxy_protocol::{self, Addresses, Header};

/// An end of the proxied connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxiedEnd {
    Client,
    Server,
}

/// The content of a header.
#[derive(Clone, Debug)]
pub struct ProxyHeader {
    /// Both ends of the proxied connection, if the sender knows them.
    pub addresses: Option<Addresses>,
    /// Client and server address as written in version 1; empty in version 2.
    pub texts: [Box<[u8]>; 2],
    /// The additions of version 2.
    pub tlvs: Box<[u8]>,
}

impl ProxyHeader {
    /// Copies the content of a parsed header from `bytes`, the text of the header.
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

    /// Appends the address of an end, as written in version 1 or in its usual form. `false`: the
    /// sender does not know it.
    pub fn append_address(&self, end: ProxiedEnd, out: &mut Vec<u8>) -> bool {
        let Some(address) = self.address(end) else {
            return false;
        };
        let text = match end {
            ProxiedEnd::Client => &self.texts[0],
            ProxiedEnd::Server => &self.texts[1],
        };
        if text.is_empty() {
            return write!(out, "{}", address.ip()).is_ok();
        }
        out.extend_from_slice(text);
        true
    }

    /// Appends the port of an end; nothing if it has none. `false`: the sender does not know the
    /// end.
    pub fn append_port(&self, end: ProxiedEnd, out: &mut Vec<u8>) -> bool {
        match self.address(end).map(|address| address.port()) {
            None => false,
            Some(0) => true,
            Some(port) => write!(out, "{port}").is_ok(),
        }
    }

    /// Appends the addition with that name, as in `$proxy_protocol_tlv_NAME`. `false` if there is
    /// none.
    pub fn append_addition(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        let Ok(name) = std::str::from_utf8(name) else {
            return false;
        };
        if name == "ssl_verify" {
            return match proxy_protocol::find_ssl(&self.tlvs) {
                Ok(Some(ssl)) => write!(out, "{}", ssl.verify).is_ok(),
                _ => false,
            };
        }
        match proxy_protocol::find_named_tlv(&self.tlvs, name) {
            Ok(Some(value)) => {
                out.extend_from_slice(value);
                true
            }
            _ => false,
        }
    }

    fn address(&self, end: ProxiedEnd) -> Option<SocketAddr> {
        let addresses = self.addresses.as_ref()?;
        Some(match end {
            ProxiedEnd::Client => addresses.source,
            ProxiedEnd::Server => addresses.destination,
        })
    }
}
