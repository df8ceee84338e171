//! A request is passed to one server after another, until one has answered.
//!
//! ```text
//!  body read ─► server chosen ─► connected ─► request sent, head read ─► response
//!                   ▲                │               │
//!                   └── next_upstream ◄── failed ◄───┘
//! ```

mod connecting;
mod exceptions;
mod request_body;
mod servers;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_http::client::Client;
use turnpike_http::exchange::{Action, Exchange};
use turnpike_http::phase::{Verdict, Work};
use turnpike_http::received::Received;
use turnpike_http::regex::Settled;
use turnpike_lane::log::{Errno, Level};
use turnpike_upstream::{
    ConnectOptions, Connection, Liveness, Picked, Tls, Tries, UPSTREAM_TIMED_OUT, Unqueued,
};
use turnpike_wire::message::{BodyLength, Delivery, Head, Method};

use super::conditions::Failure;
use super::early_hints::Hints;
use super::handler::{Ask, Route};
use super::head::{Progress, ReceivedHead, received};
use super::http2::{Opening, StreamBody, Trailers};
use super::origin::{BodyFraming, Carries, Question, Unwritable};
use super::relay::Answer;
use super::response_store::{Recorder, RecorderDecision};
use super::server::{Stop, UpstreamConnection};
use super::settings::Passing;
use super::try_notes::{client_went_away, connected, end_try, not_connected};
use super::upload::{Upload, UploadError};
use super::{awaited_head, http2_connection, relay, response, tunnel};
use request_body::{body_is_here, fits, is_unbuffered};

impl UpstreamConnection {
    /// Ends the try without a response.
    pub(crate) fn stopped(self, stop: Stop) -> Step {
        Step::Stopped(Some(self.connection), self.picked, stop)
    }
}

/// One request on its way.
pub(crate) struct Attempt {
    pub(crate) passing: Arc<Passing>,
    route: Route,
    recorder: Option<Box<dyn Recorder>>,
    hints: Hints,
    pub(crate) upload: Upload,
    /// Whether the client's body is read while it is sent.
    unbuffered: bool,
    /// Whether something was sent to the server that is asked now.
    pub(crate) sent: bool,
    /// How far its answer's head is.
    pub(crate) progress: Progress,
    /// When that must be whole, in the lane's monotonic milliseconds; 0: never, or not all of the
    /// request is sent.
    pub(crate) head_deadline_ms: u64,
    tries: Tries,
    started_ms: u64,
    /// Whether an internal redirect lies between this try and the one before.
    after_redirect: bool,
}

/// Where a request that waits goes on.
pub(crate) enum Step {
    /// The body is to be read.
    Body,
    /// No server has room; the request waits for one if it may.
    Queue,
    /// The request goes to this server.
    Connect(Picked),
    /// Connecting to this server is under way; then the request is to be written.
    Connecting(UpstreamConnection),
    /// The request is to be written for this connection.
    Write(UpstreamConnection),
    /// The request is sent so far.
    Send(UpstreamConnection),
    /// The try was stopped with this server.
    Stopped(Option<Box<Connection>>, Picked, Stop),
}

/// A request that waits.
pub(crate) struct Pending {
    pub(crate) attempt: Attempt,
    pub(crate) step: Step,
}

impl Work for Pending {
    async fn run(mut self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        self.attempt.hints.send(exchange, client).await;
        self.attempt.run_steps(exchange, client, self.step).await
    }
}

/// Begins to pass a request on. What can be done at once is: a kept connection is written to, and
/// the answer awaited without a task.
pub(crate) fn begin(exchange: &mut Exchange, ask: Ask) -> Verdict {
    let Ask {
        passing,
        route,
        recorder,
    } = ask;
    let tries = begin_tries(exchange, &passing, &route);
    if exchange.is_undecided() {
        // No server may see what this request is not.
        return Verdict::Undecided;
    }
    let mut attempt = Attempt {
        route,
        recorder,
        hints: Hints::default(),
        upload: Upload::of_output(),
        unbuffered: false,
        sent: false,
        progress: Progress::default(),
        head_deadline_ms: 0,
        tries,
        started_ms: exchange.lane.clock.now_ms(),
        after_redirect: !exchange.upstream.tries().is_empty(),
        passing,
    };
    if !exchange.may_wait_for_upstream() {
        return attempt.no_connection(exchange);
    }
    let body_waits = match body_is_here(exchange) {
        Ok(here) => !here || !fits(exchange, &attempt.passing),
        Err(verdict) => return verdict,
    };
    attempt.hints = Hints::of_store(exchange, &attempt.passing);
    if exchange.request().head().expects_continue || body_waits || attempt.hints.wait() {
        let step = Step::Body;
        return Verdict::Wait(Box::new(Pending { attempt, step }));
    }
    let Some(picked) = attempt.next_server(exchange) else {
        let step = Step::Queue;
        return if attempt.may_queue() {
            Verdict::Wait(Box::new(Pending { attempt, step }))
        } else {
            attempt.no_live(exchange, Unqueued::NoQueue)
        };
    };
    match attempt.idle_connection(exchange, picked) {
        Ok(server) => awaited_head::begin(exchange, attempt, server),
        Err(picked) => attempt.connect_at_once(exchange, picked),
    }
}

fn begin_tries(exchange: &Exchange, passing: &Passing, route: &Route) -> Tries {
    let mut tries = route.upstream(passing).begin(exchange);
    if passing.next_tries_max > 0 {
        tries.limit(passing.next_tries_max);
    }
    tries
}

impl Attempt {
    /// Goes on until there is an answer, or no server is left.
    async fn run_steps(
        mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        mut step: Step,
    ) -> Verdict {
        loop {
            step = match step {
                Step::Body => {
                    let passes = is_unbuffered(exchange, &self.passing);
                    let read = if passes {
                        // It leaves together with the head.
                        client.read_body_at_hand(exchange).await
                    } else {
                        client.read_body(exchange).await
                    };
                    if let Err(verdict) = read {
                        return verdict;
                    }
                    self.unbuffered = passes && !exchange.body.is_finished();
                    self.next_server(exchange)
                        .map_or(Step::Queue, Step::Connect)
                }
                Step::Queue => match self.queued(exchange, client).await {
                    Ok(picked) => Step::Connect(picked),
                    Err(verdict) => return verdict,
                },
                Step::Connect(picked) => match self.connect(exchange, client, picked).await {
                    Ok(server) if self.carries() == Carries::Tunnel => {
                        return tunnel::connected(exchange, &self.passing, server);
                    }
                    Ok(server) => Step::Write(server),
                    Err((picked, stop)) => Step::Stopped(None, picked, stop),
                },
                Step::Connecting(server) => {
                    let connection = &server.connection;
                    match self.connecting(exchange, client, connection).await {
                        Ok(()) => Step::Write(server),
                        Err(stop) => Step::Stopped(None, server.picked, stop),
                    }
                }
                Step::Write(server) => {
                    let written = self.write_decided(exchange, client, &server.connection);
                    match written.await {
                        Ok(()) => Step::Send(server),
                        Err(verdict) => server.stopped(Stop::Verdict(verdict)),
                    }
                }
                Step::Send(mut server) => {
                    let read = self.converse(exchange, client, &mut server).await;
                    match read.map(|()| self.judge(exchange)) {
                        Ok(None) => {
                            return match self.answered(exchange, server) {
                                Ok(answer) => relay::begin(exchange, answer),
                                Err(verdict) => verdict,
                            };
                        }
                        Ok(Some(failure)) => server.stopped(Stop::Failed(failure)),
                        Err(stop) => server.stopped(stop),
                    }
                }
                Step::Stopped(connection, picked, stop) => {
                    match self.stopped(exchange, connection, picked, stop) {
                        Ok(picked) => Step::Connect(picked),
                        Err(verdict) => return verdict,
                    }
                }
            }
        }
    }

    /// What is wrong with the status of the response that has come, where another server may do
    /// better. Notes when it came.
    pub(crate) fn judge(&self, exchange: &mut Exchange) -> Option<Failure> {
        let now_ms = exchange.lane.clock.now_ms();
        let status = exchange.upstream.head().status;
        if let Some(one) = exchange.upstream.last_try() {
            one.status = status;
            one.header_ms = Some(now_ms.saturating_sub(one.started_ms));
        }
        exchange.debug(format_args!("an upstream server answered {status}"));
        let failure = Failure::Status(status);
        let may_go_on = self.may_go_on(exchange, failure) && self.may_retry(exchange);
        may_go_on.then_some(failure)
    }

    /// What the log says of the server from here on.
    fn name_target(&self, exchange: &mut Exchange, picked: &Picked) {
        let target = exchange.upstream.target_mut();
        target.clear();
        target.extend_from_slice(self.route.scheme(&self.passing));
        target.extend_from_slice(picked.name().as_bytes());
        if matches!(picked.address(), turnpike_upstream::Address::Unix(_)) {
            target.push(b':');
        }
        self.push_path(exchange);
    }

    fn push_path(&self, exchange: &mut Exchange) {
        let mut target = std::mem::take(exchange.upstream.target_mut());
        let path = self.route.path(&self.passing);
        self.passing
            .origin
            .write_target(exchange, &path, &mut target);
        *exchange.upstream.target_mut() = target;
    }

    /// A kept connection to the server, where there is one; gives the server back where not.
    fn idle_connection(
        &self,
        exchange: &mut Exchange,
        picked: Picked,
    ) -> Result<UpstreamConnection, Picked> {
        let passing = &self.passing;
        if !self.begins_plainly() {
            return Err(picked);
        }
        let upstream = self.route.upstream(passing);
        let bind = passing.bind.address(exchange);
        let options = self.options(bind.as_ref(), None, &[]);
        let now_ms = exchange.lane.clock.now_ms();
        let liveness = needed_liveness(exchange);
        let plan = Rc::clone(&exchange.plan);
        match upstream
            .pool(&plan)
            .take(&picked, &options, now_ms, liveness)
        {
            Some(connection) => {
                connected(&mut exchange.upstream, &exchange.lane);
                Ok(UpstreamConnection {
                    connection,
                    picked,
                    upstream: Arc::clone(upstream),
                    delivery: Delivery::default(),
                })
            }
            None => Err(picked),
        }
    }

    /// Whether the first bytes on a connection are those of the request.
    fn begins_plainly(&self) -> bool {
        let passing = &self.passing;
        passing.tls.is_none() && passing.proxy_header.is_none() && self.carries() != Carries::Tunnel
    }

    fn carries(&self) -> Carries {
        self.passing.origin.carries()
    }

    fn options<'a>(
        &self,
        bind: Option<&'a (SocketAddr, bool)>,
        tls: Option<Tls<'a>>,
        proxy_header: &'a [u8],
    ) -> ConnectOptions<'a> {
        let passing = &self.passing;
        ConnectOptions {
            bind: bind.map(|(address, _)| address),
            transparent: bind.is_some_and(|(_, transparent)| *transparent),
            socket_keepalive: passing.socket_keepalive,
            send_buffer_bytes: passing.send_buffer_bytes,
            receive_buffer_bytes: passing.receive_buffer_bytes,
            timeout_ms: passing.timeouts.connect_ms,
            sends_at_once: true,
            unix_name: &[],
            proxy_header,
            tls,
            protocol_state: (self.carries() == Carries::Streams).then_some(http2_connection::begin),
            location: passing.location,
        }
    }

    /// A connection to the server: a kept one, or a new one.
    async fn connect(
        &self,
        exchange: &mut Exchange,
        client: Client<'_>,
        picked: Picked,
    ) -> Result<UpstreamConnection, (Picked, Stop)> {
        let passing = &self.passing;
        let upstream = Arc::clone(self.route.upstream(passing));
        let bind = passing.bind.address(exchange);
        let secured = passing.tls.as_ref();
        let secured = secured.filter(|_| self.route.is_secure(passing));
        let secured = match secured {
            None => None,
            Some(tls) => match tls.connector(&*exchange).await {
                Some(connector) => Some((connector, tls.name(exchange, exchange.upstream.host()))),
                None => return Err((picked, Stop::Verdict(Verdict::Status(500)))),
            },
        };
        let tls = secured.as_ref().map(|(connector, name)| Tls {
            connector,
            name,
            protocols: &[],
            timeout_ms: passing.timeouts.connect_ms,
        });
        let proxy_header = passing.proxy_header.of(exchange);
        let options = self.options(bind.as_ref(), tls, &proxy_header);
        let now_ms = exchange.lane.clock.now_ms();
        let pool = upstream.pool(&exchange.plan);
        let kept = match self.carries() {
            // A server may have said something on it to whoever used it before.
            Carries::Tunnel => None,
            Carries::Messages | Carries::Streams => {
                pool.take(&picked, &options, now_ms, needed_liveness(exchange))
            }
        };
        let opened = match kept {
            Some(connection) => Some(Ok(connection)),
            None => {
                exchange.account.set_action(Action::ConnectingUpstream);
                tokio::select! {
                    biased;
                    opened = Connection::open(&picked, &options, now_ms) => Some(opened),
                    () = self.client_gone(client) => None,
                }
            }
        };
        match opened {
            Some(Ok(connection)) => {
                connected(&mut exchange.upstream, &exchange.lane);
                Ok(UpstreamConnection {
                    connection,
                    picked,
                    upstream,
                    delivery: Delivery::default(),
                })
            }
            Some(Err(error)) => Err((picked, not_connected(exchange, &error))),
            None => Err((picked, client_went_away(exchange))),
        }
    }

    /// Whether the request is given up when its client goes: not where others are to get the
    /// answer too.
    pub(crate) fn needs_client(&self) -> bool {
        let outlives = |recorder: &dyn Recorder| recorder.outlives_client();
        !self.passing.ignores_client_abort && !self.recorder.as_deref().is_some_and(outlives)
    }

    /// Ends when the client has gone, where that matters.
    async fn client_gone(&self, client: Client<'_>) {
        if !self.needs_client() {
            return std::future::pending().await;
        }
        client.gone().await;
    }

    /// Sends the request and reads the head of the answer, which may come before all is sent.
    async fn converse(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        server: &mut UpstreamConnection,
    ) -> Result<(), Stop> {
        exchange.account.set_action(Action::SendingUpstream);
        let mut input = std::mem::take(exchange.upstream.input_mut());
        let mut head = std::mem::take(exchange.upstream.head_mut());
        let read = self
            .read_head(exchange, client, server, &mut input, &mut head)
            .await;
        *exchange.upstream.input_mut() = input;
        *exchange.upstream.head_mut() = head;
        read
    }

    /// Writes the request when all that it is made of is known: matches of its variables may have
    /// to be finished off the lane first.
    async fn write_decided(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        connection: &Connection,
    ) -> Result<(), Verdict> {
        loop {
            exchange.begin_matching();
            let written = self.write_request(exchange, connection);
            match exchange.settle_matching() {
                Settled::Decided => return written.map_err(|Unwritable| Verdict::Status(500)),
                Settled::Failed => return Err(Verdict::Status(500)),
                Settled::Wait(waiting) => match waiting.run(exchange, client).await {
                    Verdict::Declined => {}
                    verdict => return Err(verdict),
                },
            }
        }
    }

    /// Writes the request's head, and its body as far as that is at hand.
    ///
    /// # Errors
    /// The origin's, see [`super::origin::Origin::write_head`].
    pub(crate) fn write_request(
        &mut self,
        exchange: &mut Exchange,
        connection: &Connection,
    ) -> Result<(), Unwritable> {
        let passing = &self.passing;
        let own_body = passing.body.instead.as_ref();
        let own_body = own_body.map(|template| template.value(exchange));
        let framing = self.framing(exchange, own_body.as_deref());
        let mut output = std::mem::take(exchange.upstream.output_mut());
        output.clear();
        let question = Question {
            passing,
            path: self.route.path(passing),
            recorder: self.recorder.as_deref(),
            framing,
            is_secure: self.route.is_secure(passing),
        };
        let written = passing.origin.write_head(exchange, &question, &mut output);
        if let Some(http2) = &http2_connection::of(connection) {
            if written.is_ok() && !exchange.is_undecided() {
                let trailers = if passing.origin.passes_trailers() {
                    Trailers::Pass
                } else {
                    Trailers::Drop
                };
                let unbuffered = self.unbuffered;
                let opening = Opening {
                    block: &output,
                    body: StreamBody::of(exchange, framing, own_body, unbuffered, trailers),
                    trailers,
                    head_bytes_max: passing.buffers.first_bytes,
                };
                let (records, upload) = opening.begin(exchange, http2);
                self.progress.records = Some(Box::new(records));
                self.upload = Upload::of_stream(upload);
            }
            *exchange.upstream.output_mut() = output;
            return written;
        }
        let format = passing.origin.body_format(framing);
        if let Some(body) = &own_body {
            format.write_piece(body, &mut output);
        }
        let in_output = own_body.is_some() || framing == BodyFraming::None;
        if in_output {
            format.write_end(&mut output);
        }
        let Exchange { body, upstream, .. } = exchange;
        *upstream.output_mut() = output;
        self.upload = match in_output {
            true => Upload::of_output(),
            false if self.unbuffered => Upload::of_client(body, upstream, format),
            false => Upload::of_body(body, upstream, format),
        };
        written
    }

    fn framing(&self, exchange: &Exchange, own_body: Option<&[u8]>) -> BodyFraming {
        match (own_body, exchange.body_length()) {
            (Some(body), _) => BodyFraming::Length(body.len() as u64),
            (None, BodyLength::None) => BodyFraming::None,
            _ if !self.passing.body.passes => BodyFraming::None,
            (None, BodyLength::Unknown) if self.unbuffered => BodyFraming::Unknown,
            (None, BodyLength::Bytes(length)) if self.unbuffered => BodyFraming::Length(length),
            _ => BodyFraming::Length(exchange.body.length()),
        }
    }

    async fn read_head(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        server: &mut UpstreamConnection,
        input: &mut Received,
        head: &mut Head,
    ) -> Result<(), Stop> {
        let first_bytes = self.passing.buffers.first_bytes;
        let timeouts = self.passing.timeouts;
        let connection = &server.connection;
        // Most requests fit into the socket: then nothing has to be watched while they are sent.
        match self.upload.try_send(exchange, connection) {
            Ok(sent) => self.sent |= sent > 0,
            Err(error) => return Err(self.not_sent(exchange, server, error)),
        }
        let passing = Arc::clone(&self.passing);
        let mut arrived = !input.is_empty();
        loop {
            if self.progress.hints.wait() {
                self.progress.hints.send(exchange, client).await;
            }
            // Also what came in the turn already, or stands behind hints.
            if std::mem::take(&mut arrived) {
                let progress = &mut self.progress;
                match progress.read_head(exchange, &passing, input, head)? {
                    ReceivedHead::Whole => return Ok(()),
                    ReceivedHead::Hints => {
                        arrived = true;
                        continue;
                    }
                    ReceivedHead::Incomplete => {}
                }
            }
            let done = self.upload.is_done(exchange);
            let read_ms = if done { self.await_head(exchange)? } else { 0 };
            let room = first_bytes.saturating_sub(input.len()).max(1);
            let watched = self.needs_client() && body_is_read(exchange);
            let from = input.len();
            let event = tokio::select! {
                biased;
                read = connection.read(input.room(), room, read_ms) => Event::Read(read),
                step = self.upload.step(exchange, client, connection, timeouts.send_ms),
                    if !done => Event::Sent(step),
                () = client.gone(), if done && watched => Event::Gone,
            };
            match event {
                Event::Sent(Ok(_)) => {
                    self.sent = true;
                    continue;
                }
                Event::Sent(Err(error)) => return Err(self.not_sent(exchange, server, error)),
                Event::Gone => return Err(client_went_away(exchange)),
                Event::Read(read) => {
                    received(exchange, read)?;
                    self.progress.take_off(exchange, connection, input, from)?;
                }
            }
            self.sent = true;
            arrived = true;
        }
    }

    /// The request is sent: from here on the answer's head has its time. How much of it is left, in
    /// milliseconds; 0 is without limit.
    pub(crate) fn await_head(&mut self, exchange: &Exchange) -> Result<u64, Stop> {
        exchange.account.set_action(Action::ReadingUpstreamHead);
        let read_ms = self.passing.timeouts.read_ms;
        if read_ms == 0 {
            return Ok(0);
        }
        let now_ms = exchange.lane.clock.now_ms();
        if self.head_deadline_ms == 0 {
            self.head_deadline_ms = now_ms + read_ms;
        }
        match self.head_deadline_ms.saturating_sub(now_ms) {
            0 => Err(Stop::Failed(Failure::Timeout)),
            left_ms => Ok(left_ms),
        }
    }

    /// What a failure to send means.
    pub(crate) fn not_sent(
        &mut self,
        exchange: &Exchange,
        server: &UpstreamConnection,
        error: UploadError,
    ) -> Stop {
        self.sent |= server.connection.bytes_sent() > 0;
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

    fn may_go_on(&self, exchange: &Exchange, failure: Failure) -> bool {
        let passing = &self.passing;
        let elapsed_ms = exchange.lane.clock.now_ms().saturating_sub(self.started_ms);
        let late = passing.next_timeout_ms > 0 && elapsed_ms >= passing.next_timeout_ms;
        self.tries.left() > 0
            && !late
            && !(self.sent && self.unbuffered)
            && passing.next.allow(failure, exchange.method(), self.sent)
    }

    /// Writes down a try that failed. Returns whether another one is a retry: it is none if the
    /// server had closed a kept connection.
    fn failed(
        &mut self,
        exchange: &mut Exchange,
        connection: Option<Box<Connection>>,
        picked: Picked,
        failure: Failure,
    ) -> bool {
        if failure == Failure::Timeout {
            exchange.log(Level::Error, format_args!("{UPSTREAM_TIMED_OUT}"));
        }
        if let Some(one) = exchange.upstream.last_try() {
            one.status = failure.status();
        }
        let tried = connection.as_deref();
        end_try(&mut exchange.upstream, &exchange.lane, tried);
        let kept = connection.filter(|connection| connection.is_reused());
        let is_unprocessed = failure == Failure::Unprocessed;
        if let Some(kept) = kept.filter(|_| failure == Failure::Error || is_unprocessed) {
            self.tries.allow_another();
            if kept.bytes_received() == 0 || is_unprocessed {
                // Its server may have closed it meanwhile, or is about to: that says nothing
                // about the server.
                return false;
            }
        }
        let now_ms = exchange.lane.clock.now_ms();
        let disabled = match failure.blame() {
            Some(reason) => picked.failed(reason, now_ms),
            None => {
                picked.passed_over(now_ms);
                false
            }
        };
        if disabled {
            exchange.log(
                Level::Warn,
                format_args!("upstream server temporarily disabled"),
            );
        }
        true
    }

    fn give_up(&mut self, exchange: &mut Exchange, failure: Failure) -> Verdict {
        let kept = self.recorder.take();
        if let Some(mut recorder) = kept
            && let Some(verdict) = recorder.failed(exchange, failure)
        {
            return verdict;
        }
        exchange.account.set_action(Action::Sending);
        Verdict::Status(failure.status())
    }

    /// A final head is there: it becomes that of the response. The verdict where no body follows
    /// from it.
    pub(crate) fn answered(
        mut self,
        exchange: &mut Exchange,
        mut server: UpstreamConnection,
    ) -> Result<Answer, Verdict> {
        let passing = &self.passing;
        let upload = std::mem::replace(&mut self.upload, Upload::of_output());
        server.delivery = self.progress.delivery;
        exchange.response.clear_body();
        let head = exchange.upstream.head();
        response::take_limit_rate(&mut exchange.sending, head, passing);
        if exchange.upstream.head().status == 101 {
            return Err(tunnel::begin(exchange, passing, server));
        }
        if let Some(status) = response::intercepted(exchange, passing) {
            if let Some(mut recorder) = self.recorder.take() {
                recorder.intercepted(exchange);
            }
            relay::discard(exchange, server, self.progress.records, &upload);
            return Err(Verdict::Status(status));
        }
        if let Some(verdict) = response::accelerated_redirect(exchange, passing) {
            if let Some(mut recorder) = self.recorder.take() {
                recorder.redirected(exchange);
            }
            relay::discard(exchange, server, self.progress.records, &upload);
            return Err(verdict);
        }
        response::take_head(exchange, passing);
        server.upstream.answered(exchange, &mut server.picked);
        let recorder = match self.recorder.take() {
            None => None,
            Some(mut recorder) => match recorder.head(exchange) {
                RecorderDecision::Record => Some(recorder),
                RecorderDecision::Pass => None,
                RecorderDecision::Replace(verdict) => {
                    relay::discard(exchange, server, self.progress.records, &upload);
                    return Err(verdict);
                }
                RecorderDecision::AskAgain => {
                    self.recorder = Some(recorder);
                    return Err(self.ask_again(exchange, server, &upload));
                }
            },
        };
        Ok(Answer {
            server,
            records: self.progress.records,
            upload,
            recorder,
            passing: self.passing,
        })
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
    exchange.body_length() == BodyLength::None || exchange.body.is_finished()
}

/// What is to be known of an idle connection before the request is sent on it: one that turns out
/// to be closed costs nothing where the request may be sent again.
fn needed_liveness(exchange: &Exchange) -> Liveness {
    use Method::{Delete, Get, Head, Options, Put};
    match exchange.method() {
        Get | Head | Options | Put | Delete => Liveness::Trust,
        _ => Liveness::Ask,
    }
}
