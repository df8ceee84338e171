//! What clients may cost: limits of connections, and of those that are not proved to be wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quinn_proto::{IdleTimeout, TransportConfig, VarInt};

/// Bytes of a ClientHello: those of browsers have about two thousand, with the largest tickets and
/// key shares five; the library takes no larger one over TCP either.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;

/// First flights of a lane whose ClientHello is not whole, or whose certificate is being read.
pub const FLIGHTS_MAX: usize = 1024;

/// Milliseconds after which a first flight is forgotten that is not whole: clients send lost
/// packets again after one, two and four seconds.
pub const IDLE_FLIGHT_MS: u64 = 10_000;

/// Bytes of a first flight that are kept, beside those of the ClientHello: early data, which a
/// client sends in its first round trip.
pub(crate) const FLIGHT_BYTES_MAX: u64 = 64 * 1024;

/// The same of all flights of a lane.
pub(crate) const FLIGHTS_BYTES_MAX: u64 = 8 * 1024 * 1024;

// A flight holds a hello of the largest size twice, and each part of a limit is within the whole.
const _: () = assert!(2 * HELLO_BYTES_MAX as u64 <= FLIGHT_BYTES_MAX);
const _: () = assert!(FLIGHT_BYTES_MAX < FLIGHTS_BYTES_MAX);

/// Handshakes of a process that are not complete, from which on clients have to prove their address
/// first (Retry, RFC 9000 section 8.1.2): no server has as many by honest clients, since each takes
/// a round trip or two.
const RETRY_FROM: usize = 2048;

/// The most of them. More are not looked at: their clients try again.
const HALF_OPEN_MAX: usize = 16 * 1024;

/// Stateless resets of a lane in a second, at most: ten thousand clients whose connections a crash
/// has ended learn it at once, and forged packets cost little.
const RESETS_PER_SECOND_MAX: u32 = 10_000;

/// Bytes of bodies and of what else clients send that a connection holds unread, over all of its
/// streams.
const RECEIVE_WINDOW_BYTES: u32 = 1024 * 1024;

/// Bytes of answers that a connection holds until they are acknowledged: what a network of 300
/// Mbit/s and 100 ms has under way. A slow client never lets it come to that, as the congestion
/// window is smaller.
const SEND_WINDOW_BYTES: u64 = 4 * 1024 * 1024;

/// Streams in one direction that a client may have open: three for HTTP/3, and some that it tries
/// out what the server makes of them (RFC 9114 section 6.2.3).
const UNIDIRECTIONAL_STREAMS_MAX: u32 = 8;

/// How long a client waits at most to acknowledge; the round trip of a usual network, where nothing
/// is known of this one (RFC 9002 section 6.2.2).
const INITIAL_ROUND_TRIP: Duration = Duration::from_millis(333);

/// What a connection may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionRules {
    /// Streams in both directions that a client may have open at once.
    pub streams_max: u32,
    /// Bytes that a client may send on a stream before they are read.
    pub stream_buffer_bytes: u32,
    /// Connection IDs of the client that are kept for use; at least 2.
    pub ids_max: u32,
    /// Milliseconds without a packet after which a connection ends; 0: the protocol's own limit.
    pub idle_timeout_ms: u64,
}

impl ConnectionRules {
    pub(crate) fn transport(&self) -> TransportConfig {
        let mut transport = TransportConfig::default();
        let idle = Duration::from_millis(self.idle_timeout_ms);
        let idle = match self.idle_timeout_ms {
            0 => None,
            _ => IdleTimeout::try_from(idle).ok(),
        };
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(self.streams_max))
            .max_concurrent_uni_streams(VarInt::from_u32(UNIDIRECTIONAL_STREAMS_MAX))
            .max_idle_timeout(idle)
            .stream_receive_window(VarInt::from_u32(self.stream_buffer_bytes))
            .receive_window(VarInt::from_u32(
                RECEIVE_WINDOW_BYTES.max(self.stream_buffer_bytes),
            ))
            .send_window(SEND_WINDOW_BYTES)
            .send_fairness(false)
            .initial_rtt(INITIAL_ROUND_TRIP)
            .crypto_buffer_size(HELLO_BYTES_MAX)
            .datagram_receive_buffer_size(None);
        transport
    }
}

/// The handshakes of a process that are not complete.
#[derive(Clone, Debug, Default)]
pub struct HalfOpenCount(Arc<AtomicUsize>);

/// One of them, for as long as this is kept.
#[derive(Debug)]
pub struct HalfOpen(Arc<AtomicUsize>);

/// The stateless resets of a lane. A lane that takes up the sockets of another process finds many
/// packets waiting, all at one time of its clock, and some clients send no other: so they are
/// counted, and no distance is kept between them.
#[derive(Debug, Default)]
pub(crate) struct ResetCount {
    second: u64,
    sent: u32,
}

impl ResetCount {
    /// Counts another one; `false`: there are as many in this second as there may be.
    pub(crate) fn add(&mut self, now_ms: u64) -> bool {
        let second = now_ms / 1000;
        if second != self.second {
            *self = Self { second, sent: 0 };
        }
        self.sent = self.sent.saturating_add(1);
        self.sent <= RESETS_PER_SECOND_MAX
    }
}

impl HalfOpenCount {
    /// Takes a place for another; `None`: there are as many as there may be.
    #[must_use]
    pub fn add(&self) -> Option<HalfOpen> {
        let place = HalfOpen(Arc::clone(&self.0));
        if self.0.fetch_add(1, Ordering::Relaxed) < HALF_OPEN_MAX {
            Some(place)
        } else {
            None
        }
    }

    /// Whether there are so many that clients have to prove their addresses.
    #[must_use]
    pub fn is_high(&self) -> bool {
        self.0.load(Ordering::Relaxed) > RETRY_FROM
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{HALF_OPEN_MAX, HalfOpenCount, RESETS_PER_SECOND_MAX, RETRY_FROM, ResetCount};

    #[test]
    fn resets_are_counted_by_the_second() {
        let mut count = ResetCount::default();
        for second in [0, 1, 7] {
            let now_ms = second * 1000 + 999;
            assert!((0..RESETS_PER_SECOND_MAX).all(|_| count.add(now_ms)));
            assert!(!count.add(now_ms));
        }
    }

    #[test]
    fn handshakes_are_counted_while_they_are_open() {
        let count = HalfOpenCount::default();
        let mut open: Vec<_> = (0..=RETRY_FROM).filter_map(|_| count.add()).collect();
        assert!(count.is_high());
        open.pop();
        assert!(!count.is_high());
        open.extend((open.len()..HALF_OPEN_MAX).filter_map(|_| count.add()));
        assert!(count.add().is_none());
        open.pop();
        assert!(count.add().is_some());
    }
}
