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
//!
//! A connection is **parked** while it waits for a request head, and everything that can be
//! answered at once is answered in the turn, without a task: this is the whole path of a short
//! connection. Only what has to wait is **driven**: a future on the lane's tokio runtime, which is
//! built when the first one appears and entered only while there are any. So the hot path costs
//! what a bare epoll loop costs, EPOLLEXCLUSIVE works (it does not through a nested instance), and
//! everything slow is still written as plain async code.
//!
//! This module knows sockets and deadlines; what happens on them is decided by the
//! [`EventHandler`].

mod gates;
mod mailbox;
mod run;
mod watched_sockets;
mod wheel;

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;

pub use gates::{AcceptSettings, LaneGate, Pulse};
pub use mailbox::Mailbox;
pub use run::run;
pub use watched_sockets::{WatchedSocket, WatchedSockets};
pub use wheel::Wheel;

use crate::clock::Clock;
use crate::sys::epoll::{Epoll, EventBuffer, Interest};
use crate::sys::simulation::{self, Fault};
use crate::sys::socket::PeerAddress;
use gates::Gates;

/// Events taken from the kernel at a time. More would make the last of them wait for all others.
const EVENTS_PER_TURN_MAX: usize = 512;

/// Between two looks at the wheel, in milliseconds.
const TICK_MS: u64 = 100;

/// How long a lane with nothing parked may sleep, in milliseconds.
const IDLE_TICK_MS: u64 = 1_000;

const TOKEN_MAILBOX: u64 = u64::MAX;
const TOKEN_GATE: u64 = 1 << 32;
const TOKEN_WATCHED_SOCKET: u64 = 1 << 33;

/// A future on the lane's own runtime.
pub type Driven = Pin<Box<dyn Future<Output = ()>>>;

/// What lives on a lane: its connections.
pub trait EventHandler {
    /// A connection was accepted on the gate of that number.
    fn accepted(
        &mut self,
        event_loop: &mut EventLoop,
        gate: u32,
        socket: OwnedFd,
        peer: PeerAddress,
    );
    /// Datagrams wait at that gate; said until they are read. A lane without such gates is never
    /// told.
    fn datagrams(&mut self, _event_loop: &mut EventLoop, _gate: &LaneGate) {}
    /// The parked connection of that token has something to read. Said once for what has come:
    /// the handler reads until the socket holds no more. `closed`: the peer has sent its last.
    fn ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool);
    /// A watched socket that the parked connection of that token waits for has something to read.
    fn watched_socket_ready(&mut self, event_loop: &mut EventLoop, token: u32);
    /// The deadline of that token may have come.
    fn due(&mut self, event_loop: &mut EventLoop, token: u32);
    /// All events of a turn were handed out.
    fn turn_ended(&mut self, event_loop: &mut EventLoop);
    /// Called about every 100 ms while connections exist, else every second.
    fn tick(&mut self, event_loop: &mut EventLoop);
    /// The mailbox holds commands.
    fn commands(&mut self, event_loop: &mut EventLoop);
    /// Connections held, parked and driven.
    fn connections(&self) -> usize;
    /// Of these, driven ones.
    fn driven(&self) -> usize;
    /// Closes connections that wait for nothing but a request. `false`: there is none that may be
    /// closed.
    fn make_room(&mut self, event_loop: &mut EventLoop) -> bool;
    /// Accepting failed and is tried again later; said once per failure.
    fn accept_failed(&mut self, event_loop: &mut EventLoop, gate: u32, error: &io::Error);
    /// Whether the lane has nothing left to do and ends.
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
    gates: Gates,
    drives: Vec<Driven>,
    events: EventBuffer,
    due: Vec<u32>,
    next_tick_ms: u64,
    /// Turns so far; the watched sockets know it too.
    turns: Rc<Cell<u64>>,
    /// By token: the turn in which it was given to a socket.
    watched_in: Vec<u64>,
}

impl EventLoop {
    /// A loop without gates that is woken by `mailbox`.
    ///
    /// # Errors
    /// When the kernel gives no epoll instance.
    pub fn new(clock: Rc<Clock>, mailbox: BorrowedFd<'_>) -> io::Result<Self> {
        let epoll = Rc::new(Epoll::new()?);
        epoll.add(mailbox, Interest::READ, TOKEN_MAILBOX)?;
        let turns = Rc::new(Cell::new(1));
        Ok(Self {
            watched_sockets: WatchedSockets::new(Rc::clone(&epoll), Rc::clone(&turns)),
            epoll,
            wheel: Wheel::new(clock.now_ms()),
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

    /// Where sockets of others are watched.
    pub fn watched_sockets(&self) -> WatchedSockets {
        self.watched_sockets.clone()
    }

    /// Watches a parked connection for something to read. Edge-triggered: a level-triggered one
    /// is asked by the kernel again in every wait after the one that named it.
    ///
    /// # Errors
    /// What epoll_ctl(2) says.
    pub fn watch(&mut self, socket: BorrowedFd<'_>, token: u32) -> io::Result<()> {
        let index = token as usize;
        if self.watched_in.len() <= index {
            self.watched_in.resize(index + 1, 0);
        }
        self.watched_in[index] = self.turns.get();
        let interest = Interest::READ | Interest::PEER_CLOSED | Interest::EDGE;
        self.epoll.add(socket, interest, u64::from(token))
    }

    /// Watches it no more. Closing the socket does the same.
    pub fn unwatch(&mut self, socket: BorrowedFd<'_>) {
        let _ = self.epoll.delete(socket);
    }

    /// Runs a future on the lane's runtime. The caller counts it in [`EventHandler::driven`] until
    /// it has ended.
    pub fn drive(&mut self, future: Driven) {
        self.drives.push(future);
    }

    /// Hands out the events that are there, waiting `timeout_ms` for the first; returns how many
    /// there were.
    ///
    /// # Errors
    /// What epoll_wait(2) says.
    pub fn turn<R: EventHandler>(&mut self, handler: &mut R, timeout_ms: i32) -> io::Result<usize> {
        let timeout_ms = self.before_wait(timeout_ms);
        let mut events = std::mem::replace(&mut self.events, EventBuffer::with_capacity(0));
        if timeout_ms != 0 {
            self.gates.asleep(handler.connections());
        }
        let waited = self.epoll.wait(&mut events, timeout_ms);
        self.turns.set(self.turns.get() + 1);
        self.clock.update();
        self.gates.awake(self.clock.now_ns(), handler.connections());
        if waited.is_ok() {
            for event in events.iter() {
                if simulation::is_faulty(Fault::LostWakeUp) {
                    continue;
                }
                match event.token {
                    TOKEN_MAILBOX => handler.commands(self),
                    token if token >= TOKEN_WATCHED_SOCKET => {
                        let closed = event.is_peer_closed() || event.is_hang_up();
                        let place = (token - TOKEN_WATCHED_SOCKET) as usize;
                        if let Some(waiter) = self
                            .watched_sockets
                            .event(place, closed || event.is_error())
                        {
                            handler.watched_socket_ready(self, waiter);
                        }
                    }
                    token if token >= TOKEN_GATE => {
                        self.accept(handler, (token - TOKEN_GATE) as usize);
                    }
                    token if self.is_stale(token as usize) => {}
                    token => {
                        let closed = event.is_peer_closed() || event.is_hang_up();
                        handler.ready(self, token as u32, closed || event.is_error());
                    }
                }
            }
        }
        self.events = events;
        self.after_events(handler);
        waited
    }

    /// Whether an event of this turn is of the socket that had the token before: what is watched
    /// since the wait has had no event yet. A closing taken for that of another connection would
    /// end that one.
    fn is_stale(&self, index: usize) -> bool {
        self.watched_in.get(index) == Some(&self.turns.get())
    }

    fn after_events<R: EventHandler>(&mut self, handler: &mut R) {
        self.end_accept_turn(handler);
        let now_ms = self.clock.now_ms();
        if now_ms >= self.next_tick_ms {
            self.next_tick_ms = now_ms + TICK_MS;
            let mut due = std::mem::take(&mut self.due);
            self.wheel.expire(now_ms, &mut due);
            for token in due.drain(..) {
                handler.due(self, token);
            }
            self.due = due;
            handler.tick(self);
        }
        handler.turn_ended(self);
    }

    /// What is left of connections that are gone: tokens with a deadline, watched sockets, futures
    /// that were not begun.
    #[cfg(feature = "simulation")]
    pub fn left(&self) -> [usize; 3] {
        let watched_sockets = self.watched_sockets.len();
        [self.wheel.len(), watched_sockets, self.drives.len()]
    }

    /// How long the bare loop may sleep, in milliseconds.
    fn sleep_ms<R: EventHandler>(&self, handler: &R) -> i32 {
        let tick_ms = if handler.connections() == 0 {
            IDLE_TICK_MS
        } else {
            TICK_MS
        };
        tick_ms as i32
    }
}

impl AsFd for EventLoop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests;
