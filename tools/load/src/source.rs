//! Source addresses and ports for outgoing connections: `127.0.1.0-127.0.4.255:1024-65535`.
//!
//! One address reaches one destination at most some sixty thousand times at once; a range of
//! addresses lifts that. Each thread has its own slice of the ports, so threads never search the
//! same ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A range of addresses and, perhaps, of ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceRange {
    first: IpAddr,
    /// How many addresses there are, at least one.
    count: u128,
    /// The first and the last port, or whatever the system chooses.
    ports: Option<(u16, u16)>,
}

/// Why a source range was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceError {
    /// An address cannot be read.
    Address,
    /// The last address is below the first, or of the other family.
    Order,
    /// The ports are not `FIRST-LAST` with 1 <= FIRST <= LAST.
    Ports,
}

impl std::fmt::Display for SourceError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            SourceError::Address => "expected ADDRESS[-ADDRESS][:PORT-PORT]",
            SourceError::Order => "the last address must not be below the first",
            SourceError::Ports => "ports must be FIRST-LAST",
        })
    }
}

impl std::error::Error for SourceError {}

impl std::str::FromStr for SourceRange {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let (addresses, ports) = split_ports(text);
        let (first, last) = addresses.split_once('-').unwrap_or((addresses, addresses));
        let first: IpAddr = first.trim().parse().map_err(|_| SourceError::Address)?;
        let last: IpAddr = last.trim().parse().map_err(|_| SourceError::Address)?;
        if first.is_ipv4() != last.is_ipv4() || last < first {
            return Err(SourceError::Order);
        }
        let count = (to_number(last) - to_number(first)).saturating_add(1);
        Ok(SourceRange {
            first,
            count,
            ports: ports.map(parse_ports).transpose()?,
        })
    }
}

impl SourceRange {
    /// The address of the `index`-th connection of all; port 0.
    pub(crate) fn address(&self, index: u64) -> SocketAddr {
        let number = to_number(self.first) + u128::from(index) % self.count;
        let address = match self.first {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX))),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(number)),
        };
        SocketAddr::new(address, 0)
    }

    /// How many addresses there are.
    pub(crate) fn count(&self) -> u128 {
        self.count
    }

    /// The slice of the ports that belongs to one thread of `threads`.
    pub(crate) fn thread_ports(&self, thread: usize, threads: usize) -> Option<(u16, u16)> {
        let (first, last) = self.ports?;
        let total = u32::from(last - first) + 1;
        let threads = u32::try_from(threads.max(1)).unwrap_or(u32::MAX).min(total);
        let thread = u32::try_from(thread).unwrap_or(0) % threads;
        let start = u32::from(first) + total * thread / threads;
        let end = u32::from(first) + total * (thread + 1) / threads - 1;
        Some((
            u16::try_from(start).unwrap_or(first),
            u16::try_from(end).unwrap_or(last),
        ))
    }
}

/// Cuts `:PORTS` off; an IPv6 range with ports is written in brackets.
fn split_ports(text: &str) -> (&str, Option<&str>) {
    if let Some(rest) = text.strip_prefix('[') {
        return match rest.split_once(']') {
            Some((addresses, ports)) => (addresses, ports.strip_prefix(':')),
            None => (text, None),
        };
    }
    match text.split_once(':') {
        Some((addresses, ports)) if !ports.contains(':') => (addresses, Some(ports)),
        _ => (text, None),
    }
}

fn parse_ports(text: &str) -> Result<(u16, u16), SourceError> {
    let (first, last) = text.split_once('-').ok_or(SourceError::Ports)?;
    let first = first.trim().parse().map_err(|_| SourceError::Ports)?;
    let last = last.trim().parse().map_err(|_| SourceError::Ports)?;
    if first == 0 || last < first {
        return Err(SourceError::Ports);
    }
    Ok((first, last))
}

fn to_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_walked() {
        let range: SourceRange = "127.0.1.0-127.0.4.255:1024-65535".parse().expect("a range");
        assert_eq!(range.count, 1024);
        assert_eq!(range.address(0).to_string(), "127.0.1.0:0");
        assert_eq!(range.address(1023).to_string(), "127.0.4.255:0");
        assert_eq!(range.address(1024).to_string(), "127.0.1.0:0");
        assert_eq!(range.thread_ports(0, 2), Some((1024, 33279)));
        assert_eq!(range.thread_ports(1, 2), Some((33280, 65535)));
        let single: SourceRange = "::1".parse().expect("one address");
        assert_eq!((single.count, single.ports), (1, None));
        let bracketed: SourceRange = "[fd00::1-fd00::4]:2000-2009".parse().expect("a range");
        assert_eq!((bracketed.count, bracketed.ports), (4, Some((2000, 2009))));
    }

    #[test]
    fn bad_ranges_are_refused() {
        let cases = [
            ("", SourceError::Address),
            ("127.0.0.9-127.0.0.1", SourceError::Order),
            ("127.0.0.1-::1", SourceError::Order),
            ("127.0.0.1:0-5", SourceError::Ports),
            ("127.0.0.1:9-5", SourceError::Ports),
            ("127.0.0.1:80", SourceError::Ports),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<SourceRange>(), Err(expected), "{text}");
        }
    }
}
