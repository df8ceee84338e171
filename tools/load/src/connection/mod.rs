//! One connection slot: from connecting to the last answer, over any transport.
//!
//! ```text
//!             +--------------------------- close ---------------------------+
//!             v                                                             |
//!   Free -> Connecting -> Handshaking -> Sending -> AwaitingHead -> AwaitingBody
//!               (plain: skipped) ^          ^                               |
//!                                           +----- Kept (nothing asked) <---+
//! ```
//!
//! What to start and when is not decided here: every step returns what became of it, and the
//! worker goes on from there.

mod http2;
mod http3;
mod streams;

use std::io;
use std::os::fd::AsFd as _;

use nix::sys::epoll::{EpollEvent, EpollFlags};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::http1::{Answer, Exchange};
use crate::multiplexed::{Multiplexed, Protocol};
use crate::plan::SocketPlan;
use crate::sys;
use crate::tally::ErrorKind;
use crate::target::Endpoint;
use crate::thread::{PortWalk, Source, Thread};
use crate::transport::Transport;

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// There is no socket.
    #[default]
    Free,
    /// For the connection to be established.
    Connecting,
    /// For the peer's part of the TLS handshake.
    Handshaking,
    /// For room to send the rest of the request.
    Sending,
    /// For the first byte of the answer.
    AwaitingHead,
    /// For the rest of the answer.
    AwaitingBody,
    /// For a reason to send: open, and nothing is under way.
    Kept,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something is under way; an event or the time-out ends it.
    Wait,
    /// All answers are here, and the connection is kept.
    Answered,
    /// All answers are here, and the connection is closed.
    Finished,
    /// The connection was lost while nothing was under way.
    LostBetween,
    /// The request failed, and the connection is closed.
    Failed(ErrorKind),
}

/// A place for one connection at a time.
pub(crate) struct Slot {
    socket: Option<Socket>,
    transport: Transport,
    exchange: Exchange,
    /// Of a connection that speaks HTTP/2 or HTTP/3.
    multiplexed: Option<Multiplexed>,
    /// Requests that are on no stream yet.
    unasked: u16,
    /// The time of its entry in the thread's list of timers, in nanoseconds.
    timer_ns: u64,
    /// Whether it is in the loop's list of connections that may take another request.
    pub(crate) is_offered: bool,
    pub(crate) state: State,
    /// Whether epoll reports room for sending.
    watches_room: bool,
    /// Told apart from earlier connections of the slot in late events.
    pub(crate) generation: u32,
    pub(crate) target: u32,
    endpoint: u32,
    /// Requests this connection may still start.
    pub(crate) left: u32,
    /// Answers it has brought.
    served: u32,
    /// Answers under way.
    pub(crate) pending: u16,
    /// The next target, when they are taken in order.
    cursor: u32,
    /// Connection attempts that failed in a row.
    pub(crate) failures: u8,
    /// Bytes of the request batch that are sent.
    written: u32,
    /// Whether any byte of the batch's answers has come.
    begun: bool,
    /// When the request was meant to start, and when the deadline is.
    pub(crate) intended_ns: u64,
    pub(crate) deadline_ns: u64,
    connect_ns: u64,
    sent_ns: u64,
}

impl Default for Slot {
    fn default() -> Self {
        Slot {
            socket: None,
            transport: Transport::Plain,
            exchange: Exchange::default(),
            multiplexed: None,
            unasked: 0,
            timer_ns: u64::MAX,
            is_offered: false,
            state: State::Free,
            watches_room: false,
            generation: 0,
            target: 0,
            endpoint: 0,
            left: 0,
            served: 0,
            pending: 0,
            cursor: 0,
            failures: 0,
            written: 0,
            begun: false,
            intended_ns: 0,
            deadline_ns: u64::MAX,
            connect_ns: 0,
            sent_ns: 0,
        }
    }
}

impl Slot {
    /// Whether the slot is connected to this endpoint and may carry another request.
    pub(crate) fn is_open_to(&self, endpoint: usize) -> bool {
        self.state == State::Kept && self.endpoint as usize == endpoint
    }

    /// The endpoint the slot is connected to.
    pub(crate) fn endpoint(&self) -> usize {
        self.endpoint as usize
    }

    /// The next of `count` targets in their order.
    pub(crate) fn in_order(&mut self, count: usize) -> usize {
        let target = self.cursor as usize % count.max(1);
        self.cursor = self.cursor.wrapping_add(1);
        target
    }

    /// Whether an entry in the thread's list of timers is still this connection's.
    pub(crate) fn has_timer(&self, due_ns: u64) -> bool {
        self.timer_ns == due_ns
    }

    /// Whether requests are under way.
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.state, State::Free | State::Kept)
    }

    /// Opens a connection for `self.target` and sends as soon as possible.
    pub(crate) fn open(&mut self, thread: &mut Thread<'_>, now_ns: u64) -> Step {
        self.close();
        let plan = thread.plan;
        self.endpoint = plan
            .targets
            .targets
            .get(self.target as usize)
            .map_or(0, |t| u32::try_from(t.endpoint).unwrap_or(0));
        let Some(endpoint) = plan.targets.endpoints.get(self.endpoint as usize) else {
            return self.fail(ErrorKind::Connect);
        };
        self.connect_ns = now_ns;
        self.deadline_ns = now_ns + thread.timeout_ns;
        self.served = 0;
        self.begun = false;
        let socket = match connect(thread, endpoint) {
            Ok(socket) => socket,
            Err(error) => return self.fail(connect_error(&error)),
        };
        self.socket = Some(socket);
        self.state = State::Connecting;
        match plan.protocol {
            Protocol::Http1 => {}
            Protocol::Http2 => self.begin_http2(thread, now_ns),
            Protocol::Http3 => return self.begin_http3(thread, now_ns),
        }
        if endpoint.tls {
            let resume = plan.tls.as_ref().map_or(0.0, |tls| tls.resume_share);
            let resume = thread.random.unit() < resume;
            match thread.tls_session(self.endpoint as usize, resume) {
                Some(session) => self.transport = Transport::Tls(Box::new(session)),
                None => return self.fail(ErrorKind::Tls),
            }
        }
        self.first_send(thread, endpoint)
    }

    /// Tries to send at once where connecting is likely done already, and registers.
    fn first_send(&mut self, thread: &mut Thread<'_>, endpoint: &Endpoint) -> Step {
        let mut step = Step::Wait;
        if endpoint.local || !endpoint.tcp || thread.optimism.is_worth_it() {
            step = self.established(thread);
            thread.optimism.note(self.state != State::Connecting);
        }
        if step == Step::Wait
            && let Err(error) = self.register(thread)
        {
            return self.fail(connect_error(&error));
        }
        step
    }

    /// Goes on with what an event allows.
    pub(crate) fn advance(&mut self, thread: &mut Thread<'_>, flags: EpollFlags) -> Step {
        if matches!(self.multiplexed, Some(Multiplexed::Http3(_))) {
            return self.advance_http3(thread);
        }
        let ended = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        let readable = flags.intersects(EpollFlags::EPOLLIN | ended);
        match self.state {
            State::Free => Step::Wait,
            State::Connecting | State::Handshaking => {
                let step = self.established(thread);
                if step == Step::Wait && readable && self.state == State::AwaitingHead {
                    return self.receive(thread, flags.intersects(ended));
                }
                step
            }
            State::Sending => {
                let step = self.send(thread);
                // A server may answer, or give up, before it has read all of a large body.
                if step == Step::Wait && readable && self.is_busy() {
                    return self.receive(thread, flags.intersects(ended));
                }
                step
            }
            State::AwaitingHead | State::AwaitingBody => {
                if let Err(error) = self.flush() {
                    return self.fail(self.send_error(&error));
                }
                self.receive(thread, flags.intersects(ended))
            }
            State::Kept if readable && self.multiplexed.is_some() => self.between_frames(thread),
            State::Kept if readable => self.between(thread),
            State::Kept => Step::Wait,
        }
    }

    /// Ends the handshakes as far as possible, then sends.
    fn established(&mut self, thread: &mut Thread<'_>) -> Step {
        if matches!(self.transport, Transport::Tls(_)) {
            if let Some(step) = self.shake_hands(thread) {
                return step;
            }
            if !self.agrees_to_http2() {
                return self.fail(ErrorKind::Tls);
            }
            let now_ns = thread.clock.now_ns();
            self.sent_ns = now_ns;
        } else {
            self.sent_ns = thread.clock.now_ns();
        }
        let connecting = self.state == State::Connecting;
        let connected_ns = self.sent_ns;
        self.written = 0;
        let step = self.send(thread);
        if connecting && self.state != State::Connecting && !matches!(step, Step::Failed(_)) {
            thread.tally.connections += 1;
            if self.intended_ns >= thread.measure_from_ns {
                thread
                    .tally
                    .connect
                    .record(connected_ns.saturating_sub(self.connect_ns));
            }
        }
        step
    }

    /// The TLS handshake; `None` when it is done.
    fn shake_hands(&mut self, thread: &mut Thread<'_>) -> Option<Step> {
        let socket = self.socket.as_ref()?;
        let before_ns = thread.clock.now_ns();
        let result = self.transport.establish(socket);
        // While connecting there is no peer yet, and the first flight waits.
        let connecting = self.state == State::Connecting;
        if connecting && (result.is_ok() || socket.peer_addr().is_ok()) {
            self.state = State::Handshaking;
            thread.tally.connections += 1;
            let elapsed_ns = before_ns.saturating_sub(self.connect_ns);
            if self.intended_ns >= thread.measure_from_ns {
                thread.tally.connect.record(elapsed_ns);
            }
            self.connect_ns = before_ns;
        }
        match result {
            Ok(_) => {
                let now_ns = thread.clock.now_ns();
                if self.intended_ns >= thread.measure_from_ns {
                    thread
                        .tally
                        .tls
                        .record(now_ns.saturating_sub(self.connect_ns));
                }
                if let Transport::Tls(session) = &self.transport {
                    thread.tally.resumed += u64::from(session.resumed());
                }
                None
            }
            Err(error) if is_retry(&error) => Some(Step::Wait),
            Err(error) if self.state == State::Connecting => Some(self.fail(connect_error(&error))),
            Err(_) => Some(self.fail(ErrorKind::Tls)),
        }
    }

    /// Starts a batch of requests on a kept connection.
    pub(crate) fn request(&mut self, thread: &mut Thread<'_>, now_ns: u64) -> Step {
        self.sent_ns = now_ns;
        self.deadline_ns = now_ns + thread.timeout_ns;
        self.written = 0;
        self.begun = false;
        self.state = State::Sending;
        self.unasked = self.pending;
        self.ask(thread, now_ns);
        match &self.multiplexed {
            Some(Multiplexed::Http3(_)) => self.send_datagrams(thread),
            _ => self.send(thread),
        }
    }

    /// Sends the rest of the batch.
    fn send(&mut self, thread: &mut Thread<'_>) -> Step {
        if self.multiplexed.is_some() {
            return self.send_frames(thread);
        }
        let plan = thread.plan;
        let Some(socket) = self.socket.as_ref() else {
            return Step::Wait;
        };
        if plan.connect_only {
            // The server closes when it sees the end: by then its tickets have come.
            self.transport.end(socket);
            self.state = State::AwaitingHead;
            return Step::Wait;
        }
        let Some(target) = plan.targets.targets.get(self.target as usize) else {
            return self.fail(ErrorKind::Send);
        };
        let length = target.length * usize::from(self.pending);
        while (self.written as usize) < length {
            let rest = target
                .bytes
                .get(self.written as usize..length)
                .unwrap_or_default();
            match self.transport.send(socket, rest) {
                Ok(count) => {
                    self.written += u32::try_from(count).unwrap_or(u32::MAX);
                    if (self.written as usize) < length {
                        self.state = State::Sending;
                    }
                }
                Err(error) if is_retry(&error) => {
                    if self.state != State::Connecting {
                        self.state = State::Sending;
                        return self.watch_room(thread);
                    }
                    return Step::Wait;
                }
                Err(error) => return self.fail(self.send_error(&error)),
            }
        }
        self.state = State::AwaitingHead;
        Step::Wait
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(socket) = self.socket.as_ref() else {
            return Ok(());
        };
        match self.transport.flush(socket) {
            Err(error) if is_retry(&error) => Ok(()),
            other => other,
        }
    }

    /// Receives until the answers are whole or nothing is left.
    fn receive(&mut self, thread: &mut Thread<'_>, ended: bool) -> Step {
        // Turns are bounded by the bytes in the socket; a stream without end is cut here so that
        // one connection cannot hold the loop, and the event is edge-triggered, so it is renewed.
        for _ in 0..RECEIVE_TURNS_MAX {
            if let Some(step) = self.discard(thread) {
                if let Step::Wait = step {
                    continue;
                }
                return step;
            }
            let Some(socket) = self.socket.as_ref() else {
                return Step::Wait;
            };
            let room = thread.scratch.len();
            let count = match self.transport.receive(socket, &mut thread.scratch) {
                Ok(0) => return self.end_of_stream(thread),
                Ok(count) => count,
                Err(error) if is_retry(&error) => return Step::Wait,
                Err(error) => return self.fail(self.receive_error(&error)),
            };
            let step = self.feed(thread, count, ended);
            if step != Step::Wait {
                return step;
            }
            if self.transport.is_drained(count, room) && !ended {
                return Step::Wait;
            }
        }
        self.renew(thread)
    }

    /// Throws away what is known to be body and need not be looked at; `None` when there is none.
    fn discard(&mut self, thread: &mut Thread<'_>) -> Option<Step> {
        let left = self.exchange.discardable();
        let checked = thread.plan.expect_body.is_some();
        let plain = matches!(self.transport, Transport::Plain) && thread.is_tcp(self.endpoint);
        if left <= thread.scratch.len() as u64 || checked || !plain {
            return None;
        }
        let socket = self.socket.as_ref()?;
        let length = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(DISCARD_BYTES_MAX);
        match sys::discard(socket.as_fd(), length) {
            Ok(0) => Some(self.end_of_stream(thread)),
            Ok(count) => {
                if self.intended_ns >= thread.measure_from_ns {
                    thread.tally.bytes += count as u64;
                }
                let answer = self.exchange.discarded(count as u64)?;
                let now_ns = thread.clock.now_ns();
                Some(self.answered(thread, answer, now_ns, false))
            }
            // Let the ordinary receive meet the same condition and judge it.
            Err(_) => None,
        }
    }

    /// Feeds `count` received bytes to the protocol.
    fn feed(&mut self, thread: &mut Thread<'_>, count: usize, ended: bool) -> Step {
        let now_ns = thread.clock.now_ns();
        if self.intended_ns >= thread.measure_from_ns {
            thread.tally.bytes += count as u64;
        }
        if !self.begun {
            self.begun = true;
            if self.intended_ns >= thread.measure_from_ns {
                let elapsed_ns = now_ns.saturating_sub(self.sent_ns);
                thread.tally.first_byte.record(elapsed_ns);
            }
        }
        if self.multiplexed.is_some() {
            return self.feed_frames(thread, count, now_ns, ended);
        }
        // An answer may begin before all of the request is sent, which then goes on.
        if self.state == State::AwaitingHead {
            self.state = State::AwaitingBody;
        }
        let plan = thread.plan;
        let expected = plan.expect_body.as_ref().map(|body| body.as_slice());
        let head_only = plan
            .targets
            .targets
            .get(self.target as usize)
            .is_some_and(|target| target.head_only);
        let mut at = 0;
        while at < count {
            let input = thread.scratch.get(at..count).unwrap_or_default();
            let fed = match thread
                .http
                .feed(&mut self.exchange, input, head_only, expected)
            {
                Ok(fed) => fed,
                Err(_) => {
                    thread.tally.keep_bad_bytes(input);
                    return self.fail(ErrorKind::BadBytes);
                }
            };
            at += fed.consumed;
            let Some(answer) = fed.answer else { continue };
            let step = self.answered(thread, answer, now_ns, ended || at < count);
            if step != Step::Wait {
                // Unrequested bytes after the last answer make the connection useless.
                if at < count && step == Step::Answered {
                    return self.finish();
                }
                return step;
            }
        }
        Step::Wait
    }

    /// Counts an answer; `Wait` while others of the batch are to come.
    fn answered(
        &mut self,
        thread: &mut Thread<'_>,
        answer: Answer,
        now_ns: u64,
        ended: bool,
    ) -> Step {
        thread.count_answer(answer, now_ns, self.intended_ns, self.sent_ns);
        self.exchange.reset();
        self.served = self.served.saturating_add(1);
        self.failures = 0;
        self.pending = self.pending.saturating_sub(1);
        if self.pending > 0 {
            if answer.close {
                return self.fail(ErrorKind::ClosedEarly);
            }
            return Step::Wait;
        }
        // An answer to a request that is not sent whole: the rest would be taken for the next.
        let cut_off = self.state == State::Sending;
        if answer.close || self.left == 0 || ended || cut_off {
            return self.finish();
        }
        self.state = State::Kept;
        self.deadline_ns = u64::MAX;
        Step::Answered
    }

    fn end_of_stream(&mut self, thread: &mut Thread<'_>) -> Step {
        if thread.plan.connect_only {
            let now_ns = thread.clock.now_ns();
            return self.answered(thread, Answer::NONE, now_ns, true);
        }
        let expected = thread.plan.expect_body.as_ref().map(|body| body.as_slice());
        if let Some(answer) = self.exchange.end_of_stream(expected) {
            let now_ns = thread.clock.now_ns();
            return self.answered(thread, answer, now_ns, true);
        }
        let between = self.served > 0 && !self.begun;
        self.fail(if between {
            ErrorKind::ClosedIdle
        } else {
            ErrorKind::ClosedEarly
        })
    }

    /// An event on a connection without a request: the server closes it, resets it, or talks
    /// out of turn.
    fn between(&mut self, thread: &mut Thread<'_>) -> Step {
        let Some(socket) = self.socket.as_ref() else {
            return Step::Wait;
        };
        match self.transport.receive(socket, &mut thread.scratch) {
            Ok(0) => {
                thread.tally.closed_between += 1;
                self.close();
                Step::LostBetween
            }
            // A TLS peer may send tickets at any time; `receive` reports only plain bytes.
            Ok(count) => {
                let came = thread.scratch.get(..count).unwrap_or_default();
                thread.tally.keep_bad_bytes(came);
                thread.tally.errors.count(ErrorKind::BadBytes);
                self.close();
                Step::LostBetween
            }
            Err(error) if is_retry(&error) => Step::Wait,
            Err(_) => {
                thread.tally.errors.count(ErrorKind::ResetIdle);
                self.close();
                Step::LostBetween
            }
        }
    }

    /// The deadline has passed.
    pub(crate) fn time_out(&mut self) -> Step {
        let connecting = matches!(self.state, State::Connecting | State::Handshaking);
        self.fail(if connecting {
            ErrorKind::ConnectTimeout
        } else {
            ErrorKind::Timeout
        })
    }

    fn finish(&mut self) -> Step {
        self.close();
        Step::Finished
    }

    fn fail(&mut self, kind: ErrorKind) -> Step {
        self.close();
        Step::Failed(kind)
    }

    /// Closes the socket, if there is one; closing also takes it out of the epoll set.
    pub(crate) fn close(&mut self) {
        self.leave_http3();
        self.socket = None;
        self.transport = Transport::Plain;
        self.exchange.reset();
        self.multiplexed = None;
        self.timer_ns = u64::MAX;
        self.state = State::Free;
        self.watches_room = false;
        self.deadline_ns = u64::MAX;
        self.generation = self.generation.wrapping_add(1);
    }

    fn register(&mut self, thread: &Thread<'_>) -> io::Result<()> {
        let Some(socket) = self.socket.as_ref() else {
            return Ok(());
        };
        self.watches_room =
            self.state != State::AwaitingHead || matches!(self.transport, Transport::Tls(_));
        let event = EpollEvent::new(interest(self.watches_room), self.token(thread.current));
        thread.epoll.add(socket, event).map_err(io::Error::from)
    }

    fn watch_room(&mut self, thread: &Thread<'_>) -> Step {
        if self.watches_room {
            return Step::Wait;
        }
        self.watches_room = true;
        self.renew(thread)
    }

    /// Registers again, which also repeats an event that is still due.
    fn renew(&mut self, thread: &Thread<'_>) -> Step {
        let Some(socket) = self.socket.as_ref() else {
            return Step::Wait;
        };
        let mut event = EpollEvent::new(interest(self.watches_room), self.token(thread.current));
        match thread.epoll.modify(socket, &mut event) {
            Ok(()) => Step::Wait,
            // Not registered yet: the registration that follows asks for the same.
            Err(nix::errno::Errno::ENOENT) => Step::Wait,
            Err(_) => self.fail(ErrorKind::Send),
        }
    }

    fn token(&self, index: u32) -> u64 {
        u64::from(self.generation) << 32 | u64::from(index)
    }

    fn send_error(&self, error: &io::Error) -> ErrorKind {
        match (self.state, error.raw_os_error()) {
            (State::Connecting, _) => connect_error(error),
            (_, Some(libc::ECONNRESET | libc::EPIPE)) => self.receive_error(error),
            _ => ErrorKind::Send,
        }
    }

    fn receive_error(&self, error: &io::Error) -> ErrorKind {
        if error.kind() == io::ErrorKind::InvalidData {
            return ErrorKind::Tls;
        }
        match self.served {
            _ if self.begun => ErrorKind::ResetAnswering,
            1.. => ErrorKind::ResetIdle,
            _ => ErrorKind::ResetInQueue,
        }
    }
}

/// Receives of one connection before others have their turn.
const RECEIVE_TURNS_MAX: usize = 16;
/// Explicit source ports tried for one connection before it counts as failed.
const SOURCE_TRIES_MAX: u32 = 16;
/// Bytes thrown away in one call; the kernel holds its lock as long.
const DISCARD_BYTES_MAX: usize = 1 << 20;

fn interest(room: bool) -> EpollFlags {
    let always = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    if room {
        always | EpollFlags::EPOLLOUT
    } else {
        always
    }
}

/// A socket on its way to the endpoint, with everything the plan asks of it.
///
/// Explicit and walked source ports may be taken, and then the next ones are tried; of walked ones
/// so many that the kernel searches for itself in the end.
fn connect(thread: &mut Thread<'_>, endpoint: &Endpoint) -> io::Result<Socket> {
    let kind = match thread.plan.protocol {
        Protocol::Http3 => Type::DGRAM,
        Protocol::Http1 | Protocol::Http2 => Type::STREAM,
    };
    let mut tries = SOURCE_TRIES_MAX;
    loop {
        let source = if endpoint.tcp {
            thread.next_source()
        } else {
            None
        };
        let explicit = source
            .as_ref()
            .is_some_and(|source| source.address.port() != 0);
        let walked = thread.ports.as_mut().filter(|_| endpoint.tcp && tries > 1);
        let walked = walked.map(PortWalk::next);
        match connect_from(&thread.plan.socket, kind, endpoint, source, walked) {
            Err(error) if walked.is_some() && error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                // Linux before 6.3: the kernel chooses.
                thread.ports = None;
            }
            Err(error) if walked.is_some() && connect_error(&error) == ErrorKind::NoPorts => {
                tries -= 1;
            }
            Err(error) if explicit && tries > 1 && connect_error(&error) == ErrorKind::NoPorts => {
                tries -= 1;
            }
            other => return other,
        }
    }
}

fn connect_from(
    wishes: &SocketPlan,
    kind: Type,
    endpoint: &Endpoint,
    source: Option<Source>,
    walked: Option<u16>,
) -> io::Result<Socket> {
    let is_stream = kind == Type::STREAM;
    let kind = kind.nonblocking().cloexec();
    let domain = Domain::from(i32::from(endpoint.address.family()));
    let socket = Socket::new_raw(domain, kind, None)?;
    if is_stream && endpoint.tcp && wishes.no_delay {
        socket.set_tcp_nodelay(true)?;
    }
    if is_stream && endpoint.tcp && wishes.fast_open {
        sys::fast_open(socket.as_fd())?;
    }
    if let Some(source) = source {
        if source.address.port() == 0 {
            sys::bind_address_without_port(socket.as_fd())?;
        } else {
            socket.set_reuse_address(true)?;
        }
        if let Some((first, last)) = source.ports {
            sys::local_port_range(socket.as_fd(), first, last)?;
        }
        socket.bind(&SockAddr::from(source.address))?;
    }
    if let Some(port) = walked {
        sys::local_port_range(socket.as_fd(), port, port)?;
    }
    if is_stream && wishes.linger0 {
        socket.set_linger(Some(std::time::Duration::ZERO))?;
    }
    match socket.connect(&endpoint.address) {
        // A socket for datagrams finds its port here, and says in this way that none is free.
        Err(error) if !is_stream && error.raw_os_error() == Some(libc::EAGAIN) => {
            Err(io::Error::from_raw_os_error(libc::EADDRNOTAVAIL))
        }
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// Nothing can be done now; an event will report when.
fn is_retry(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::EINPROGRESS | libc::ENOTCONN | libc::EINTR)
    ) || error.kind() == io::ErrorKind::WouldBlock
}

fn connect_error(error: &io::Error) -> ErrorKind {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED | libc::ENOENT) => ErrorKind::Refused,
        Some(libc::ECONNRESET | libc::EPIPE) => ErrorKind::ResetConnecting,
        Some(libc::EHOSTUNREACH | libc::ENETUNREACH) => ErrorKind::Unreachable,
        Some(libc::ETIMEDOUT) => ErrorKind::ConnectTimeout,
        Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => ErrorKind::NoPorts,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::ENOSPC) => {
            ErrorKind::NoFiles
        }
        Some(libc::EAGAIN) => ErrorKind::QueueFull,
        _ => ErrorKind::Connect,
    }
}
