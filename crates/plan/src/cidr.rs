//! Address ranges, as directives write them: `10.0.0.0/8`, `2001:db8::/32`, a single address.

use std::net::{IpAddr, Ipv6Addr};

use turnpike_conf::{Entry, View};

use crate::builder::Builder;

/// A range of addresses of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cidr {
    /// IPv4: network and mask.
    V4(u32, u32),
    /// IPv6: network and mask.
    V6(u128, u128),
}

impl Cidr {
    /// Reads an address with or without the length of its network part. Bits behind that part are
    /// dropped.
    pub fn parse(text: &str) -> Option<Cidr> {
        let (address, bits) = match text.split_once('/') {
            None => (text, None),
            Some((address, bits)) => (address, Some(bits)),
        };
        let length = |most: u32| match bits {
            None => Some(most),
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= most)
            }
            Some(_) => None,
        };
        match address.parse().ok()? {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - length(32)?).unwrap_or(0);
                Some(Cidr::V4(address.to_bits() & mask, mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - length(128)?).unwrap_or(0);
                Some(Cidr::V6(address.to_bits() & mask, mask))
            }
        }
    }

    /// Whether the address is in the range. An IPv4 address that came over IPv6 is taken as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.contains_as_is(plain(address))
    }

    /// Whether the address is in the range. An IPv4 address that came over IPv6 is taken as IPv6.
    pub fn contains_as_is(&self, address: IpAddr) -> bool {
        match (self, address) {
            (Cidr::V4(network, mask), IpAddr::V4(address)) => address.to_bits() & mask == *network,
            (Cidr::V6(network, mask), IpAddr::V6(address)) => address.to_bits() & mask == *network,
            _ => false,
        }
    }
}

/// Warns of bits behind the network part in the directives of these names that stand in this very
/// block: whoever wrote them meant another network.
pub fn warn_of_low_bits<S>(view: View<'_>, builder: &mut Builder<'_, S>, names: &[&str]) {
    let ours = |entry: &&Entry| names.contains(&entry.row.name);
    for entry in view.entries().iter().filter(ours) {
        let text = entry.argument(0);
        let address = text.split('/').next().unwrap_or_default().parse();
        let (Some(range), Ok(address)) = (Cidr::parse(text), address) else {
            continue;
        };
        let is_network = match (range, address) {
            (Cidr::V4(network, _), IpAddr::V4(address)) => address.to_bits() == network,
            (Cidr::V6(network, _), IpAddr::V6(address)) => address.to_bits() == network,
            _ => false,
        };
        if !is_network {
            builder.warn(
                view,
                entry,
                format!("low address bits of {text} are meaningless"),
            );
        }
    }
}

/// IPv4 addresses out of their IPv6 clothes.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => match Ipv6Addr::to_ipv4_mapped(&v6) {
            Some(v4) => IpAddr::V4(v4),
            None => address,
        },
        IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::Cidr;

    #[test]
    fn contains_what_its_mask_says() {
        let cases = [
            ("127.0.0.1", "127.0.0.1", Some(true)),
            ("127.0.0.1", "127.0.0.2", Some(false)),
            ("10.1.2.3/8", "10.255.0.1", Some(true)),
            ("0.0.0.0/0", "192.0.2.1", Some(true)),
            ("0.0.0.0/0", "::1", Some(false)),
            ("127.0.0.0/8", "::ffff:127.0.0.1", Some(true)),
            ("2001:db8::/32", "2001:db8:ffff::1", Some(true)),
            ("2001:db8::/32", "2001:db9::1", Some(false)),
            ("::/0", "::1", Some(true)),
            ("10.0.0.0/33", "10.0.0.0", None),
            ("10.0.0.0/x", "10.0.0.0", None),
            ("10.0.0.0/+8", "10.0.0.0", None),
            ("localhost", "10.0.0.0", None),
        ];
        for (range, address, expected) in cases {
            let address = address.parse().expect(address);
            let got = Cidr::parse(range).map(|range| range.contains(address));
            assert_eq!(got, expected, "{range} and {address}");
        }
    }
}
