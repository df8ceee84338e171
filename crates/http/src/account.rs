//! What an exchange has cost so far, its time and its bytes, and what is done for it now.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// What the connection is doing, for the log line of whatever goes wrong meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Nothing was read yet.
    #[default]
    WaitingForRequest,
    /// The PROXY protocol's header is read.
    ReadingProxyHeader,
    /// The request line has not come whole.
    ReadingRequestLine,
    /// The header has not come whole.
    ReadingHeaders,
    /// The request body is read.
    ReadingBody,
    /// Handlers work.
    Processing,
    /// The TLS handshake with the client goes on.
    HandshakingClient,
    /// A name of an upstream server is looked up.
    ResolvingUpstream,
    /// No upstream server has room, and the request waits for one.
    QueuedForUpstream,
    /// An upstream server is connected to.
    ConnectingUpstream,
    /// The TLS handshake with it goes on.
    HandshakingUpstream,
    /// The request is sent to it.
    SendingUpstream,
    /// The head of its answer is read.
    ReadingUpstreamHead,
    /// The body of its answer is read.
    ReadingUpstream,
    /// Client and upstream server talk another protocol.
    Tunnelling,
    /// The response is sent.
    Sending,
    /// The exchange has ended and is written down.
    Logging,
    /// Frames of an HTTP/2 connection are read.
    ProcessingHttp2,
    /// What has come of an HTTP/3 connection is read.
    ProcessingHttp3,
    /// The connection waits for its next request.
    KeepAlive,
    /// The rest of what the client sends is read and thrown away before closing.
    ClosingLingering,
}

/// The time and the bytes of an exchange.
#[derive(Default)]
pub struct Account {
    figures: Figures,
    activity: Rc<Activity>,
}

#[derive(Clone, Copy, Default)]
struct Figures {
    /// Whether the request has begun.
    has_begun: bool,
    started_ms: u64,
    sent_bytes: u64,
    head_bytes: u64,
    request_bytes: u64,
    is_completed: bool,
    is_logged: bool,
    sample_weight: u32,
}

/// What is done for an exchange now. The list of a lane's requests shares it with the exchange.
#[derive(Default)]
pub(crate) struct Activity {
    action: Cell<Action>,
    /// The upstream server that was asked last.
    upstream_server: RefCell<Option<Arc<str>>>,
    upstream_place: RefCell<Option<UpstreamPlace>>,
}

/// A place among the requests of a lane that upstream servers are asked for, until it is dropped.
pub(crate) struct UpstreamPlace(Rc<Cell<usize>>);

impl UpstreamPlace {
    /// Another place among those that are taken.
    pub(crate) fn new(taken: &Rc<Cell<usize>>) -> Self {
        taken.set(taken.get() + 1);
        Self(Rc::clone(taken))
    }
}

impl Drop for UpstreamPlace {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Activity {
    /// What the connection is doing.
    pub(crate) fn action(&self) -> Action {
        self.action.get()
    }

    /// The upstream server that was asked last.
    pub(crate) fn upstream_server(&self) -> Option<Arc<str>> {
        self.upstream_server.borrow().clone()
    }

    /// Whether the request has a place among those that upstream servers are asked for.
    pub(crate) fn has_upstream_place(&self) -> bool {
        self.upstream_place.borrow().is_some()
    }

    /// Takes such a place, or gives it back.
    pub(crate) fn set_upstream_place(&self, place: Option<UpstreamPlace>) {
        *self.upstream_place.borrow_mut() = place;
    }
}

impl Account {
    /// The request begins: its first byte was seen then, in the lane's monotonic milliseconds.
    pub(crate) fn begin(&mut self, started_ms: u64) {
        self.figures = Figures {
            has_begun: true,
            started_ms,
            ..Figures::default()
        };
    }

    /// Makes ready for another request.
    pub(crate) fn clear(&mut self) {
        self.figures = Figures::default();
        self.activity.action.set(Action::default());
        self.activity.upstream_server.take();
        self.activity.set_upstream_place(None);
    }

    /// Whether a request has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.figures.has_begun
    }

    /// What is done, to be looked at while the exchange goes on.
    pub(crate) fn activity(&self) -> &Rc<Activity> {
        &self.activity
    }

    /// An upstream server is asked.
    pub fn asks(&self, server: Arc<str>) {
        self.activity.upstream_server.replace(Some(server));
    }

    /// What the connection is doing.
    pub fn action(&self) -> Action {
        self.activity.action.get()
    }

    /// Says what the connection is doing from now on.
    pub fn set_action(&self, action: Action) {
        self.activity.action.set(action);
    }

    /// Says what the connection is doing from now on; returns what it did.
    pub(crate) fn replace_action(&self, action: Action) -> Action {
        self.activity.action.replace(action)
    }

    /// The account of a subrequest begins: it has received what its request has, and sent nothing.
    pub(crate) fn begin_subrequest_of(&mut self, request: &Self, started_ms: u64) {
        self.figures = Figures {
            has_begun: true,
            started_ms,
            request_bytes: request.figures.request_bytes,
            ..Figures::default()
        };
    }

    /// The account of a subrequest of a request that has ended begins, with all that this has cost.
    pub(crate) fn begin_subrequest_of_ended(&mut self, request: &Self) {
        self.figures = request.figures;
        self.set_action(request.action());
    }

    /// When the request's first byte was seen, in the lane's monotonic milliseconds.
    pub fn started_ms(&self) -> u64 {
        self.figures.started_ms
    }

    /// Bytes sent, the head and interim responses included (`$bytes_sent`).
    pub fn sent_bytes(&self) -> u64 {
        self.figures.sent_bytes
    }

    /// Bytes of the body that were sent (`$body_bytes_sent`).
    pub fn body_sent_bytes(&self) -> u64 {
        self.figures
            .sent_bytes
            .saturating_sub(self.figures.head_bytes)
    }

    /// Bytes of the request that were read and taken (`$request_length`).
    pub fn request_bytes(&self) -> u64 {
        self.figures.request_bytes
    }

    /// The weight of a sampled request in logs: the number of requests that it stands for. 0 for a
    /// request that a lane answered.
    pub fn sample_weight(&self) -> u32 {
        self.figures.sample_weight
    }

    /// Sets the weight of a sampled request.
    pub(crate) fn set_sample_weight(&mut self, requests: u32) {
        self.figures.sample_weight = requests;
    }

    /// Whether the whole answer was sent.
    pub fn is_completed(&self) -> bool {
        self.figures.is_completed
    }

    /// Bytes have left.
    pub fn sent(&mut self, bytes: u64) {
        self.figures.sent_bytes += bytes;
    }

    /// A head of so many bytes is sent next. Interim responses went before it.
    pub(crate) fn head_written(&mut self, bytes: u64) {
        self.figures.head_bytes = self.figures.sent_bytes + bytes;
    }

    /// Bytes of the request were read and taken.
    pub(crate) fn received(&mut self, bytes: u64) {
        self.figures.request_bytes += bytes;
    }

    /// The head of the request was read: it has so many bytes.
    pub(crate) fn head_received(&mut self, bytes: u64) {
        self.figures.request_bytes = bytes;
    }

    /// Whether the request has begun and is still to be written to the access log.
    pub(crate) fn is_unlogged(&self) -> bool {
        self.figures.has_begun && !self.figures.is_logged
    }

    /// The request was written to the access log.
    pub(crate) fn logged(&mut self) {
        self.figures.is_logged = true;
    }

    /// Sets whether the whole response was sent.
    pub fn set_completed(&mut self, is_completed: bool) {
        self.figures.is_completed = is_completed;
    }
}

impl Action {
    /// nginx's words, as its log has them after "while".
    pub fn text(self) -> &'static str {
        match self {
            Self::WaitingForRequest => "waiting for request",
            Self::ReadingProxyHeader => "reading PROXY protocol",
            Self::ReadingRequestLine => "reading client request line",
            Self::ReadingHeaders => "reading client request headers",
            Self::ReadingBody => "reading client request body",
            Self::Processing => "processing request",
            Self::ResolvingUpstream => "resolving upstream",
            Self::QueuedForUpstream => "waiting for an upstream server",
            Self::ConnectingUpstream => "connecting to upstream",
            Self::HandshakingClient => "SSL handshaking",
            Self::HandshakingUpstream => "SSL handshaking to upstream",
            Self::SendingUpstream => "sending request to upstream",
            Self::ReadingUpstreamHead => "reading response header from upstream",
            Self::ReadingUpstream => "reading upstream",
            Self::Tunnelling => "proxying upgraded connection",
            Self::Sending => "sending response to client",
            Self::Logging => "logging request",
            Self::ProcessingHttp2 => "processing HTTP/2 connection",
            Self::ProcessingHttp3 => "processing HTTP/3 connection",
            Self::KeepAlive => "keepalive",
            Self::ClosingLingering => "closing request",
        }
    }
}
