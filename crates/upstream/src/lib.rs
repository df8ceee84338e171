//! Peers that requests are passed to: groups of them, who is next, connections and their pools.
//!
//! It serves whatever proxies: it must know neither HTTP nor directives. State of a peer is one
//! truth for all lanes; connections belong to the lane that opened them.
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
mod pool;
mod resolve;
mod tls;

pub use address::Address;
pub use background::BackgroundTask;
pub use balance::{Balancer, Measure, Until};
pub use connection::{ConnectError, ConnectOptions, Connection, Tls};
pub use group::{
    FailReason, Group, GroupSettings, GroupStates, Mode, NoPeer, Peer, PeerSettings, PeerState,
    Picked, Selection, Tries,
};
pub use health::{Answer, Check, CheckTls, Judge, Usual};
pub use pool::{KeepAlive, Pool};
pub use resolve::{
    Addresses, ResolveError, ResolvedServer, Resolver, ResolverSettings, Resolving, ServiceAddress,
    Services,
};
pub use tls::{TlsConnector, TlsError, TlsIdentity, TlsSettings, TlsVersions};
