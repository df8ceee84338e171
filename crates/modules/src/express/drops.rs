//! Has the driver drop the segments of clients that were refused too often for their address.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use turnpike_express::Publisher;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Logger;
use turnpike_lane::sys::process::{monotonic_ns, unix_ms};
use turnpike_lane::sys::socket::PeerAddress;

use crate::common::address_refusal;
use turnpike_plan::cidr::Cidr;

/// How many addresses are counted at a time: a flood of more finds places again each second.
const COUNTS: usize = 4096;

/// The most refusals in a second that are counted: what 16 bits hold.
pub(super) const REFUSALS_MAX: u64 = 0xffff;

/// Nanoseconds of a millisecond.
const MS_NS: u64 = 1_000_000;

/// The logger of a location with `express_drop`.
pub(super) struct Drops {
    pub(super) publisher: Arc<Publisher>,
    /// Clients that are never dropped.
    pub(super) allowed: Arc<[Cidr]>,
    /// How long a client is dropped.
    pub(super) time_ms: u64,
    pub(super) refusals: Refusals,
}

impl Logger for Drops {
    fn log(&self, exchange: &Exchange) {
        let client = &exchange.requester;
        // Behind a proxy it would be the proxy that is dropped.
        if !address_refusal::is_noted(exchange)
            || client.is_named()
            || client.proxy_header().is_some()
        {
            return;
        }
        let PeerAddress::Inet(peer) = client.connection_peer() else {
            return;
        };
        let address = peer.ip();
        if self.allowed.iter().any(|range| range.contains(address)) {
            return;
        }
        if self.refusals.count(address, unix_ms() / 1000) {
            let until_ns = end_ns(monotonic_ns(), self.time_ms);
            self.publisher.drop_client(address, until_ns);
        }
    }
}

/// When a client is let in again; one whose time is longer than the clock's never is.
fn end_ns(now_ns: u64, time_ms: u64) -> u64 {
    now_ns.saturating_add(time_ms.saturating_mul(MS_NS))
}

/// How often addresses were refused in this second.
pub(super) struct Refusals {
    /// Refusals in a second after which a client is dropped.
    after: u64,
    /// 32 bits of the address' hash, 16 of the second, 16 of the count.
    counts: Box<[AtomicU64]>,
}

impl Refusals {
    /// `after`: at most [`REFUSALS_MAX`].
    pub(super) fn new(after: u64) -> Refusals {
        Refusals {
            after,
            counts: (0..COUNTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts a refusal; whether there were too many. Two lanes that count at once may lose one.
    fn count(&self, address: IpAddr, second: u64) -> bool {
        let bits = match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        // Fibonacci hashing: the multiplier is 2^64 divided by the golden ratio.
        let hash = ((bits >> 64) as u64 ^ bits as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Some(cell) = self.counts.get(hash as usize % COUNTS) else {
            return false;
        };
        let mark = hash >> 32 << 32 | (second & 0xffff) << 16;
        let known = cell.load(Relaxed);
        let before = if known & !REFUSALS_MAX == mark {
            known & REFUSALS_MAX
        } else {
            0
        };
        let count = (before + 1).min(REFUSALS_MAX);
        cell.store(mark | count, Relaxed);
        count >= self.after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_too_long() {
        for (now_ns, time_ms, until_ns) in [
            (1, 10, 10_000_001),
            (1, u64::MAX / MS_NS, u64::MAX / MS_NS * MS_NS + 1),
            (MS_NS, u64::MAX / MS_NS, u64::MAX),
            (1, u64::MAX, u64::MAX),
        ] {
            assert_eq!(end_ns(now_ns, time_ms), until_ns, "{now_ns} {time_ms}");
        }
    }

    #[test]
    fn refusals_of_an_address_count_within_a_second() {
        let refusals = Refusals::new(3);
        let one = IpAddr::from([10, 0, 0, 1]);
        let other = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
        let counted = [
            (one, 7),
            (one, 7),
            (other, 7),
            (one, 8),
            (one, 8),
            (one, 8),
            (one, 8),
        ];
        let is_over = counted.map(|(address, second)| refusals.count(address, second));
        assert_eq!(is_over, [false, false, false, false, false, true, true]);
    }
}
