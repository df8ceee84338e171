//! A parked connection on its way to another lane, perhaps of another process.

mod hand_over;
mod passed;
mod successor_link;

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::transport::Transport;

use super::slot::Await;
use super::tls::security::Security;
use crate::requester::ConnectionFacts;
use turnpike_plan::proxy_header::ProxyHeader;

pub use successor_link::{SuccessorLink, offer, take_connections};

/// A parked connection on its way to another lane.
pub struct Moving {
    pub(super) transport: Transport,
    pub(super) facts: ConnectionFacts,
    pub(super) no_delay: bool,
    pub(super) proxy_header: Option<ProxyHeader>,
    pub(super) security: Security,
    /// Of its gate: lanes may be a plan apart, and number them differently.
    pub(super) address: ListenAddress,
    pub(super) waits_for: Await,
    pub(super) origin: Origin,
}

/// Where a connection comes from.
pub(super) enum Origin {
    /// A lane of this process. The deadline that it had there stays.
    Lane { deadline_ms: u64 },
    /// The serving process before this one. Its number and its deadline are set anew.
    Process,
}
