//! One request and its answer, with all that handlers, variables and logs ask about it.
//!
//! An exchange owns the bytes of its request's head. It is taken from the lane's pool and
//! goes back there, so that its buffers are grown once and a request that needs no more than they
//! hold allocates nothing.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_lane::event_loop::waiting_connections_max;
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::Level;
use turnpike_wire::host;
use turnpike_wire::message::{
    BodyLength, Digits, Fields, Known, Method, Strictness, Version, holds_control,
};

use crate::account::Account;
pub use crate::account::Action;
use crate::body::RequestBody;
use crate::counters::CloseReason;
use crate::engine::walk::{Purpose, Walk};
use crate::evaluation::Evaluation;
use crate::lane::{LanePlan, LaneShared};
use crate::phase::Verdict;
use crate::plan::listen::Listen;
use crate::plan::resolved::{Location, Server};
use crate::request::Request;
use crate::requester::{ConnectionFacts, Requester};
use crate::response::Response;
use crate::rooms::Rooms;
use crate::running::{RequestId, Running};
use crate::sending::Sending;
use crate::streams::places::Need;
use crate::upstream::Upstream;
use turnpike_plan::messages::CLIENT_TIMED_OUT;

/// Status that logs have where the client did not wait for its answer; nginx's own.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Status that logs have where the client was too slow to be answered.
const REQUEST_TIMED_OUT: u16 = 408;

/// A request in flight.
pub struct Exchange {
    /// The lane's clock, counters and pools.
    pub lane: Rc<LaneShared>,
    /// The configuration that this request began with; it ends with the same.
    pub plan: Rc<LanePlan>,
    /// The sender of the request.
    pub requester: Requester,
    /// The received request; subrequests share it, and nothing replaces it.
    request: Rc<Request>,
    pub body: RequestBody,
    /// The position in the phases, and the current target.
    pub walk: Walk,
    /// The response.
    pub response: Response,
    /// The upstream servers that were tried.
    pub upstream: Upstream,
    /// The state of sending the response.
    pub sending: Sending,
    /// The values of variables and the results of regular expressions.
    pub evaluation: Evaluation,
    /// Time, bytes and the current action.
    pub account: Account,
    /// The data of directive families.
    pub rooms: Rooms,
}

/// A request's memory that a subrequest has no use for, as it shares the request of another.
#[derive(Default)]
struct UnusedRequest(Option<Rc<Request>>);

impl Exchange {
    /// A new exchange with empty buffers; the pool calls this when it has none to spare.
    pub fn new(lane: Rc<LaneShared>, plan: Rc<LanePlan>, connection: ConnectionFacts) -> Self {
        Self {
            lane,
            plan,
            requester: Requester::new(connection),
            request: Rc::default(),
            body: RequestBody::default(),
            walk: Walk::default(),
            response: Response::default(),
            upstream: Upstream::default(),
            sending: Sending::default(),
            evaluation: Evaluation::default(),
            account: Account::default(),
            rooms: Rooms::default(),
        }
    }

    /// Makes ready for the next request on the same connection.
    pub fn begin_request(&mut self) {
        if self.account.has_begun() {
            self.clear_request();
        }
        self.account.begin(self.lane.clock.now_ms());
    }

    /// Lets go of everything that is of a request or its connection.
    pub(crate) fn clear(&mut self) {
        self.requester.leave_connection();
        self.clear_request();
    }

    fn clear_request(&mut self) {
        match Rc::get_mut(&mut self.request) {
            Some(request) => request.clear(),
            None => self.request = self.take_unused_request(),
        }
        self.body.clear();
        self.walk.clear();
        self.response.clear();
        self.upstream.clear();
        self.sending.clear();
        self.evaluation.clear();
        self.account.clear();
        self.rooms.clear();
        self.requester.clear_named_peer();
    }

    /// Gives buffers of more than `bytes_max` back to the allocator; says how many bytes the others
    /// hold.
    pub(crate) fn trim_buffers(&mut self, bytes_max: usize) -> usize {
        let mut kept_bytes = self.rooms.spare_bytes();
        let mut trim = |buffer: &mut Vec<u8>| {
            if buffer.capacity() > bytes_max {
                *buffer = Vec::new();
            }
            kept_bytes += buffer.capacity();
        };
        if let Some(request) = Rc::get_mut(&mut self.request) {
            trim(request.buffer());
        }
        self.upstream.buffers().into_iter().for_each(&mut trim);
        self.body.buffers().into_iter().for_each(&mut trim);
        trim(self.walk.changed_fields_mut().buffer());
        trim(self.sending.output());
        trim(self.response.text_mut());
        trim(self.evaluation.buffer());
        kept_bytes
    }

    /// Goes back to where a connection is before its request is known: the default server of its
    /// gate. What an exchange served before may not even exist in its present plan.
    pub(crate) fn leave_location(&mut self) {
        self.walk.set_server(self.listen().default_server);
        self.walk.set_location(self.server().root);
    }

    /// The request as it was read.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Value of the first request header field that the parser knows by this number.
    pub fn known_field(&self, known: Known) -> Option<&[u8]> {
        self.fields().known(known)
    }

    /// The request's method as text.
    pub fn method_name(&self) -> &[u8] {
        match self.method() {
            Method::Other => self.request.head().method_text(),
            known => known.name().as_bytes(),
        }
    }

    /// The request's fields: those that were read, with the changes of
    /// [`Exchange::change_fields`].
    pub fn fields(&self) -> &Fields {
        self.walk.changed_fields().over(&self.request.head().fields)
    }

    /// The host that the request names and its port (0: none): those of its target, or else of
    /// `Host`. A `Host` that the configuration has changed takes their place, as it is written.
    pub fn named_host(&self) -> (&[u8], u16) {
        let read = self.request.head();
        let field = self.known_field(Known::Host);
        if !self.walk.changed_fields().is_changed() || field == read.known(Known::Host) {
            return (self.request.host(), read.host_port);
        }
        let written = field.unwrap_or_default();
        match host::validate(written) {
            Ok(host) => (written.get(..host.len).unwrap_or_default(), host.port),
            Err(_) => (written, 0),
        }
    }

    /// Appends the host that the request is for (`$host`), in lower case: the one that it names, or
    /// else the name of its server.
    pub fn append_host(&self, out: &mut Vec<u8>) {
        match self.named_host() {
            (b"", _) => out.extend_from_slice(&self.server().name),
            (host, _) => host::lower_case(host, out),
        }
    }

    /// Appends the same with the port that the request names, as applications and the keys of
    /// caches have it.
    pub fn append_host_and_port(&self, out: &mut Vec<u8>) {
        self.append_host(out);
        let (_, port) = self.named_host();
        if port > 0 {
            out.push(b':');
            out.extend_from_slice(Digits::of(u64::from(port)).text());
        }
    }

    /// Changes the fields that this walk and the subrequests made from now on see. The request
    /// stays as it was read, and so do framing, connection and server, which were settled then.
    pub fn change_fields(&mut self, change: impl FnOnce(&mut Fields)) {
        let read = &self.request.head().fields;
        self.walk.changed_fields_mut().change(read, change);
    }

    /// Whether `Connection` names this field; such a field is not passed on (RFC 9110 section
    /// 7.6.1).
    pub fn is_connection_option(&self, name: &[u8]) -> bool {
        self.request.head().connection.options > 0 && self.fields().is_connection_option(name)
    }

    /// The method that is asked with: the client's, unless an error or a subrequest has another.
    pub fn method(&self) -> Method {
        self.walk.method().unwrap_or(self.request.head().method)
    }

    /// Takes the query of the request as it was read.
    pub(crate) fn take_query(&mut self) {
        self.walk.read_query(self.request.head().query());
    }

    /// The length of the body; a subrequest may have none where its request has one.
    pub fn body_length(&self) -> BodyLength {
        if self.body.is_left_out() {
            BodyLength::None
        } else {
            self.request.head().body
        }
    }

    /// Changes the request while it is read. One that is shared was read already, and stays as it
    /// is: a new one takes its place.
    pub(crate) fn read_request<T>(&mut self, read: impl FnOnce(&mut Request) -> T) -> T {
        if let Some(request) = Rc::get_mut(&mut self.request) {
            return read(request);
        }
        let mut request = Request::default();
        let result = read(&mut request);
        self.request = Rc::new(request);
        result
    }

    /// Makes this exchange one for the request of another, which is read already.
    pub(crate) fn share_request(&mut self, other: &Exchange) {
        let own = std::mem::replace(&mut self.request, Rc::clone(&other.request));
        let mut unused: Box<UnusedRequest> = self.rooms.take_spare();
        unused.0 = Some(own);
        // It is no longer there when the exchange goes back to the pool.
        self.rooms.keep_spare(unused, 0);
    }

    /// The request that was this exchange's own before it shared another's.
    fn take_unused_request(&mut self) -> Rc<Request> {
        let mut unused: Box<UnusedRequest> = self.rooms.take_spare();
        let own = unused.0.take();
        self.rooms.keep_spare(unused, 0);
        own.unwrap_or_default()
    }

    /// Appends the file or folder that the path stands for (`$request_filename`).
    pub fn file_path(&self, out: &mut Vec<u8>) {
        self.file_path_of(self.walk.path(), out);
    }

    /// Appends the file or folder that another path stands for in the same location.
    pub fn file_path_of(&self, path: &[u8], out: &mut Vec<u8>) {
        let below_alias = self.walk.is_path_below_alias();
        let root = &self.location().settings.root;
        root.file(self, path, below_alias, out);
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        match self.requester.tls() {
            None => "http",
            Some(_) => "https",
        }
    }

    /// The address that the client connected to.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match &self.listen().address {
            ListenAddress::Unix(_) => None,
            ListenAddress::Udp(_) => self.requester.local(),
            ListenAddress::Tcp(address) if !address.ip().is_unspecified() => Some(*address),
            ListenAddress::Tcp(_) => self.requester.socket().local_address().ok()?.inet(),
        }
    }

    /// Whether this request may wait for an upstream server: not where nearly all connections of
    /// the lane are at work already. Else requests that are passed back to this very server would
    /// take all, and wait for one that nobody accepts.
    ///
    /// Requests of HTTP/2 share their connections, so there may be more of them: they have as many
    /// places of their own. Where these are all taken, some give way whose clients do not move
    /// them.
    pub fn may_wait_for_upstream(&self) -> bool {
        let waiting_max = waiting_connections_max(self.plan.events.connections_max);
        let sessions = self.lane.common.sessions();
        let streams = self.lane.stream_places();
        let working = self.lane.http1_working() + streams.busy_connections();
        if working + sessions > waiting_max {
            return false;
        }
        let activity = self.account.activity();
        if !self.is_of_stream() || activity.has_upstream_place() {
            return true;
        }
        let now_ms = self.lane.clock.now_ms();
        if streams.at_upstream() >= waiting_max && !streams.make_room(Need::Upstream, now_ms) {
            return false;
        }
        activity.set_upstream_place(Some(streams.upstream_place()));
        true
    }

    /// Whether a client of HTTP/2 or HTTP/3 waits for the answer to this request itself.
    fn is_of_stream(&self) -> bool {
        self.request.head().version >= Version::Http20 && self.walk.purpose() == Purpose::Request
    }

    /// Value of the first request header field of that name.
    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields().value(name)
    }

    /// The location in force.
    pub fn location(&self) -> &Location {
        self.plan.location(self.walk.location())
    }

    /// The server block in force.
    pub fn server(&self) -> &Server {
        self.plan.server(self.walk.server())
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
        match (self.method(), self.strictness()) {
            (Method::Other, Strictness::Rfc) => 501,
            _ => 405,
        }
    }

    /// The gate's address and options.
    pub fn listen(&self) -> &Listen {
        self.plan.listen(self.requester.listen())
    }

    /// Sets the response's content type by the path's extension, where it has none yet: from
    /// `types`, else `default_type`.
    pub fn choose_content_type(&mut self) {
        if !self.response.content_type().is_empty() {
            return;
        }
        let settings = &self.plan.location(self.walk.location()).settings;
        let kind = extension(self.walk.path()).and_then(|extension| {
            if extension.iter().any(u8::is_ascii_uppercase) {
                settings
                    .types
                    .get(extension.to_ascii_lowercase().as_slice())
            } else {
                settings.types.get(extension)
            }
        });
        let kind = kind.unwrap_or(&settings.default_type);
        self.response.set_content_type(kind);
    }

    /// Appends what stands in Basic credentials (RFC 7617), where the request has them: the user,
    /// a colon and the password. Returns the bytes of the user.
    pub fn basic_credentials(&self, out: &mut Vec<u8>) -> Option<usize> {
        let value = self.known_field(match self.method() {
            // The one that asks is a proxy then (RFC 9110 section 11.7.2).
            Method::Connect => Known::ProxyAuthorization,
            _ => Known::Authorization,
        })?;
        let (scheme, token) = value.split_at_checked(6)?;
        if !scheme.eq_ignore_ascii_case(b"basic ") {
            return None;
        }
        let start = out.len();
        if !crate::base64::decode_into(token.trim_ascii(), out) {
            return None;
        }
        let colon = memchr::memchr(b':', out.get(start..)?)?;
        (colon > 0).then_some(colon)
    }

    /// Why its connection is closed when it is closed without an answer.
    pub(crate) fn reason_without_answer(&self) -> CloseReason {
        match self.walk.error_status() {
            CLIENT_CLOSED_REQUEST => CloseReason::ClientAborted,
            _ => CloseReason::Refused,
        }
    }

    /// The status that logs and metrics have.
    pub fn logged_status(&self) -> u16 {
        match (self.walk.error_status(), self.response.status()) {
            (0, 0) if self.request.head().version == turnpike_wire::message::Version::Http09 => 9,
            (0, status) | (status, _) => status,
        }
    }

    /// Says that the client closed the connection before it was answered: 499.
    pub fn client_went_away(&mut self) -> Verdict {
        self.client_closed_request();
        self.log_client_closed();
        Verdict::Close
    }

    /// Takes the request as one whose client did not wait for the answer: 499 in logs.
    pub fn client_closed_request(&mut self) {
        self.walk.set_error_status(CLIENT_CLOSED_REQUEST);
    }

    /// The numbers of its connection and of the request on it.
    pub(crate) fn id(&self) -> RequestId {
        RequestId {
            connection: self.requester.serial(),
            request: self.requester.requests(),
        }
    }

    /// The request for lists, to be looked at while the exchange goes on.
    pub(crate) fn running(&self) -> Running {
        Running {
            id: self.id(),
            peer: self.requester.peer(),
            server: Arc::clone(&self.server().name),
            request: Rc::clone(&self.request),
            started_ms: self.account.started_ms(),
            activity: Rc::clone(self.account.activity()),
            socket: self.requester.socket(),
            send_timeout_ms: self.location().settings.send_timeout_ms,
        }
    }

    /// An operator has closed the request. Logs have 499 where no response was begun.
    pub(crate) fn closed_by_command(&mut self) {
        self.closed_here(format_args!(
            "request was closed by the command \"requests\""
        ));
    }

    /// The time of a graceful end has passed. Logs have 499 where no response was begun.
    pub(crate) fn closed_by_shutdown(&mut self) {
        self.closed_here(format_args!(
            "request was closed, worker_shutdown_timeout has passed"
        ));
    }

    /// Another request needs the place of this one, whose client does not move it. Logs have 408
    /// where no response was begun.
    pub(crate) fn gave_way(&mut self) {
        if self.account.sent_bytes() == 0 {
            self.walk.set_error_status(REQUEST_TIMED_OUT);
        }
        self.log(
            Level::Info,
            format_args!("{CLIENT_TIMED_OUT}, its place is needed"),
        );
    }

    fn closed_here(&mut self, message: std::fmt::Arguments<'_>) {
        if self.account.sent_bytes() == 0 {
            self.client_closed_request();
        }
        self.log(Level::Notice, message);
    }

    /// Whether the request's method is HEAD or GET.
    pub fn is_get_or_head(&self) -> bool {
        matches!(self.method(), Method::Get | Method::Head)
    }
}

/// The extension of a path's last segment, by nginx's rule: a dot at the start of the segment and
/// the first two bytes of the path do not count.
fn extension(path: &[u8]) -> Option<&[u8]> {
    let dot = memchr::memrchr2(b'.', b'/', path)?;
    let counts = dot > 1 && path[dot] == b'.' && path[dot - 1] != b'/';
    counts.then(|| &path[dot + 1..])
}

#[cfg(test)]
mod tests;
