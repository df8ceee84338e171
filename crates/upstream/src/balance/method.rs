//! Methods of choosing a peer, as `upstream` blocks name them.

use crate::peer::times::Until;

/// A method of choosing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancer {
    /// Weighted round robin, smooth.
    #[default]
    RoundRobin,
    /// The peer with the fewest requests for its weight.
    LeastConnections,
    /// By the client's address: the first three bytes of IPv4, all of IPv6.
    IpHash,
    /// By a key: the remainder of its hash.
    Hash,
    /// By a key, so that a peer more or less moves few keys (ketama).
    ConsistentHash,
    /// Any peer.
    Random,
    /// The better of two.
    RandomTwo(Measure),
    /// The peer that should be done first.
    LeastTime {
        until: Until,
        /// Whether requests under way count too.
        inflight: bool,
    },
}

/// What the better of two has less of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Requests at the moment.
    Connections,
    Time(Until),
}
