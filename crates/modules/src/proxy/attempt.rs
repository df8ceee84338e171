//! A request is passed to one server after another, until one has answered.
//!
//! ```text
//!  body read ─► server chosen ─► connected ─► request sent, head read ─► response
//!                   ▲                │               │
//!                   └── next_upstream ◄── failed ◄───┘
//! ```

use std::io;
use std::sync::Arc;

use turnpike_http::body;
use turnpike_http::connection::Stream;
use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::phase::Verdict;
use turnpike_lane::log::{Errno, Level};
use turnpike_upstream::{ConnectError, ConnectOptions, Connection, Picked, Tls, Tries};
use turnpike_wire::h1::{self, Framing, HeadRules, HeadStep, Method, Version};

use super::conditions::Failure;
use super::handler::{Ask, Route};
use super::request::{self, BodyFraming};
use super::seam::{HeadWish, Keeping};
use super::settings::Passing;
use super::upload::{Upload, UploadError};
use super::{relay, response, tunnel};
use crate::upstream::Upstream;

/// Interim responses before the final one: none needs more than a few.
const INTERIM_MAX: usize = 16;

/// Fields of a response's head.
const FIELDS_MAX: usize = 1000;

/// A connection to a server that answers the present request.
pub(super) struct Link {
    pub(super) connection: Connection,
    pub(super) picked: Picked,
    pub(super) upstream: Arc<Upstream>,
}

/// How a try ended without a response.
enum Stop {
    /// The server failed; others may do better.
    Failed(Failure),
    /// The request itself ends.
    Verdict(Verdict),
}

/// One request on its way.
struct Attempt<'a> {
    passing: &'a Arc<Passing>,
    route: &'a Route,
    keeping: Option<Box<dyn Keeping>>,
    upload: Upload,
    /// Whether the client's body is read while it is sent.
    unbuffered: bool,
    /// Whether something was sent to the server that is asked now.
    sent: bool,
}

/// Passes a request on; the verdict says what became of it.
pub(super) async fn run(ask: Ask, exchange: &mut Exchange, client: &mut Stream) -> Verdict {
    let Ask {
        passing,
        route,
        keeping,
    } = ask;
    let passes = is_unbuffered(exchange, &passing);
    let unbuffered = passes && !body_is_here(exchange);
    if !passes && let Err(verdict) = client.read_body(exchange).await {
        return verdict;
    }
    let mut attempt = Attempt {
        passing: &passing,
        route: &route,
        keeping,
        upload: Upload::of_output(),
        unbuffered,
        sent: false,
    };
    attempt.try_all(exchange, client).await
}

/// Whether the body is passed on as it comes.
fn is_unbuffered(exchange: &Exchange, passing: &Passing) -> bool {
    let request = &passing.request;
    let chunked = exchange.head.framing == Framing::Chunked;
    exchange.head.framing != Framing::None
        && !request.buffered
        && request.body.is_none()
        && request.passes_body
        && !exchange.body.is_finished()
        && (!chunked || request.version == Version::Http11)
}

/// Whether the whole body came with the head: then it is kept, as if it had been waited for.
fn body_is_here(exchange: &mut Exchange) -> bool {
    // What is wrong with it is found again when it is read.
    exchange.take_buffered_body(true) == Ok(body::Progress::Complete)
}

impl Attempt<'_> {
    async fn try_all(&mut self, exchange: &mut Exchange, client: &Stream) -> Verdict {
        let upstream = self.route.upstream(self.passing);
        let mut tries = upstream.begin(exchange);
        if self.passing.next_tries_max > 0 {
            tries.limit(self.passing.next_tries_max);
        }
        let started_ms = exchange.lane.clock.now_ms();
        let mut after_redirect = !exchange.upstream.tries.is_empty();
        loop {
            let now_ms = exchange.lane.clock.now_ms();
            exchange.upstream.clear_answer();
            self.sent = false;
            let Ok(picked) = tries.next(now_ms) else {
                return self.no_live(exchange, &tries, after_redirect);
            };
            let name = Arc::from(picked.name());
            exchange.upstream.begin_try(name, now_ms, after_redirect);
            after_redirect = false;
            self.name_target(exchange, &picked);
            let (link, stop) = match self.connect(exchange, client, picked).await {
                Err((picked, stop)) => ((None, Some(picked)), stop),
                Ok(mut link) => match self.converse(exchange, client, &mut link).await {
                    Ok(()) => match self.next_status(exchange, &tries, started_ms) {
                        None => return self.answered(exchange, link),
                        Some(failure) => {
                            let Link {
                                connection, picked, ..
                            } = link;
                            ((Some(connection), Some(picked)), Stop::Failed(failure))
                        }
                    },
                    Err(stop) => {
                        let Link {
                            connection, picked, ..
                        } = link;
                        ((Some(connection), Some(picked)), stop)
                    }
                },
            };
            let failure = match stop {
                Stop::Verdict(verdict) => {
                    end_try(exchange, link.0.as_ref());
                    return verdict;
                }
                Stop::Failed(failure) => failure,
            };
            self.failed(exchange, &mut tries, link, failure);
            if !self.may_go_on(exchange, &tries, failure, started_ms) {
                return self.give_up(exchange, failure);
            }
        }
    }

    fn no_live(&mut self, exchange: &mut Exchange, tries: &Tries, after_redirect: bool) -> Verdict {
        let name = tries.group().name();
        let now_ms = exchange.lane.clock.now_ms();
        exchange
            .upstream
            .begin_try(Arc::from(name), now_ms, after_redirect);
        let target = &mut exchange.upstream.target;
        target.clear();
        target.extend_from_slice(self.route.scheme(self.passing));
        target.extend_from_slice(name.as_bytes());
        self.push_path(exchange);
        exchange.action.set(Action::ConnectingUpstream);
        exchange.log(Level::Error, format_args!("no live upstreams"));
        if let Some(one) = exchange.upstream.last_try() {
            one.status = Failure::NoLive.status();
        }
        end_try(exchange, None);
        self.give_up(exchange, Failure::NoLive)
    }

    /// What the log says of the server from here on.
    fn name_target(&self, exchange: &mut Exchange, picked: &Picked) {
        let target = &mut exchange.upstream.target;
        target.clear();
        target.extend_from_slice(self.route.scheme(self.passing));
        target.extend_from_slice(picked.name().as_bytes());
        if matches!(picked.address(), turnpike_upstream::Address::Unix(_)) {
            target.push(b':');
        }
        self.push_path(exchange);
    }

    fn push_path(&self, exchange: &mut Exchange) {
        let mut target = std::mem::take(&mut exchange.upstream.target);
        request::write_target(exchange, &self.route.path(self.passing), &mut target);
        exchange.upstream.target = target;
    }

    /// A connection to the server: an idle one, or a new one.
    async fn connect(
        &self,
        exchange: &mut Exchange,
        client: &Stream,
        picked: Picked,
    ) -> Result<Link, (Picked, Stop)> {
        let passing = self.passing;
        let upstream = Arc::clone(self.route.upstream(passing));
        let bind = passing.bind.address(exchange);
        let secured = passing.tls.as_ref();
        let secured = secured.filter(|_| self.route.is_secure(passing));
        let secured = secured.map(|tls| (&tls.connector, tls.name(exchange)));
        let tls = secured.as_ref().map(|(connector, name)| Tls {
            connector,
            name,
            timeout_ms: passing.timeouts.connect_ms,
        });
        let options = ConnectOptions {
            bind: bind.as_ref().map(|(address, _)| address),
            transparent: bind.is_some_and(|(_, transparent)| transparent),
            socket_keepalive: passing.socket_keepalive,
            send_buffer_bytes: passing.send_buffer_bytes,
            receive_buffer_bytes: passing.receive_buffer_bytes,
            timeout_ms: passing.timeouts.connect_ms,
            tls,
            location: passing.location,
        };
        let now_ms = exchange.lane.clock.now_ms();
        let pool = upstream.pool(&exchange.plan);
        if let Some(connection) = pool.take(&picked, &options, now_ms, !is_repeatable(exchange)) {
            connected(exchange);
            return Ok(Link {
                connection,
                picked,
                upstream,
            });
        }
        exchange.action.set(Action::ConnectingUpstream);
        let opened = tokio::select! {
            opened = Connection::open(&picked, &options, now_ms) => Some(opened),
            () = self.client_gone(client) => None,
        };
        exchange.lane.clock.update();
        match opened {
            Some(Ok(connection)) => {
                connected(exchange);
                Ok(Link {
                    connection,
                    picked,
                    upstream,
                })
            }
            Some(Err(error)) => Err((picked, not_connected(exchange, &error))),
            None => Err((picked, client_went_away(exchange))),
        }
    }

    /// Ends when the client has gone, where that matters.
    async fn client_gone(&self, client: &Stream) {
        if self.passing.ignores_client_abort {
            return std::future::pending().await;
        }
        client.closed_by_client().await;
    }

    /// Sends the request and reads the head of the answer, which may come before all is sent.
    async fn converse(
        &mut self,
        exchange: &mut Exchange,
        client: &Stream,
        link: &mut Link,
    ) -> Result<(), Stop> {
        self.write_request(exchange);
        exchange.action.set(Action::SendingUpstream);
        let mut input = std::mem::take(&mut exchange.upstream.input);
        let mut head = std::mem::take(&mut exchange.upstream.head);
        let read = self
            .read_head(exchange, client, link, &mut input, &mut head)
            .await;
        exchange.upstream.input = input;
        exchange.upstream.head = head;
        read?;
        exchange.lane.clock.update();
        let now_ms = exchange.lane.clock.now_ms();
        let status = exchange.upstream.head.status;
        if let Some(one) = exchange.upstream.last_try() {
            one.status = status;
            one.header_ms = Some(now_ms.saturating_sub(one.started_ms));
        }
        Ok(())
    }

    fn write_request(&mut self, exchange: &mut Exchange) {
        let passing = self.passing;
        let mut output = std::mem::take(&mut exchange.upstream.output);
        let mut target = std::mem::take(&mut exchange.scratch);
        output.clear();
        target.clear();
        request::write_target(exchange, &self.route.path(passing), &mut target);
        let own_body = passing.request.body.as_ref();
        let own_body = own_body.map(|template| template.value(exchange));
        let framing = self.framing(exchange, own_body.as_deref());
        let keeping = self.keeping.as_deref();
        request::write_head(exchange, passing, keeping, &target, framing, &mut output);
        exchange.scratch = target;
        if let Some(body) = &own_body {
            output.extend_from_slice(body);
        }
        exchange.upstream.output = output;
        self.upload = match framing {
            BodyFraming::Chunked => Upload::of_client(true),
            BodyFraming::Length(_) if self.unbuffered => Upload::of_client(false),
            BodyFraming::Length(_) if own_body.is_none() => Upload::of_body(exchange),
            BodyFraming::Length(_) | BodyFraming::None => Upload::of_output(),
        };
    }

    fn framing(&self, exchange: &Exchange, own_body: Option<&[u8]>) -> BodyFraming {
        match (own_body, exchange.head.framing) {
            (Some(body), _) => BodyFraming::Length(body.len() as u64),
            (None, Framing::None) => BodyFraming::None,
            _ if !self.passing.request.passes_body => BodyFraming::None,
            (None, Framing::Chunked) if self.unbuffered => BodyFraming::Chunked,
            (None, Framing::Length(length)) if self.unbuffered => BodyFraming::Length(length),
            _ => BodyFraming::Length(exchange.body.length()),
        }
    }

    async fn read_head(
        &mut self,
        exchange: &mut Exchange,
        client: &Stream,
        link: &mut Link,
        input: &mut Vec<u8>,
        head: &mut h1::ResponseHead,
    ) -> Result<(), Stop> {
        let first_bytes = self.passing.buffers.first_bytes;
        let rules = HeadRules {
            line_bytes_max: first_bytes,
            head_bytes_max: first_bytes,
            fields_max: FIELDS_MAX,
            ..HeadRules::default()
        };
        let method = self.method(exchange);
        let timeouts = self.passing.timeouts;
        let connection = &link.connection;
        // Most requests fit into the socket: then nothing has to be watched while they are sent.
        match self.upload.try_send(exchange, connection) {
            Ok(sent) => self.sent |= sent > 0,
            Err(error) => return Err(self.not_sent(exchange, link, error)),
        }
        let mut progress = Progress::default();
        loop {
            let done = self.upload.is_done(exchange);
            if done {
                exchange.action.set(Action::ReadingUpstreamHead);
            }
            let room = first_bytes.saturating_sub(input.len()).max(1);
            let read_ms = if done { timeouts.read_ms } else { 0 };
            let watched = !self.passing.ignores_client_abort && body_is_read(exchange);
            let event = tokio::select! {
                read = connection.read(input, room, read_ms) => Event::Read(read),
                step = self.upload.step(exchange, client, connection, timeouts.send_ms),
                    if !done => Event::Sent(step),
                () = client.closed_by_client(), if done && watched => Event::Gone,
            };
            match event {
                Event::Sent(Ok(_)) => {
                    self.sent = true;
                    continue;
                }
                Event::Sent(Err(error)) => return Err(self.not_sent(exchange, link, error)),
                Event::Gone => return Err(client_went_away(exchange)),
                Event::Read(read) => received(exchange, read)?,
            }
            self.sent = true;
            if take_head(exchange, &rules, method, input, head, &mut progress)? {
                return Ok(());
            }
        }
    }

    /// The method that decides whether the answer has a body.
    fn method(&self, exchange: &Exchange) -> Method {
        let output = &exchange.upstream.output;
        match output.get(..5) {
            Some(b"HEAD ") => Method::Head,
            _ => Method::Get,
        }
    }

    /// What a failure to send means.
    fn not_sent(&mut self, exchange: &Exchange, link: &Link, error: UploadError) -> Stop {
        self.sent |= link.connection.bytes_sent() > 0;
        match error {
            UploadError::Client(verdict) => Stop::Verdict(verdict),
            UploadError::Upstream(error) if error.kind() == io::ErrorKind::TimedOut => {
                Stop::Failed(Failure::Timeout)
            }
            UploadError::Upstream(error) => {
                let errno = Errno(&error);
                exchange.log(Level::Error, format_args!("send() failed {errno}"));
                Stop::Failed(Failure::Error)
            }
        }
    }

    /// Whether the status asks for another server, and there is one.
    fn next_status(&self, exchange: &Exchange, tries: &Tries, started_ms: u64) -> Option<Failure> {
        let failure = Failure::Status(exchange.upstream.head.status);
        self.may_go_on(exchange, tries, failure, started_ms)
            .then_some(failure)
    }

    fn may_go_on(
        &self,
        exchange: &Exchange,
        tries: &Tries,
        failure: Failure,
        started_ms: u64,
    ) -> bool {
        let passing = self.passing;
        let elapsed_ms = exchange.lane.clock.now_ms().saturating_sub(started_ms);
        let late = passing.next_timeout_ms > 0 && elapsed_ms >= passing.next_timeout_ms;
        tries.left() > 0
            && !late
            && !(self.sent && self.unbuffered)
            && passing.next.allow(failure, exchange.head.method, self.sent)
    }

    /// Writes down a try that failed.
    fn failed(
        &self,
        exchange: &mut Exchange,
        tries: &mut Tries,
        link: (Option<Connection>, Option<Picked>),
        failure: Failure,
    ) {
        let (connection, picked) = link;
        if failure == Failure::Timeout {
            exchange.log(
                Level::Error,
                format_args!("upstream timed out (110: Connection timed out)"),
            );
        }
        if let Some(one) = exchange.upstream.last_try() {
            one.status = failure.status();
        }
        end_try(exchange, connection.as_ref());
        let Some(picked) = picked else { return };
        // A kept connection that its server had closed meanwhile says nothing about the server.
        let stale = connection
            .as_ref()
            .is_some_and(|connection| connection.is_reused() && connection.bytes_received() == 0);
        if stale && failure == Failure::Error {
            tries.forgive(picked);
            return;
        }
        let now_ms = exchange.lane.clock.now_ms();
        let disabled = match failure.blame() {
            Some(reason) => picked.failed(reason, now_ms),
            None => false,
        };
        if disabled {
            exchange.log(
                Level::Warn,
                format_args!("upstream server temporarily disabled"),
            );
        }
    }

    fn give_up(&mut self, exchange: &mut Exchange, failure: Failure) -> Verdict {
        let kept = self.keeping.take();
        if let Some(mut keeping) = kept
            && let Some(verdict) = keeping.failed(exchange, failure)
        {
            return verdict;
        }
        exchange.action.set(Action::Sending);
        Verdict::Status(failure.status())
    }

    /// A final head is there: it becomes the response.
    fn answered(&mut self, exchange: &mut Exchange, mut link: Link) -> Verdict {
        let passing = self.passing;
        let upload = std::mem::replace(&mut self.upload, Upload::of_output());
        exchange.response.clear_body();
        response::take_limit_rate(exchange, passing);
        if exchange.upstream.head.status == 101 {
            return tunnel::begin(exchange, passing, link);
        }
        if let Some(status) = response::intercepted(exchange, passing) {
            if let Some(mut keeping) = self.keeping.take() {
                keeping.intercepted(exchange);
            }
            relay::discard(exchange, link);
            return Verdict::Status(status);
        }
        if let Some(verdict) = response::accelerated_redirect(exchange, passing) {
            relay::discard(exchange, link);
            return verdict;
        }
        response::take_head(exchange, passing);
        link.upstream.answered(exchange, &mut link.picked);
        let keeping = match self.keeping.take() {
            None => None,
            Some(mut keeping) => match keeping.head(exchange) {
                HeadWish::Keep => Some(keeping),
                HeadWish::Pass => None,
                HeadWish::Replace(verdict) => {
                    relay::discard(exchange, link);
                    return verdict;
                }
            },
        };
        relay::begin(exchange, passing, link, upload, keeping)
    }
}

/// How far a response's head is.
#[derive(Default)]
struct Progress {
    /// Interim responses before it.
    interim: usize,
    /// Bytes looked at.
    scanned: usize,
}

/// Takes what has come of a head; those of interim responses are passed over. `false`: more is
/// needed.
fn take_head(
    exchange: &Exchange,
    rules: &HeadRules,
    method: Method,
    input: &mut Vec<u8>,
    head: &mut h1::ResponseHead,
    progress: &mut Progress,
) -> Result<bool, Stop> {
    loop {
        match h1::parse_response(input, progress.scanned, rules, method, head) {
            Ok(HeadStep::Incomplete { scanned }) => {
                progress.scanned = scanned;
                return Ok(false);
            }
            Ok(HeadStep::Complete) if head.is_interim() => {
                progress.interim += 1;
                progress.scanned = 0;
                input.drain(..head.head_len);
                if progress.interim > INTERIM_MAX {
                    return Err(invalid(
                        exchange,
                        "upstream sent too many interim responses",
                    ));
                }
            }
            Ok(HeadStep::Complete) if head.status == 101 && !wants_upgrade(exchange) => {
                return Err(invalid(exchange, "upstream sent unexpected status 101"));
            }
            Ok(HeadStep::Complete) => return Ok(true),
            Err(error) => return Err(invalid(exchange, error.reason())),
        }
    }
}

/// What a wait brought.
enum Event {
    Read(io::Result<usize>),
    Sent(Result<bool, UploadError>),
    Gone,
}

/// Whether what the client sends now is no part of this request.
fn body_is_read(exchange: &Exchange) -> bool {
    exchange.head.framing == Framing::None || exchange.body.is_finished()
}

/// What reading brought, or why nothing.
fn received(exchange: &Exchange, read: io::Result<usize>) -> Result<(), Stop> {
    exchange.action.set(Action::ReadingUpstreamHead);
    match read {
        Ok(0) => {
            exchange.log(
                Level::Error,
                format_args!("upstream prematurely closed connection"),
            );
            Err(Stop::Failed(Failure::Error))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            Err(Stop::Failed(Failure::Timeout))
        }
        Err(error) => {
            let errno = Errno(&error);
            exchange.log(Level::Error, format_args!("recv() failed {errno}"));
            Err(Stop::Failed(Failure::Error))
        }
    }
}

fn invalid(exchange: &Exchange, reason: &str) -> Stop {
    exchange.log(Level::Error, format_args!("{reason}"));
    Stop::Failed(Failure::InvalidHeader)
}

fn wants_upgrade(exchange: &Exchange) -> bool {
    exchange.known_field(h1::Known::Upgrade).is_some()
}

/// Whether the request may be sent again when the first connection turns out to be closed.
fn is_repeatable(exchange: &Exchange) -> bool {
    use Method::{Delete, Get, Head, Options, Put};
    matches!(exchange.head.method, Get | Head | Options | Put | Delete)
}

fn connected(exchange: &mut Exchange) {
    let now_ms = exchange.lane.clock.now_ms();
    if let Some(one) = exchange.upstream.last_try() {
        one.connect_ms = Some(now_ms.saturating_sub(one.started_ms));
    }
}

/// What a failure to connect means.
fn not_connected(exchange: &Exchange, error: &ConnectError) -> Stop {
    let connecting = matches!(
        error,
        ConnectError::Socket(_)
            | ConnectError::Bind(_)
            | ConnectError::Connect(_)
            | ConnectError::TimedOut
    );
    if !connecting {
        exchange.action.set(Action::HandshakingUpstream);
    }
    if error.is_timeout() {
        return Stop::Failed(Failure::Timeout);
    }
    exchange.log(Level::Error, format_args!("{error}"));
    Stop::Failed(Failure::Error)
}

/// Says that the client did not wait.
fn client_went_away(exchange: &mut Exchange) -> Stop {
    exchange.log(
        Level::Info,
        format_args!(
            "epoll_wait() reported that client prematurely closed connection, so upstream \
             connection is closed too"
        ),
    );
    exchange.client_closed_request();
    Stop::Verdict(Verdict::Close)
}

/// Writes down how long a try took and what went over its connection.
pub(super) fn end_try(exchange: &mut Exchange, connection: Option<&Connection>) {
    exchange.lane.clock.update();
    let now_ms = exchange.lane.clock.now_ms();
    let Some(one) = exchange.upstream.last_try() else {
        return;
    };
    if one.response_ms.is_none() {
        one.response_ms = Some(now_ms.saturating_sub(one.started_ms));
    }
    if let Some(connection) = connection {
        one.bytes_sent = connection.bytes_sent();
        one.bytes_received = connection.bytes_received();
    }
}
