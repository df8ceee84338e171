//! Gateway API: Gateways with their routes. What of them goes together is found out once; the
//! configuration and the statuses come of it.
//!
//! A filter or a match that is not known closes its rule.

mod analysis;
mod listeners;
mod matches;
mod policies;
mod references;
mod services;
mod status;

pub(crate) use analysis::{Analysis, GatewayState, ListenerState, analyse};
pub(crate) use matches::{Attached, hosts};
pub(crate) use policies::{authorities, checked, policy_of};
pub(crate) use references::{application_protocol, backend, subject};
pub(crate) use services::{container_port, wanted_services};
pub(crate) use status::{Status, statuses};
