//! The phases of a session, and what families add to them.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::sys::epoll::Event;

use crate::client::Client;
use crate::flow::Flow;
use crate::relay_socket::RelaySocket;
use crate::session::Session;
use crate::watch::{SocketOf, Watch};

/// A future on the lane's runtime.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Phases before the content, in their order. All handlers of a phase are asked, in the order of
/// their places, until one of them ends the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The client's address is replaced (`realip`).
    PostAccept,
    /// Limits.
    PreAccess,
    /// Access rules.
    Access,
    /// The first bytes are looked at, and may choose another server for the session.
    ServerChoice,
    /// The first bytes are looked at by the server that was chosen.
    Preread,
}

/// How many phases there are.
pub const PHASE_COUNT: usize = Phase::Preread as usize + 1;

/// Places of handlers, in the order in which they are asked. Each is in one phase, and is named for
/// what its handlers look at or do. At one place, the handler that was added first is asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandlerPlace {
    /// The client's address.
    ClientAddress,
    /// Limits of concurrency.
    Concurrency,
    /// Any other limit.
    OtherLimit,
    /// Metrics that are counted when a session begins.
    ConnectMetrics,
    /// Access by the client's address.
    AddressAccess,
    /// Any other access control.
    OtherAccess,
    /// The name of the server that a TLS client asks for.
    ServerName,
    /// What else the first bytes show.
    FirstBytes,
    /// Variables that get a value once the first bytes are known.
    Assignments,
    /// Metrics that are counted once the first bytes are known.
    PrereadMetrics,
}

impl HandlerPlace {
    /// The phase that it is in.
    pub fn phase(self) -> Phase {
        match self {
            Self::ClientAddress => Phase::PostAccept,
            Self::Concurrency | Self::OtherLimit | Self::ConnectMetrics => Phase::PreAccess,
            Self::AddressAccess | Self::OtherAccess => Phase::Access,
            Self::ServerName => Phase::ServerChoice,
            Self::FirstBytes | Self::Assignments | Self::PrereadMetrics => Phase::Preread,
        }
    }
}

/// What a handler says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The next handler is asked.
    Declined,
    /// More of what the client sends is needed; only in the phases that look at the first bytes.
    Again,
    /// The session ends with this status.
    Status(Status),
}

/// How a session ended, by nginx's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 200: it was served.
    Ok,
    /// 400: what the client sent could not be read.
    BadRequest,
    /// 403: the client may not.
    Forbidden,
    /// 500: an error of ours.
    InternalServerError,
    /// 502: no server could be reached.
    BadGateway,
    /// 503: a limit refused it.
    ServiceUnavailable,
}

impl Status {
    /// The number (`$status`).
    pub fn number(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::InternalServerError => 500,
            Self::BadGateway => 502,
            Self::ServiceUnavailable => 503,
        }
    }
}

/// Looks at a session before its content.
pub trait Handler: Send + Sync {
    /// Looks at it. Must not block.
    fn handle(&self, session: &mut Session) -> Verdict;
}

/// A deadline that never comes.
pub const NEVER_MS: u64 = u64::MAX;

/// What is done with the connections of a server: there is one for each.
pub trait Content: Send + Sync {
    /// Datagrams of a client that belong to one session; those behind them begin another. 0 is
    /// without limit.
    fn datagrams_max(&self) -> u64 {
        0
    }
    /// What serves a session in steps, without a future. The client is given back where only
    /// [`Content::serve`] can.
    ///
    /// # Errors
    /// The client.
    fn steps(self: Arc<Self>, client: NewClient) -> Result<Box<dyn Steps>, NewClient> {
        Err(client)
    }
    /// Serves a session to its end.
    fn serve<'a>(&'a self, session: &'a mut Session, client: &'a Client)
    -> LocalFuture<'a, Status>;
}

/// The client of a session that begins.
pub enum NewClient {
    /// At the other end of a connection without TLS.
    Connection(RelaySocket),
    /// One that sends datagrams.
    Flow(Rc<Flow>),
}

/// Why a step is made.
pub enum Happened<'a> {
    /// The session may begin.
    Begun,
    /// A socket has an event.
    Ready(SocketOf, Event),
    /// The client of a flow has sent these.
    Datagrams(&'a [&'a [u8]]),
    /// The deadline has passed.
    Due,
}

/// What follows a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The session waits, at most until that time in the lane's monotonic milliseconds; it may be
    /// reached a quarter of a second late.
    Wait { until_ms: u64 },
    /// The session has ended.
    End(Status),
}

/// Serves one session in steps. Its sockets are closed when it is dropped.
pub trait Steps {
    /// Makes the next step.
    fn step(&mut self, session: &mut Session, watch: &Watch<'_>, happened: Happened<'_>) -> Next;
}

/// Writes down sessions that have ended.
pub trait Logger: Send + Sync {
    /// Writes one down.
    fn log(&self, session: &Session);
}
