//! The balancing methods of `upstream` blocks.

use crate::peer::times::Until;

/// A balancing method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancer {
    /// Smooth weighted round robin.
    #[default]
    RoundRobin,
    /// The peer with the fewest requests for its weight.
    LeastConnections,
    /// By the client's address: the first three bytes of IPv4, all of IPv6.
    IpHash,
    /// By a key: the remainder of its hash.
    Hash,
    /// By a key, so that adding or removing a peer moves few keys (ketama).
    ConsistentHash,
    /// Any peer.
    Random,
    /// The better of two.
    RandomTwo(Measure),
    /// The peer with the shortest expected time.
    LeastTime {
        until: Until,
        /// Whether requests in progress count too.
        inflight: bool,
    },
}

/// The measure that decides between two peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The current number of requests.
    Connections,
    Time(Until),
}
