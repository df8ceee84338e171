//! HTTP/1 connections of a lane.
//!
//! ```text
//!             accept ─► optimistic first transaction ─┐
//!                                                     ▼
//!   ┌─► parked (a slab entry: first bytes, rest of a head, next request)
//!   │        │ readable
//!   │        ▼
//!   │   served in the turn: parse, run, send ──────────► closed
//!   │        │ must wait
//!   │        ▼
//!   └── driven (a future: slow client, body, rate limit, upstream) ──► lingers, closed
//! ```
//!
//! A connection is moved by value between these: none of them shares it with another.

mod awaited;
mod background;
mod commands;
mod driven;
mod handshake;
mod http2;
mod moving;
mod parked;
mod proxy_header;
mod rate;
mod serve;

mod transfer;

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use slab::Slab;
use tokio::sync::Notify;
use turnpike_lane::event_loop::{EventHandler, EventLoop, Mailbox};
use turnpike_lane::gate::ListenAddress;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::process::monotonic_ns;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::transport::Transport;

pub use commands::{Apply, Command, Leave};
pub use moving::Moving;

use crate::counters::CloseReason;
use crate::exchange::Exchange;
use crate::h1::input::Input;
use crate::h1::watch::Watch;
use crate::lane::{LanePlan, LaneShared};
use crate::plan::ListenIndex;
use crate::requester::ConnectionFacts;
use handshake::{Handshaking, Security};
use moving::Successors;
use parked::Slot;
use turnpike_plan::proxy_header::ProxyHeader;
use turnpike_plan::tls::TlsSession;

/// Idle connections closed at a time to make room; nginx's number. One at a time would repeat the
/// search for every new connection of a burst.
const ROOM_CONNECTIONS_MAX: usize = 32;

/// The system has too many files open, errno(3) on Linux.
const ENFILE: i32 = 23;

/// The process has too many files open.
const EMFILE: i32 = 24;

/// A connection between two of its states.
struct Connection<T = Transport> {
    transport: T,
    /// What it has sent and nobody has taken.
    input: Input,
    client: ConnectionFacts,
    /// Whether Nagle's algorithm was switched off.
    no_delay: bool,
    /// The plan of its gate; replaced at the next request after a reload.
    plan: Rc<LanePlan>,
    /// The PROXY protocol's header, once it was read.
    proxy_header: Option<Rc<ProxyHeader>>,
    security: Security,
}

impl Connection {
    /// The transport with what has come of it, and the connection without: for whoever owns the
    /// transport for a while.
    fn detach(self) -> (Transport, Input, Connection<()>) {
        let Connection {
            transport,
            mut input,
            client,
            no_delay,
            plan,
            proxy_header,
            security,
        } = self;
        let taken = input.take();
        let detached = Connection {
            transport: (),
            input,
            client,
            no_delay,
            plan,
            proxy_header,
            security,
        };
        (transport, taken, detached)
    }
}

impl Connection<()> {
    /// The connection with its transport again, and what has come of that.
    fn attach(self, transport: Transport, input: Input) -> Connection {
        Connection {
            transport,
            input,
            client: self.client,
            no_delay: self.no_delay,
            plan: self.plan,
            proxy_header: self.proxy_header,
            security: self.security,
        }
    }
}

/// Where a driven connection stands among the others: the lane's loop knows it by its token.
#[derive(Clone)]
struct DrivenSlot {
    token: u32,
    watch: Rc<Watch>,
    /// Whether the connection is one of HTTP/2.
    is_http2: bool,
}

/// A driven connection that has ended: what is left of it.
struct Returned {
    slot: DrivenSlot,
    connection: Result<Connection, CloseReason>,
    exchange: Option<Box<Exchange>>,
}

/// What driven connections hand back.
struct ReturnQueue {
    returned: RefCell<Vec<Returned>>,
    /// Tasks for no client that have ended since the last turn.
    background_ended: Cell<usize>,
    /// Answers on streams that have ended since the last turn.
    streams_ended: Cell<usize>,
    notify: Rc<Notify>,
}

/// A connection that came by a gate which is not HTTP's: gates behind the plan's listens belong to
/// other protocols.
pub struct OtherConnection {
    /// The plan that the gate belongs to.
    pub generation: u64,
    /// The gate's place behind the listens of that plan.
    pub place: usize,
    pub socket: OwnedFd,
    pub peer: PeerAddress,
}

/// A connection that a session of `stream` passes to an address of HTTP (`pass`).
pub struct PassedConnection {
    /// The address whose servers serve it from now on.
    pub address: ListenAddress,
    pub transport: Transport,
    /// What was read of it, and nobody has looked at.
    pub bytes: Vec<u8>,
    /// The client, as far as it is known.
    pub peer: PeerAddress,
    /// What its TLS session has agreed on, where it has one.
    pub tls: Option<Box<TlsSession>>,
    /// What its PROXY protocol header said, where it began with one.
    pub proxy_header: Option<ProxyHeader>,
}

/// The connections of one lane.
pub struct Connections {
    lane: Rc<LaneShared>,
    plan: Rc<LanePlan>,
    /// Plans before it that connections may still hold: what they buffer goes by time too.
    old_plans: Vec<Weak<LanePlan>>,
    mailbox: Arc<Mailbox<Command>>,
    /// By token.
    slots: Slab<Slot>,
    /// Where the search for idle connections goes on.
    room_cursor: usize,
    /// Futures on the lane's runtime.
    driven: usize,
    /// Of these, those of connections, which have a slot.
    driven_connections: usize,
    /// Of these, those of HTTP/2: their requests are counted apart.
    http2_connections: usize,
    /// Connections whose answer is awaited.
    awaited: usize,
    return_queue: Rc<ReturnQueue>,
    ending: Ending,
    /// When the lane's time was last looked at, in its monotonic milliseconds.
    ticked_ms: u64,
    round: Round,
    /// Accepted for others, until they take them.
    others: Vec<OtherConnection>,
}

/// What is measured at the end of a round: the clock is read once for all of it.
#[derive(Default)]
struct Round {
    has_worked: bool,
    /// First answers of connections that were accepted in it.
    first_answers: u64,
}

/// Whether the lane goes on.
enum Ending {
    /// The lane or process serves.
    No,
    /// The lane finishes what it is at; other lanes take what waits.
    Leaving(Successors),
    /// The lane finishes what was begun.
    Draining {
        /// In the lane's monotonic milliseconds.
        since_ms: u64,
    },
    /// The lane ends now.
    Now,
}

impl Connections {
    /// No connections yet.
    pub fn new(lane: Rc<LaneShared>, plan: Rc<LanePlan>, mailbox: Arc<Mailbox<Command>>) -> Self {
        lane.use_plan(&plan);
        let return_queue = Rc::new(ReturnQueue {
            returned: RefCell::default(),
            background_ended: Cell::new(0),
            streams_ended: Cell::new(0),
            notify: lane.background.notify.clone(),
        });
        Self {
            lane,
            plan,
            old_plans: Vec::new(),
            mailbox,
            slots: Slab::new(),
            room_cursor: 0,
            driven: 0,
            driven_connections: 0,
            http2_connections: 0,
            awaited: 0,
            return_queue,
            ending: Ending::No,
            ticked_ms: 0,
            round: Round::default(),
            others: Vec::new(),
        }
    }

    /// The number of the plan in force.
    pub fn generation(&self) -> u64 {
        self.plan.generation
    }

    /// How many of the gates are HTTP's; those behind them are others'.
    pub fn listens(&self) -> usize {
        self.plan.listens.len()
    }

    /// Takes the connections that came by gates of others.
    pub fn take_others(&mut self) -> Vec<OtherConnection> {
        std::mem::take(&mut self.others)
    }

    /// Serves a connection that was passed on; gives it back where its address is not of the plan
    /// in force.
    pub fn passed(
        &mut self,
        event_loop: &mut EventLoop,
        passed: PassedConnection,
    ) -> Option<PassedConnection> {
        let mut listens = self.plan.listens.iter();
        let place = listens.position(|listen| listen.address == passed.address);
        let Some(place) = place else {
            return Some(passed);
        };
        self.round.has_worked = true;
        let counters = &self.lane.counters;
        counters.accepted.add();
        counters.handled.add();
        counters.active.add();
        let client = ConnectionFacts {
            serial: self.lane.next_serial(),
            peer: passed.peer,
            listen: ListenIndex(place as u32),
            socket: passed.transport.facts(),
            requests: 0,
            is_pipelined: false,
            accepted_ms: event_loop.clock.now_ms(),
            accepted_ns: event_loop.clock.now_ns(),
        };
        let listen = self.plan.listen(client.listen);
        let is_plain = passed.transport.is_plain();
        let (listens_by_tls, expects_header) = (listen.tls, listen.proxy_protocol);
        let mut connection = Connection {
            transport: passed.transport,
            input: Input::new(&self.lane.inputs),
            client,
            no_delay: false,
            security: match passed.tls {
                Some(session) => Security::Secure(Arc::from(session)),
                None => Security::of_new(listens_by_tls),
            },
            plan: self.plan.clone(),
            proxy_header: passed.proxy_header.filter(|_| !expects_header).map(Rc::new),
        };
        if listens_by_tls && !is_plain {
            // One session within another has no place here.
            self.report(format_args!(
                "a connection with TLS was passed to {}, which expects TLS of its own: closed",
                passed.address
            ));
            self.close(connection, CloseReason::Refused);
            return None;
        }
        let has_bytes = !passed.bytes.is_empty();
        if listens_by_tls && has_bytes {
            let given = Handshaking::Given(passed.bytes);
            connection.security = Security::Handshaking(Box::new(given));
        } else {
            connection.input.put(&passed.bytes);
        }
        let served = AssertUnwindSafe(|| {
            if has_bytes && !listens_by_tls {
                let exchange = self.exchange(&connection);
                self.serve(event_loop, None, connection, exchange, None);
            } else {
                self.first_transaction(event_loop, connection);
            }
        });
        if catch_unwind(served).is_err() {
            self.panicked();
        }
        None
    }

    /// A connection whose client has just come to an address.
    fn begun(
        &mut self,
        event_loop: &EventLoop,
        listen: ListenIndex,
        transport: Transport,
        peer: PeerAddress,
    ) -> Connection {
        let counters = &self.lane.counters;
        counters.accepted.add();
        counters.handled.add();
        counters.active.add();
        let client = ConnectionFacts {
            serial: self.lane.next_serial(),
            peer,
            listen,
            socket: transport.facts(),
            requests: 0,
            is_pipelined: false,
            accepted_ms: event_loop.clock.now_ms(),
            accepted_ns: event_loop.clock.now_ns(),
        };
        self.round.has_worked = true;
        Connection {
            transport,
            input: Input::new(&self.lane.inputs),
            client,
            no_delay: false,
            security: Security::of_new(self.plan.listen(listen).tls),
            plan: self.plan.clone(),
            proxy_header: None,
        }
    }

    /// Whether the lane was told to end at once.
    pub fn is_terminated(&self) -> bool {
        matches!(self.ending, Ending::Now)
    }

    /// Whether the process ends, so that no connection is kept.
    fn is_draining(&self) -> bool {
        matches!(self.ending, Ending::Draining { .. } | Ending::Now)
    }

    /// Does it with the present plan and those before it that are still held.
    fn every_plan(&mut self, does: impl Fn(&LanePlan)) {
        does(&self.plan);
        self.old_plans.retain(|old| {
            let old = old.upgrade();
            old.inspect(|old| does(old)).is_some()
        });
    }

    /// Notified when a driven connection is handed back.
    pub fn returned(&self) -> Rc<Notify> {
        self.return_queue.notify.clone()
    }

    /// Counts for `stub_status`: requests that are answered.
    fn count_writing(&self, more: u64) {
        let busy = self.driven - self.http2_connections + self.awaited;
        self.lane.counters.writing.set(busy as u64 + more);
    }

    /// What is held: places, futures, connections whose answer is awaited, and work that no client
    /// waits for.
    #[cfg(feature = "simulation")]
    pub fn left(&self) -> [usize; 4] {
        let under_way = self.lane.background.under_way.get();
        [self.slots.len(), self.driven, self.awaited, under_way]
    }

    fn close(&self, connection: Connection, reason: CloseReason) {
        self.lane.counters.was_closed(reason);
        drop(connection);
    }

    /// Gives an exchange back to the pool.
    fn recycle(&self, exchange: Box<Exchange>) {
        self.lane.recycle(exchange);
    }

    fn measure_round(&mut self, event_loop: &EventLoop) {
        let took_ns = monotonic_ns().saturating_sub(event_loop.clock.now_ns());
        let counters = &self.lane.counters;
        counters.rounds.record(took_ns);
        let answers = self.lane.round_answers.take();
        if answers > 0 {
            counters.request_times.record_many(took_ns, answers);
        }
        let first_answers = std::mem::take(&mut self.round.first_answers);
        if first_answers > 0 {
            counters.first_byte.record_many(took_ns, first_answers);
        }
    }

    /// A panic costs the one connection, which was dropped on the way.
    fn panicked(&self) {
        self.lane.counters.panics.add();
        self.lane.counters.was_closed(CloseReason::Failed);
        self.report(format_args!("a panic was caught; its connection is closed"));
    }

    /// Writes what concerns no connection to the error log of the first server.
    fn report(&self, message: std::fmt::Arguments<'_>) {
        if let Some(listen) = self.plan.listens.first() {
            let root = self.plan.server(listen.default_server).root;
            self.plan
                .location(root)
                .error_log
                .event(Level::Warn, message);
        }
    }

    fn exchange(&self, connection: &Connection) -> Box<Exchange> {
        let mut exchange = self.lane.exchange(&connection.plan, &connection.client);
        exchange.client.has_proxy_header(&connection.proxy_header);
        connection.security.tell(&mut exchange);
        exchange
    }
}

impl Connections {
    /// Takes up and counts down tasks that no client waits for.
    fn drive_background(&mut self, event_loop: &mut EventLoop) {
        let background = &self.lane.background;
        let ended = self.return_queue.background_ended.take();
        background.under_way.set(background.under_way.get() - ended);
        let ended = ended + self.return_queue.streams_ended.take();
        self.driven -= ended;
        for answer in background.streams.borrow_mut().drain(..) {
            self.driven += 1;
            event_loop.drive(http2::counted(answer, Rc::clone(&self.return_queue)));
        }
        for task in background.waiting.borrow_mut().drain(..) {
            self.driven += 1;
            event_loop.drive(background::counted(task, Rc::clone(&self.return_queue)));
        }
        if ended > 0 {
            self.count_writing(0);
        }
    }
}

impl ReturnQueue {
    fn give_back(
        &self,
        slot: DrivenSlot,
        connection: Result<Connection, CloseReason>,
        exchange: Option<Box<Exchange>>,
    ) {
        self.returned.borrow_mut().push(Returned {
            slot,
            connection,
            exchange,
        });
        self.notify.notify_one();
    }
}

impl EventHandler for Connections {
    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        gate: u32,
        socket: OwnedFd,
        peer: PeerAddress,
    ) {
        self.round.has_worked = true;
        if let Some(place) = (gate as usize).checked_sub(self.plan.listens.len()) {
            self.others.push(OtherConnection {
                generation: self.plan.generation,
                place,
                socket,
                peer,
            });
            return;
        }
        let transport = Transport::plain(socket);
        let connection = self.begun(event_loop, ListenIndex(gate), transport, peer);
        let served = AssertUnwindSafe(|| self.first_transaction(event_loop, connection));
        if catch_unwind(served).is_err() {
            self.panicked();
        }
    }

    fn ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool) {
        self.round.has_worked = true;
        let served = AssertUnwindSafe(|| self.parked_ready(event_loop, token, closed));
        if catch_unwind(served).is_err() {
            self.unpark(event_loop, Some(token));
            self.panicked();
        }
    }

    fn watched_socket_ready(&mut self, event_loop: &mut EventLoop, token: u32) {
        let served = AssertUnwindSafe(|| self.answer_ready(event_loop, token));
        if catch_unwind(served).is_err() {
            self.unpark(event_loop, Some(token));
            self.panicked();
        }
    }

    fn due(&mut self, event_loop: &mut EventLoop, token: u32) {
        let closed = AssertUnwindSafe(|| self.parked_due(event_loop, token));
        if catch_unwind(closed).is_err() {
            self.unpark(event_loop, Some(token));
            self.panicked();
        }
    }

    fn turn_ended(&mut self, event_loop: &mut EventLoop) {
        self.lane.handshakes.turn_ended();
        if std::mem::take(&mut self.round.has_worked) {
            self.measure_round(event_loop);
        }
        self.drive_background(event_loop);
        loop {
            let Some(returned) = self.return_queue.returned.borrow_mut().pop() else {
                break;
            };
            self.driven -= 1;
            self.driven_connections -= 1;
            let slot = returned.slot;
            self.http2_connections -= usize::from(slot.is_http2);
            self.count_writing(0);
            match (returned.connection, returned.exchange) {
                (Ok(connection), Some(exchange)) => {
                    let token = slot.token;
                    let served = AssertUnwindSafe(|| {
                        self.taken_back(event_loop, slot, connection, exchange)
                    });
                    if catch_unwind(served).is_err() {
                        self.unpark(event_loop, Some(token));
                        self.panicked();
                    }
                }
                (Err(reason), Some(exchange)) => {
                    self.unpark(event_loop, Some(slot.token));
                    self.lane.counters.was_closed(reason);
                    self.recycle(exchange);
                }
                (_, None) => {
                    self.unpark(event_loop, Some(slot.token));
                    self.lane.counters.panics.add();
                    self.lane.counters.was_closed(CloseReason::Failed);
                }
            }
        }
    }

    fn tick(&mut self, event_loop: &mut EventLoop) {
        let now_ms = event_loop.clock.now_ms();
        self.ticked_ms = now_ms;
        self.every_plan(|plan| plan.tick(now_ms));
    }

    fn commands(&mut self, event_loop: &mut EventLoop) {
        self.obey(event_loop);
    }

    fn connections(&self) -> usize {
        self.slots.len() + self.driven - self.driven_connections
    }

    fn driven(&self) -> usize {
        self.driven
    }

    fn make_room(&mut self, event_loop: &mut EventLoop) -> bool {
        let mut what = "idle ones";
        let mut closed = self.close_idle(event_loop, ROOM_CONNECTIONS_MAX);
        if closed == 0 {
            what = "that were slow to send a request";
            closed = self.close_late_heads(event_loop, ROOM_CONNECTIONS_MAX);
        }
        if closed > 0 {
            self.lane.counters.made_room.add_many(closed as u64);
            let most = self.plan.events.connections_max;
            self.report(format_args!(
                "{most} worker_connections are not enough, {closed} {what} were closed"
            ));
        }
        closed > 0
    }

    fn accept_failed(&mut self, _event_loop: &mut EventLoop, gate: u32, error: &io::Error) {
        // A gate of others says so in the log of the first server.
        let listens = &self.plan.listens;
        let Some(listen) = listens.get(gate as usize).or(listens.first()) else {
            return;
        };
        let root = self.plan.server(listen.default_server).root;
        let log = &self.plan.location(root).error_log;
        let level = match error.raw_os_error() {
            Some(ENFILE | EMFILE) => Level::Crit,
            _ => Level::Alert,
        };
        log.event(level, format_args!("accept4() failed {}", Errno(error)));
    }

    fn finished(&self) -> bool {
        match &self.ending {
            Ending::No => false,
            // Another lane may just be handing something over.
            Ending::Leaving(_) | Ending::Draining { .. } => {
                self.connections() == 0 && self.mailbox.close_if_empty()
            }
            Ending::Now => true,
        }
    }
}

impl Drop for Connections {
    /// The lane ends: what is buffered for its plans, lines of logs, is written. The plans
    /// themselves may live on in exchanges that were kept for use again.
    fn drop(&mut self) {
        self.every_plan(LanePlan::flush);
    }
}

impl Exchange {
    /// Lets the location's loggers write the exchange down; called once, at its end.
    pub(crate) fn log_access(&mut self) {
        let status = self.logged_status();
        let counters = &self.lane.counters;
        counters.answered(
            status,
            self.account.request_bytes(),
            self.account.sent_bytes(),
        );
        let now_ms = self.lane.clock.now_ms();
        match now_ms.saturating_sub(self.account.started_ms()) {
            // It began and ended in one round, whose end nobody has measured yet.
            0 => self
                .lane
                .round_answers
                .set(self.lane.round_answers.get() + 1),
            took_ms => counters.request_times.record(took_ms * 1_000_000),
        }
        self.write_access_log();
        self.rooms.release();
    }
}

/// A client that went away is no error of ours, unless the kernel says something unusual.
fn log_send_error(exchange: &Exchange, error: &io::Error) {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => exchange.log(
            Level::Alert,
            format_args!("file was truncated while it was sent to the client"),
        ),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            exchange.log(Level::Info, format_args!("send() failed ({error})"));
        }
        _ => exchange.log(Level::Alert, format_args!("send() failed ({error})")),
    }
}

#[cfg(test)]
mod tests;
