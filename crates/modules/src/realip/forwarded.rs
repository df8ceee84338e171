//! The client's address in what proxies have written down, the nearest proxy last.

use std::net::{IpAddr, SocketAddr};

use turnpike_lane::sys::socket::PeerAddress;

use turnpike_plan::cidr::Cidr;

/// Addresses that one request is followed back through: each was put there by a trusted proxy, so
/// that more is no chain but an attempt.
const STEPS_MAX: usize = 64;

/// The trusted proxies.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// Proxies at these addresses.
    pub(super) ranges: Vec<Cidr>,
    /// Proxies that connect by a unix socket.
    pub(super) unix: bool,
}

impl Trust {
    /// Whether nobody is.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && !self.unix
    }

    /// Whether the peer is trusted.
    pub(super) fn contains(&self, peer: PeerAddress) -> bool {
        match peer {
            PeerAddress::Unix => self.unix,
            PeerAddress::Inet(address) => {
                let ip = address.ip();
                self.ranges.iter().any(|range| range.contains(ip))
            }
        }
    }

    /// Follows the field's values back from `peer`; `None` where nothing replaces it. `values` are
    /// in the order in which they stand in the head.
    pub(super) fn follow<'v>(
        &self,
        peer: PeerAddress,
        values: impl DoubleEndedIterator<Item = &'v [u8]>,
        recursive: bool,
    ) -> Option<PeerAddress> {
        let mut found = None;
        let mut steps = 0;
        for value in values.rev() {
            let mut rest = value;
            while steps < STEPS_MAX {
                steps += 1;
                if !self.contains(found.unwrap_or(peer)) {
                    return found;
                }
                let (before, last) = split_last(rest);
                let Some(address) = parse(last) else {
                    return found;
                };
                found = Some(PeerAddress::Inet(address));
                if !recursive {
                    return found;
                }
                if before.is_empty() {
                    break;
                }
                rest = before;
            }
        }
        found
    }
}

/// The last of the addresses in a list, and what stands before it. Commas and spaces part them.
fn split_last(text: &[u8]) -> (&[u8], &[u8]) {
    let is_separator = |byte: &u8| matches!(byte, b' ' | b',');
    let end = text
        .iter()
        .rposition(|byte| !is_separator(byte))
        .map_or(0, |last| last + 1);
    let text = &text[..end];
    match text.iter().rposition(is_separator) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (&[], text),
    }
}

/// An address with or without a port; none is port 0.
pub(super) fn parse(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(SocketAddr::new(address, 0));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address);
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let address = inner.parse().ok()?;
    Some(SocketAddr::new(IpAddr::V6(address), 0))
}
