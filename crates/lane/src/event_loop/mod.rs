//! The lane's event loop: gates and parked connections on one epoll instance.
//!
//! ```text
//!            ┌──────────── bare: epoll_wait blocks here, no task exists ────────────┐
//!            │                                                                      │
//!   run ─────┤   turn: events ─► accept │ ready │ due ─► (drive a future)           │
//!            │                                              │                       │
//!            └──────────── nested: a tokio runtime drives futures; the  ◄───────────┘
//!                          epoll instance is one of its descriptors
//! ```
//! A connection is **parked** while it waits for a request head. A request that can be answered at
//! once is answered in the turn, without a task: this is the whole path of a short connection. A
//! request that must wait is **driven**: it becomes a future on the lane's tokio runtime, which is
//! built for the first one and entered only while there are any. So the hot path costs as much as
//! a bare epoll loop, EPOLLEXCLUSIVE works (it does not through a nested instance), and slow work
//! is still written as plain async code.
//!
//! This module knows sockets and deadlines; the [`EventHandler`] reacts to their events.

mod deadlines;
mod gates;
mod mailbox;
mod numbered_sockets;
mod run;
mod token;
mod watched_sockets;
mod wheel;

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;

pub use deadlines::{Deadlines, Timer};
pub use gates::{AcceptSettings, GateNumber, LaneGate, Pulse, waiting_connections_max};
pub use mailbox::Mailbox;
pub use numbered_sockets::NumberedSockets;
pub use run::run;
pub use token::Owner;
pub use watched_sockets::{WatchedSocket, WatchedSockets};
pub use wheel::Wheel;

use crate::clock::Clock;
use crate::sys::epoll::{Epoll, Event, EventBuffer, Interest};
use crate::sys::simulation::{self, Fault};
use crate::sys::socket::PeerAddress;
use gates::Gates;
use token::Token;

/// The most events from the kernel at a time. With more, the last would wait for all others.
const EVENTS_PER_TURN_MAX: usize = 512;

/// The time between two checks of the wheel, in milliseconds.
const TICK_MS: u64 = 100;

/// The longest wait of a lane with nothing parked, in milliseconds.
const IDLE_TICK_MS: u64 = 1_000;

/// The longest wait that is brief, in milliseconds. Those of the wheel may be ten times as late.
const BRIEF_MS_MAX: u64 = 16;

// A brief wait could not wait for the wheel, and a lane with connections looks at it more often.
const _: () = assert!(BRIEF_MS_MAX < TICK_MS && TICK_MS < IDLE_TICK_MS);

/// A future on the lane's own runtime.
pub type Driven = Pin<Box<dyn Future<Output = ()>>>;

/// The connections of a lane, and their reactions to events.
pub trait EventHandler {
    /// A connection was accepted on the gate with this number.
    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        gate: GateNumber,
        socket: OwnedFd,
        peer: PeerAddress,
    );
    /// Datagrams wait at a gate; called until they are read. Lanes without such gates are never
    /// called.
    fn datagrams(&mut self, _event_loop: &mut EventLoop, _gate: &LaneGate) {}
    /// The parked connection with this token has input. The event comes once: the handler reads
    /// until the socket is empty. `closed`: the peer has shut down its sending side.
    fn ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool);
    /// A watched socket has input for the parked connection with this token.
    fn watched_socket_ready(&mut self, event_loop: &mut EventLoop, token: u32);
    /// The socket with this number of its owner has an event; see [`NumberedSockets`]. Lanes that
    /// number none are never called.
    fn numbered_socket_ready(
        &mut self,
        _event_loop: &mut EventLoop,
        _owner: Owner,
        _number: u64,
        _event: Event,
    ) {
    }
    /// The deadline of this token may have passed.
    fn due(&mut self, event_loop: &mut EventLoop, token: u32);
    /// The exact deadline of a timer with this number of its owner has passed; see
    /// [`EventLoop::numbered_timer`]. Lanes without such timers are never called.
    fn numbered_timer_due(&mut self, _event_loop: &mut EventLoop, _owner: Owner, _number: u64) {}
    /// All events of a turn were handled.
    fn turn_ended(&mut self, event_loop: &mut EventLoop);
    /// Called about every 100 ms while there are connections, otherwise every second.
    fn tick(&mut self, event_loop: &mut EventLoop);
    /// The mailbox holds commands.
    fn commands(&mut self, event_loop: &mut EventLoop);
    /// The number of connections, parked and driven.
    fn connections(&self) -> usize;
    /// The number of driven connections.
    fn driven(&self) -> usize;
    /// Closes connections that are idle between requests. `false` if no connection may be closed.
    fn make_room(&mut self, event_loop: &mut EventLoop) -> bool;
    /// Whether the handler takes connections of this gate even while the lane is full, to refuse
    /// them: their clients are told at once, and other gates go on.
    fn refuses_when_full(&self, _gate: GateNumber) -> bool {
        false
    }
    /// The lane is full, and no connection may be closed: new ones wait in their queues.
    fn stays_full(&mut self, _event_loop: &mut EventLoop) {}
    /// Accepting failed and is tried again later; called once per failure.
    fn accept_failed(&mut self, event_loop: &mut EventLoop, gate: GateNumber, error: &io::Error);
    /// Whether the lane has finished its work and ends.
    fn finished(&self) -> bool;
}

/// A lane's event loop.
pub struct EventLoop {
    epoll: Rc<Epoll>,
    watched_sockets: WatchedSockets,
    /// The lane's time.
    pub clock: Rc<Clock>,
    /// Deadlines of parked connections.
    pub wheel: Wheel,
    /// Deadlines that are met to the millisecond.
    pub deadlines: Deadlines,
    gates: Gates,
    drives: Vec<Driven>,
    events: EventBuffer,
    due: Vec<u32>,
    next_tick_ms: u64,
    /// The number of turns so far, shared with the watched sockets.
    turns: Rc<Cell<u64>>,
    /// By token: the turn in which a socket got it.
    watched_in: Vec<u64>,
}

impl EventLoop {
    /// A loop without gates that `mailbox` wakes.
    ///
    /// # Errors
    /// The error of epoll_create1(2).
    pub fn new(clock: Rc<Clock>, mailbox: BorrowedFd<'_>) -> io::Result<Self> {
        let epoll = Rc::new(Epoll::new()?);
        epoll.add(mailbox, Interest::READ, Token::Mailbox.encode())?;
        let turns = Rc::new(Cell::new(1));
        Ok(Self {
            watched_sockets: WatchedSockets::new(Rc::clone(&epoll), Rc::clone(&turns)),
            epoll,
            wheel: Wheel::new(clock.now_ms()),
            deadlines: Deadlines::default(),
            next_tick_ms: clock.now_ms(),
            clock,
            gates: Gates::default(),
            drives: Vec::new(),
            events: EventBuffer::with_capacity(EVENTS_PER_TURN_MAX),
            due: Vec::new(),
            turns,
            watched_in: Vec::new(),
        })
    }

    /// The registry of watched sockets.
    pub fn watched_sockets(&self) -> WatchedSockets {
        self.watched_sockets.clone()
    }

    /// Watches sockets that this owner gives numbers to.
    pub fn numbered_sockets(&self, owner: Owner) -> NumberedSockets {
        NumberedSockets::new(Rc::clone(&self.epoll), owner)
    }

    /// Watches a parked connection for input. The watch is edge-triggered: the kernel polls a
    /// level-triggered socket again in the wait after each of its events.
    ///
    /// # Errors
    /// The error of epoll_ctl(2).
    pub fn watch(&mut self, socket: BorrowedFd<'_>, token: u32) -> io::Result<()> {
        let index = token as usize;
        if self.watched_in.len() <= index {
            self.watched_in.resize(index + 1, 0);
        }
        self.watched_in[index] = self.turns.get();
        let interest = Interest::READ | Interest::PEER_CLOSED | Interest::EDGE;
        self.epoll
            .add(socket, interest, Token::Parked(token).encode())
    }

    /// Ends the watch. Closing the socket does the same.
    pub fn unwatch(&mut self, socket: BorrowedFd<'_>) {
        let _ = self.epoll.delete(socket);
    }

    /// Has [`EventHandler::due`] called for a token at this time, in the loop's milliseconds: on
    /// time if the wait is brief, which then has a timer, and a little later otherwise. The caller
    /// removes the timer when it waits no more.
    pub fn wait_until(&mut self, token: u32, deadline_ms: u64) -> Option<Timer> {
        if deadline_ms <= self.clock.now_ms() + BRIEF_MS_MAX
            && let Some(timer) = self.deadlines.add(Token::Parked(token).encode())
        {
            self.deadlines.set(&timer, deadline_ms);
            return Some(timer);
        }
        self.wheel.insert_if_earlier(token, deadline_ms);
        None
    }

    /// A timer of which [`EventHandler::numbered_timer_due`] tells by this number of its owner.
    /// `None`: the lane has as many timers as it may have.
    pub fn numbered_timer(&mut self, owner: Owner, number: u64) -> Option<Timer> {
        self.deadlines.add(Token::Numbered(owner, number).encode())
    }

    /// Runs a future on the lane's runtime. The caller counts it in [`EventHandler::driven`] until
    /// it has ended.
    pub fn drive(&mut self, future: Driven) {
        self.drives.push(future);
    }

    /// Handles the available events, after a wait of up to `timeout_ms` for the first; returns
    /// their number.
    ///
    /// # Errors
    /// The error of epoll_wait(2).
    pub fn turn<R: EventHandler>(&mut self, handler: &mut R, timeout_ms: i32) -> io::Result<usize> {
        let timeout_ms = self.before_wait(handler, timeout_ms);
        let mut events = std::mem::replace(&mut self.events, EventBuffer::with_capacity(0));
        if timeout_ms != 0 {
            self.gates.asleep(handler.connections());
        }
        let waited = self.epoll.wait(&mut events, timeout_ms);
        self.turns.set(self.turns.get() + 1);
        self.clock.update();
        self.gates.awake(self.clock.now_ns(), handler.connections());
        if waited.is_ok() && !simulation::is_faulty(Fault::LostWakeUp) {
            // Connections that are here come first: what a new one asks for came later.
            let mut has_gates = false;
            for event in events.iter() {
                match Token::decode(event.token) {
                    Token::Gate(_) => has_gates = true,
                    token => self.take(handler, token, event),
                }
            }
            if has_gates {
                self.take_gates(handler, &events);
            }
        }
        self.events = events;
        self.after_events(handler);
        waited
    }

    /// Handles an event that is not a gate's.
    fn take<R: EventHandler>(&mut self, handler: &mut R, token: Token, event: Event) {
        let closed = event.is_peer_closed() || event.is_hang_up() || event.is_error();
        match token {
            Token::Parked(place) if self.is_stale(place as usize) => {}
            Token::Parked(place) => handler.ready(self, place, closed),
            Token::Watched(place) => {
                if let Some(waiter) = self.watched_sockets.event(place as usize, closed) {
                    handler.watched_socket_ready(self, waiter);
                }
            }
            Token::Numbered(owner, number) => {
                handler.numbered_socket_ready(self, owner, number, event);
            }
            Token::Mailbox => handler.commands(self),
            Token::Gate(_) => {}
        }
    }

    /// Accepts from the gates that have events.
    fn take_gates<R: EventHandler>(&mut self, handler: &mut R, events: &EventBuffer) {
        for event in events.iter() {
            if let Token::Gate(place) = Token::decode(event.token) {
                self.accept(handler, place as usize);
            }
        }
    }

    /// Whether an event of this turn belongs to the former socket of its token: a socket that was
    /// watched after the wait has had no event yet. Without this check a close event could end
    /// another connection.
    fn is_stale(&self, index: usize) -> bool {
        self.watched_in.get(index) == Some(&self.turns.get())
    }

    fn after_events<R: EventHandler>(&mut self, handler: &mut R) {
        self.end_accept_turn(handler);
        let now_ms = self.clock.now_ms();
        // One that is set anew for a time that has passed has its turn in the next round.
        for _ in 0..self.deadlines.len() {
            match self.deadlines.expire(now_ms).map(Token::decode) {
                Some(Token::Numbered(owner, number)) => {
                    handler.numbered_timer_due(self, owner, number);
                }
                Some(Token::Parked(place)) => handler.due(self, place),
                // No other has one.
                Some(Token::Gate(_) | Token::Watched(_) | Token::Mailbox) | None => break,
            }
        }
        if now_ms >= self.next_tick_ms {
            self.next_tick_ms = now_ms + TICK_MS;
            let mut due = std::mem::take(&mut self.due);
            self.wheel.expire(now_ms, &mut due);
            for token in due.drain(..) {
                handler.due(self, token);
            }
            self.due = due;
            handler.tick(self);
            self.tick_gates(handler);
        }
        handler.turn_ended(self);
    }

    /// The leftovers of closed connections: tokens with a deadline and timers, watched sockets, and
    /// futures that were not started.
    #[cfg(feature = "simulation")]
    pub fn left(&self) -> [usize; 3] {
        let watched_sockets = self.watched_sockets.len();
        let deadlines = self.wheel.len() + self.deadlines.timers();
        [deadlines, watched_sockets, self.drives.len()]
    }

    /// The longest wait of the bare loop, in milliseconds.
    fn sleep_ms<R: EventHandler>(&self, handler: &R) -> i32 {
        let tick_ms = if handler.connections() == 0 {
            IDLE_TICK_MS
        } else {
            TICK_MS
        };
        self.deadlines.sleep_ms(tick_ms, self.clock.now_ms()) as i32
    }
}

#[cfg(test)]
mod tests;
