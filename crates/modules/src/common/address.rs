//! Addresses and networks as texts have them, the address behind trusted proxies, and the subjects
//! that have an address to look up.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use turnpike_http::exchange::Exchange;
use turnpike_plan::variables::Subject;
use turnpike_stream::session::Session;

/// A subject with an address that can be looked up.
pub(crate) trait Located: Subject {
    /// The client's own address.
    fn client_address(&self) -> Option<IpAddr>;

    /// The address that trusted proxies name, beginning with `from`: one step back, or as many as
    /// there are (`recursive`).
    fn forwarded(&self, from: IpAddr, trusted: &[Network], recursive: bool) -> IpAddr;
}

impl Located for Exchange {
    fn client_address(&self) -> Option<IpAddr> {
        Some(self.requester.peer().inet()?.ip())
    }

    fn forwarded(&self, from: IpAddr, trusted: &[Network], recursive: bool) -> IpAddr {
        let fields = self.fields().values(b"X-Forwarded-For");
        forwarded(from, fields, trusted, recursive)
    }
}

impl Located for Session {
    fn client_address(&self) -> Option<IpAddr> {
        Some(self.peer.inet()?.ip())
    }

    /// A session has no fields; trusted proxies do nothing here, as in nginx, which has none.
    fn forwarded(&self, from: IpAddr, _: &[Network], _: bool) -> IpAddr {
        from
    }
}

/// A network: its first address and how many leading bits it fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) first: IpAddr,
    pub(crate) bits: u32,
}

impl Network {
    /// Reads an address with or without a prefix length; bits behind the prefix are dropped.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits.parse().ok()?,
            Some(_) => return None,
        };
        (bits <= most).then(|| Self {
            first: masked(address, bits),
            bits,
        })
    }

    /// Whether the address is in the network.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && masked(address, self.bits) == self.first
    }
}

/// The address with all but its leading bits cleared.
pub(crate) fn masked(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

/// What stands for an address that is none: nginx looks this one up.
pub(crate) const NONE: IpAddr = IpAddr::V4(Ipv4Addr::BROADCAST);

/// IPv4 addresses out of their IPv6 clothes.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// An address with or without a port.
fn with_port(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address.ip());
    }
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    inside.parse().ok().filter(IpAddr::is_ipv6)
}

/// The address in X-Forwarded-For. The list is read from its end while the sender of an entry is
/// trusted: one step, or with `recursive` as many as there are.
pub(crate) fn forwarded<'a>(
    peer: IpAddr,
    fields: impl DoubleEndedIterator<Item = &'a [u8]>,
    trusted: &[Network],
    recursive: bool,
) -> IpAddr {
    let mut address = peer;
    for value in fields.rev() {
        let parts = value.split(|byte| matches!(byte, b' ' | b','));
        for part in parts.rev().filter(|part| !part.is_empty()) {
            let told = with_port(part).filter(|_| {
                let from = plain(address);
                trusted.iter().any(|network| network.contains(from))
            });
            match told {
                Some(told) => address = told,
                None => return address,
            }
            if !recursive {
                return address;
            }
        }
    }
    address
}
