//! One request and its answer, with all that handlers, variables and logs ask about it.
//!
//! An exchange owns the bytes of its request's head. It is taken from the lane's pool and
//! goes back there, so that its buffers are grown once and a request that needs no more than they
//! hold allocates nothing.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket::{self, PeerAddress};
use turnpike_wire::message::{Known, Method, RequestHead, Strictness, holds_control};

use crate::account::Account;
use crate::body::RequestBody;
use crate::counters::CloseReason;
use crate::engine::Walk;
use crate::lane::{LanePlan, LaneShared};
use crate::phase::Verdict;
use crate::plan::{Listen, ListenIndex, Location, LocationIndex, Server, ServerIndex};
use crate::regex::{Captures, Turn};
use crate::response::Response;
use crate::rooms::Rooms;
use crate::tls::TlsSession;
use crate::upstream::Upstream;
use crate::variables::Values;
use turnpike_plan::proxy_header::ProxyHeader;

/// Part of a lane's connections that requests which wait for upstream servers leave to others, and
/// how many that are at most. A few are enough: those who get one are answered at once, and make
/// room again.
const SPARE_CONNECTIONS_PART: usize = 16;
const SPARE_CONNECTIONS_MAX: usize = 16;

/// Status that logs have where the client did not wait for its answer; nginx's own.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// What is known of the connection that a request came on.
#[derive(Clone, Copy)]
pub struct Client {
    /// Number of the connection, unique in the process (`$connection`).
    pub serial: u64,
    /// Where the connection comes from.
    pub peer: PeerAddress,
    /// The gate it was accepted on.
    pub listen: ListenIndex,
    /// Number of the connection's descriptor while the exchange runs, for questions to the kernel
    /// that few requests ask (the local address).
    pub descriptor: RawFd,
    /// Requests so far on this connection, the present one counted.
    pub requests: u64,
    /// Whether the request had come before the one in front of it was answered (`$pipe`).
    pub is_pipelined: bool,
    /// When it was accepted, in the lane's monotonic milliseconds.
    pub accepted_ms: u64,
    /// The same in nanoseconds.
    pub accepted_ns: u64,
}

/// What the connection is doing, for the log line of whatever goes wrong meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing was read yet.
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
    /// The connection waits for its next request.
    KeepAlive,
    /// The rest of what the client sends is read and thrown away before closing.
    ClosingLingering,
}

/// A request in flight.
pub struct Exchange {
    /// The lane's clock, counters and pools.
    pub lane: Rc<LaneShared>,
    /// The configuration that this request began with; it ends with the same.
    pub plan: Rc<LanePlan>,
    /// The connection.
    pub client: Client,
    /// The request's head.
    pub head: RequestHead,
    /// The server block that the request is for.
    pub server: ServerIndex,
    /// The location in force.
    pub location: LocationIndex,
    /// The normalised path (`$uri`); redirects change it.
    pub path: Vec<u8>,
    /// The query without its question mark (`$args`).
    pub query: Vec<u8>,
    /// The validated, lower-case host of the request; empty when there is none.
    pub host: Vec<u8>,
    pub body: RequestBody,
    /// Where in the phases the request is.
    pub walk: Walk,
    /// The answer.
    pub response: Response,
    /// Servers that were asked for it.
    pub upstream: Upstream,
    /// Room for a text that a handler makes and throws away again, such as a file's path: taken
    /// out, cleared, used and put back.
    pub scratch: Vec<u8>,
    /// Head and copied body bytes on their way to the socket.
    pub output: Vec<u8>,
    /// Whether the connection is kept after this exchange.
    pub keep_alive: bool,
    /// Whether the body is sent chunked.
    pub chunked: bool,
    /// Rate limit in bytes per second set for this request; `None` asks the location.
    pub limit_rate: Option<u64>,
    /// Bytes at full speed first, set for this request.
    pub limit_rate_after: Option<u64>,
    /// Values of variables that were stored or computed once.
    pub values: RefCell<Values>,
    /// Groups of the last regular expression that matched.
    pub captures: RefCell<Captures>,
    /// What its regular expressions may cost, and those that came to no verdict.
    pub regex: RefCell<Turn>,
    /// The time and the bytes of the exchange.
    pub account: Account,
    /// What the connection is doing.
    pub action: Cell<Action>,
    /// What the families keep with it.
    pub rooms: Rooms,
    /// Whether nothing was done with it since it was cleared.
    is_clear: bool,
    /// Where the connection comes from, once [`Client::peer`] was replaced by whom it is for.
    pub connection_peer: Option<PeerAddress>,
    /// What the PROXY protocol's header of the connection said.
    pub proxy_header: Option<Rc<ProxyHeader>>,
    /// The TLS session of the connection; `None`: it is not secured.
    pub tls: Option<Arc<TlsSession>>,
    /// Whether the client speaks plain HTTP where TLS is expected.
    pub plain_on_tls_port: bool,
    /// Random identifier, made when first asked for (`$request_id`).
    pub request_id: Cell<Option<u128>>,
}

impl Exchange {
    /// A new exchange with empty buffers; the pool calls this when it has none to spare.
    pub fn new(lane: Rc<LaneShared>, plan: Rc<LanePlan>, client: Client) -> Self {
        Self {
            lane,
            plan,
            client,
            head: RequestHead::default(),
            server: ServerIndex(0),
            location: LocationIndex(0),
            path: Vec::new(),
            query: Vec::new(),
            host: Vec::new(),
            body: RequestBody::default(),
            walk: Walk::default(),
            response: Response::default(),
            upstream: Upstream::default(),
            scratch: Vec::new(),
            output: Vec::new(),
            keep_alive: false,
            chunked: false,
            limit_rate: None,
            limit_rate_after: None,
            values: RefCell::default(),
            captures: RefCell::default(),
            regex: RefCell::default(),
            account: Account::default(),
            action: Cell::new(Action::WaitingForRequest),
            rooms: Rooms::default(),
            is_clear: true,
            connection_peer: None,
            proxy_header: None,
            tls: None,
            plain_on_tls_port: false,
            request_id: Cell::new(None),
        }
    }

    /// Makes ready for the next request on the same connection.
    pub fn begin_request(&mut self) {
        if !std::mem::take(&mut self.is_clear) {
            self.clear_request();
        }
        self.account = Account::since(self.lane.clock.now_ms());
    }

    /// Lets go of everything that is of a request or its connection.
    pub(crate) fn clear(&mut self) {
        self.tls = None;
        self.plain_on_tls_port = false;
        self.clear_request();
        self.is_clear = true;
    }

    fn clear_request(&mut self) {
        self.head.clear();
        self.path.clear();
        self.query.clear();
        self.host.clear();
        self.body.clear();
        self.walk = Walk::default();
        self.response.clear();
        self.upstream.clear();
        self.output.clear();
        self.keep_alive = false;
        self.chunked = false;
        self.limit_rate = None;
        self.limit_rate_after = None;
        self.values.get_mut().clear();
        self.captures.get_mut().clear();
        self.regex.get_mut().clear();
        self.action.set(Action::WaitingForRequest);
        self.rooms.clear();
        if let Some(peer) = self.connection_peer.take() {
            self.client.peer = peer;
        }
        self.request_id.set(None);
    }

    /// Gives buffers of more than `bytes_max` back to the allocator; says how many bytes the others
    /// hold.
    pub(crate) fn trim_buffers(&mut self, bytes_max: usize) -> usize {
        let [upstream_input, upstream_output, upstream_head] = self.upstream.buffers();
        let [body, arrived_body] = self.body.buffers();
        let mut kept_bytes = 0;
        for buffer in [
            upstream_input,
            upstream_output,
            upstream_head,
            self.head.fields.buffer(),
            body,
            arrived_body,
            &mut self.output,
            &mut self.response.text,
            &mut self.scratch,
        ] {
            if buffer.capacity() > bytes_max {
                *buffer = Vec::new();
            }
            kept_bytes += buffer.capacity();
        }
        kept_bytes
    }

    /// Goes back to where a connection is before its request is known: the default server of its
    /// gate. What an exchange served before may not even exist in its present plan.
    pub(crate) fn leave_location(&mut self) {
        self.server = self.listen().default_server;
        self.location = self.server().root;
    }

    /// Value of the first request header field that the parser knows by this number.
    pub fn known_field(&self, known: Known) -> Option<&[u8]> {
        self.head.known(known)
    }

    /// The request's method as text.
    pub fn method_name(&self) -> &[u8] {
        match self.head.method {
            Method::Other => self.head.method_text(),
            known => known.name().as_bytes(),
        }
    }

    /// Appends the file or folder that the path stands for (`$request_filename`).
    pub fn file_path(&self, out: &mut Vec<u8>) {
        self.location().settings.root.file(self, &self.path, out);
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        match self.tls {
            None => "http",
            Some(_) => "https",
        }
    }

    /// The address that the client connected to.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match &self.listen().address {
            ListenAddress::Unix(_) => None,
            ListenAddress::Tcp(address) if !address.ip().is_unspecified() => Some(*address),
            ListenAddress::Tcp(_) => socket::local_address_of(self.client.descriptor)
                .ok()?
                .inet(),
        }
    }

    /// Whether this request may wait for an upstream server: not where nearly all connections of
    /// the lane are at work already. Else requests that are passed back to this very server would
    /// take all, and wait for one that nobody accepts.
    pub fn may_wait_for_upstream(&self) -> bool {
        let most = self.plan.events.connections_max;
        let spare = (most / SPARE_CONNECTIONS_PART).clamp(1, SPARE_CONNECTIONS_MAX);
        let working = self.lane.counters.writing.value();
        working <= most.saturating_sub(spare).max(1) as u64
    }

    /// Value of the first request header field of that name.
    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        self.head.fields.value(name)
    }

    /// The location in force.
    pub fn location(&self) -> &Location {
        self.plan.location(self.location)
    }

    /// The server block in force.
    pub fn server(&self) -> &Server {
        self.plan.server(self.server)
    }

    /// How closely bodies and the messages of upstream servers have to follow the RFC.
    pub fn strictness(&self) -> Strictness {
        self.server().settings.head_rules.strictness
    }

    /// Whether a field's value can be sent: it holds no control characters (RFC 9110 section 5.5),
    /// or, where nginx's leniency is asked for, none that would end the field early.
    pub fn may_send_value(&self, value: &[u8]) -> bool {
        match self.strictness() {
            Strictness::Rfc => !holds_control(value),
            Strictness::Nginx => memchr::memchr3(b'\r', b'\n', 0, value).is_none(),
        }
    }

    /// The status for a method that whoever is asked cannot do: 501 where nobody here knows it
    /// (RFC 9110 section 9.1), else 405, which is also nginx's answer to unknown ones.
    pub fn method_refused(&self) -> u16 {
        match (self.head.method, self.strictness()) {
            (Method::Other, Strictness::Rfc) => 501,
            _ => 405,
        }
    }

    /// The gate's address and options.
    pub fn listen(&self) -> &Listen {
        self.plan.listen(self.client.listen)
    }

    /// Makes the exchange go to another path, as `error_page`, `index` and `try_files` do. The
    /// caller returns [`crate::phase::Verdict::Redirect`].
    pub fn redirect_to(&mut self, path: &[u8], query: &[u8]) {
        self.path.clear();
        self.path.extend_from_slice(path);
        self.query.clear();
        self.query.extend_from_slice(query);
    }

    /// Sets the response's content type by the path's extension, where it has none yet: from
    /// `types`, else `default_type`.
    pub fn choose_content_type(&mut self) {
        if !self.response.content_type.is_empty() {
            return;
        }
        let plan = self.plan.clone();
        let settings = &plan.location(self.location).settings;
        let extension = extension(&self.path).unwrap_or_default();
        let kind = match extension.iter().any(u8::is_ascii_uppercase) {
            true => settings
                .types
                .get(extension.to_ascii_lowercase().as_slice()),
            false => settings.types.get(extension),
        };
        let kind = kind.unwrap_or(&settings.default_type);
        self.response.set_content_type(kind);
    }

    /// User and password of Basic authentication (RFC 7617), where the request has them.
    pub fn basic_credentials(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let value = self.known_field(Known::Authorization)?;
        let (scheme, token) = value.split_at_checked(6)?;
        if !scheme.eq_ignore_ascii_case(b"basic ") {
            return None;
        }
        let decoded = crate::base64::decode(token.trim_ascii())?;
        let colon = memchr::memchr(b':', &decoded)?;
        (colon > 0).then(|| (decoded[..colon].to_vec(), decoded[colon + 1..].to_vec()))
    }

    /// Takes this request as one of another client: the one that a trusted proxy names.
    pub fn replace_peer(&mut self, peer: PeerAddress) {
        self.connection_peer.get_or_insert(self.client.peer);
        self.client.peer = peer;
    }

    /// Why its connection is closed when it is closed without an answer.
    pub(crate) fn reason_without_answer(&self) -> CloseReason {
        match self.walk.error_status() {
            CLIENT_CLOSED_REQUEST => CloseReason::ClientAborted,
            _ => CloseReason::Refused,
        }
    }

    /// The status that logs and metrics have.
    pub(crate) fn logged_status(&self) -> u16 {
        match (self.walk.error_status(), self.response.status) {
            (0, 0) if self.head.version == turnpike_wire::message::Version::Http09 => 9,
            (0, status) | (status, _) => status,
        }
    }

    /// Says that the client closed the connection before it was answered: 499.
    pub fn client_went_away(&mut self) -> Verdict {
        self.client_closed_request();
        self.log(
            Level::Info,
            format_args!("client prematurely closed connection"),
        );
        Verdict::Close
    }

    /// Takes the request as one whose client did not wait for the answer: 499 in logs.
    pub fn client_closed_request(&mut self) {
        self.walk.set_error_status(CLIENT_CLOSED_REQUEST);
    }

    /// Whether the request's method is HEAD or GET.
    pub fn is_get_or_head(&self) -> bool {
        matches!(self.head.method, Method::Get | Method::Head)
    }
}

/// What stands behind the last dot of a path's last segment. A dot at the segment's start does not
/// count, nor do the first two bytes of the path: nginx's rule.
fn extension(path: &[u8]) -> Option<&[u8]> {
    let dot = memchr::memrchr2(b'.', b'/', path)?;
    let counts = dot > 1 && path[dot] == b'.' && path[dot - 1] != b'/';
    counts.then(|| &path[dot + 1..])
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
            Self::KeepAlive => "keepalive",
            Self::ClosingLingering => "closing request",
        }
    }
}
