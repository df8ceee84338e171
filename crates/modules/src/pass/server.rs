//! A server that is asked: the connection to it, and how asking it may end.

use std::sync::Arc;

use turnpike_http::phase::Verdict;
use turnpike_upstream::{Connection, Picked};
use turnpike_wire::message::Delivery;

use super::conditions::Failure;
use crate::upstream::Upstream;

/// A connection to a server that answers the present request.
pub(crate) struct UpstreamConnection {
    pub(crate) connection: Box<Connection>,
    pub(crate) picked: Picked,
    pub(crate) upstream: Arc<Upstream>,
    /// What the head of its answer says of the body and the connection.
    pub(crate) delivery: Delivery,
}

/// How a try ended without a response.
pub(crate) enum Stop {
    /// The server failed; others may do better.
    Failed(Failure),
    /// The request itself ends.
    Verdict(Verdict),
}
