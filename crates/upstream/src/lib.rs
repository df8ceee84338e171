//! Upstream peers: groups, balancing, connections and their pools.
//!
//! The crate serves every kind of proxy, so it must know neither HTTP nor directives. All lanes
//! share the state of a peer; a connection belongs to the lane that opened it.
//!
//! ```text
//!  Group ──begin──► Tries ──next──► Picked ──take──► Pool ──┐
//!                     ▲               │  └─connect──────────┴─► Connection
//!                     └── failed ─────┘ succeeded
//! ```

mod address;
mod background;
mod balance;
mod connection;
mod group;
mod health;
mod peer;
mod pool;
mod resolve;
mod tls;

pub use address::Address;
pub use background::BackgroundTask;
pub use balance::choice::Selection;
pub use balance::method::{Balancer, Measure};
pub use connection::{
    ConnectError, ConnectOptions, Connection, DatagramConnection, Tls, UPSTREAM_TIMED_OUT,
    begin_connecting,
};
pub use group::{
    Commanded, Group, GroupSettings, GroupStates, NoPeer, QueueLimits, RetryLimits, Tries, Unqueued,
};
pub use health::{Asks, Check, CheckOutcome, CheckRules, CheckTls, DatagramQuestion, Question};
pub use peer::picked::Picked;
pub use peer::times::Until;
pub use peer::{FailReason, Mode, Peer, PeerSettings, PeerState};
pub use pool::{KeepAlive, Liveness, Pool};
pub use resolve::{
    Addresses, LookupCounts, ResolveError, ResolvedServer, Resolver, ResolverSettings, Resolving,
    ServersFile, ServiceAddress, Services,
};
pub use tls::{TlsConnector, TlsError, TlsSettings};
