//! Requests that wait for something, as the command `requests` lists them: a lane answers all
//! others within the turn in which they came.
//!
//! The module shares what it shows with the exchange, and knows nothing of how that goes on.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::transport::SocketFacts;
use turnpike_plan::Quoted;
use turnpike_wire::message::Method;

use crate::account::{Action, Activity};
use crate::request::Request;

/// Requests that a lane lists: more are of no use to a person, and writing them takes time that the
/// lane's clients wait.
pub const REQUESTS_MAX: usize = 1000;

/// Bytes of a target that are listed; a client can send many kilobytes.
const TARGET_BYTES_MAX: usize = 512;

/// The name of a request: the numbers of its connection and of the request on it, as `$connection`
/// and `$connection_requests` have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    pub connection: u64,
    pub request: u64,
}

impl RequestId {
    /// Reads `CONNECTION.REQUEST`.
    pub fn parse(text: &str) -> Option<RequestId> {
        let (connection, request) = text.split_once('.')?;
        Some(RequestId {
            connection: connection.parse().ok()?,
            request: request.parse().ok()?,
        })
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.connection, self.request)
    }
}

/// A request while it waits.
pub(crate) struct Running {
    pub(crate) id: RequestId,
    pub(crate) peer: PeerAddress,
    /// The first name of its server block.
    pub(crate) server: Arc<[u8]>,
    pub(crate) request: Rc<Request>,
    /// In the lane's monotonic milliseconds.
    pub(crate) started_ms: u64,
    pub(crate) activity: Rc<Activity>,
    pub(crate) socket: SocketFacts,
    /// The `send_timeout` of its location, in milliseconds.
    pub(crate) send_timeout_ms: u64,
}

/// A request in a list, for other threads.
#[derive(Debug)]
pub struct RunningRequest {
    pub id: RequestId,
    /// The client's address, without the port.
    pub client: String,
    pub method: String,
    /// The target as written, cut after 512 bytes, with unprintable bytes escaped.
    pub target: String,
    /// The first name of the server block; empty if it has none.
    pub server: String,
    /// The upstream server that was asked last.
    pub upstream: Option<Arc<str>>,
    /// What is done for it, in the words of the error log.
    pub state: &'static str,
    /// Since its first byte came.
    pub age_ms: u64,
}

/// The requests of a lane.
#[derive(Debug, Default)]
pub struct RequestList {
    /// The oldest, at most [`REQUESTS_MAX`].
    pub requests: Vec<RunningRequest>,
    /// How many there are.
    pub total: usize,
}

impl Running {
    pub(crate) fn id(&self) -> RequestId {
        self.id
    }

    /// Whether its answer is not complete yet.
    pub(crate) fn is_listed(&self) -> bool {
        is_listed(self.activity.action())
    }

    /// The request as others see it.
    pub(crate) fn seen(&self, now_ms: u64) -> RunningRequest {
        let head = self.request.head();
        let text = |bytes: &[u8]| Quoted(bytes).to_string();
        let origin = head.origin();
        RunningRequest {
            id: self.id,
            client: match self.peer {
                PeerAddress::Inet(address) => address.ip().to_string(),
                PeerAddress::Unix => "unix:".to_owned(),
            },
            method: match head.method {
                Method::Other => text(head.method_text()),
                known => known.name().to_owned(),
            },
            target: text(&origin[..origin.len().min(TARGET_BYTES_MAX)]),
            server: text(&self.server),
            upstream: self.activity.upstream_server(),
            state: self.activity.action().text(),
            age_ms: now_ms.saturating_sub(self.started_ms),
        }
    }
}

/// Whether a request of which this is done has no complete answer yet.
pub(crate) fn is_listed(action: Action) -> bool {
    !matches!(
        action,
        Action::Logging | Action::KeepAlive | Action::ClosingLingering
    )
}
