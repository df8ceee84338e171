//! The accept path: the gates that a lane watches, and the number of connections that it accepts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::{EventHandler, EventLoop, TOKEN_GATE};
use crate::gate::{AcceptMode, AcceptMutex, AcceptTurn, Turn};
use crate::steering::LanePulse;
use crate::sys::socket::{self, Kind};

/// The most connections that one gate gives in a turn with `multi_accept`: enough to empty a usual
/// burst, and few enough that a flood does not delay parked connections.
const ACCEPTS_PER_TURN_MAX: usize = 256;

/// The most connections taken from a gate that is being closed: more than any backlog holds.
const QUEUED_ACCEPTS_MAX: usize = 1 << 20;

/// The time for which a full lane does not accept, in milliseconds: some connections end meanwhile.
const FULL_PAUSE_MS: u64 = 20;

/// A receiver of a lane's state for the steering of connections. It is called in every turn, so it
/// must not enter the kernel.
pub trait Pulse: Send {
    /// The lane is working, and has this many connections.
    fn awake(&self, now_ns: u64, connections: u64);
    /// The lane waits for events: it is healthy, however long the wait is.
    fn asleep(&self, connections: u64);
}

impl Pulse for LanePulse {
    fn awake(&self, now_ns: u64, connections: u64) {
        LanePulse::awake(self, now_ns, connections);
    }

    fn asleep(&self, connections: u64) {
        LanePulse::asleep(self, connections);
    }
}

/// A gate of a lane.
#[derive(Clone)]
pub struct LaneGate {
    /// The number for [`EventHandler::accepted`].
    pub number: u32,
    /// The listening socket; other lanes may share it.
    pub socket: Arc<OwnedFd>,
    /// The way in which lanes share it.
    pub mode: AcceptMode,
    /// Whether connections are accepted from it, or datagrams read.
    pub kind: Kind,
}

/// The accept settings of a lane.
#[derive(Clone)]
pub struct AcceptSettings {
    /// The most connections that the lane may hold.
    pub connections_max: usize,
    /// Whether to accept all waiting connections, not one at a time.
    pub multi_accept: bool,
    /// The time to wait for the mutex when another lane has it, in milliseconds. The lane also
    /// waits this long after accept(2) ran out of descriptors or memory: the connection stays in
    /// the queue, so trying at once would spin.
    pub mutex_delay_ms: u64,
    /// The mutex that lanes share; `None` if no gate is in mutex mode.
    pub mutex: Option<Arc<AcceptMutex>>,
    /// Number of the lane.
    pub lane: usize,
}

impl Default for AcceptSettings {
    fn default() -> Self {
        Self {
            connections_max: 512,
            multi_accept: false,
            mutex_delay_ms: 500,
            mutex: None,
            lane: 0,
        }
    }
}

#[derive(Default)]
pub(super) struct Gates {
    entries: Vec<WatchedGate>,
    settings: AcceptSettings,
    heartbeat: Option<Box<dyn Pulse>>,
    /// The end of a pause in accepting.
    paused_until_ms: u64,
    paused: bool,
    turn: Option<AcceptTurn>,
}

struct WatchedGate {
    gate: LaneGate,
    watched: bool,
    /// The gate belongs to another lane, and is watched until that lane works again.
    adopted: bool,
}

impl Gates {
    /// Reports that the lane is working.
    pub(super) fn awake(&self, now_ns: u64, connections: usize) {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.awake(now_ns, connections as u64);
        }
    }

    /// Reports that the lane is about to wait.
    pub(super) fn asleep(&self, connections: usize) {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.asleep(connections as u64);
        }
    }
}

impl EventLoop {
    /// Replaces the lane's gates. Gates with the same socket are not touched; gates that are not in
    /// the list are no longer watched.
    ///
    /// # Errors
    /// A new gate cannot be watched; the others are watched.
    pub fn set_gates(&mut self, gates: Vec<LaneGate>, settings: AcceptSettings) -> io::Result<()> {
        self.unwatch_gates(|_| true);
        self.disarm();
        self.gates.turn = settings
            .mutex
            .as_ref()
            .map(|_| AcceptTurn::new(settings.lane));
        self.gates.settings = settings;
        self.gates.entries = gates
            .into_iter()
            .map(|gate| WatchedGate {
                gate,
                watched: false,
                adopted: false,
            })
            .collect();
        self.watch_gates(|mode| mode != AcceptMode::Mutex)
    }

    /// Sets the lane's pulse, for gates that are steered.
    pub fn set_heartbeat(&mut self, heartbeat: Option<Box<dyn Pulse>>) {
        self.gates.heartbeat = heartbeat;
    }

    /// Watches the gates of lanes that have stopped working, in addition to the lane's own. They
    /// replace the gates of the last call. Both lanes may watch them at once.
    ///
    /// # Errors
    /// A gate cannot be watched; the others are watched.
    pub fn adopt_gates(&mut self, gates: Vec<LaneGate>) -> io::Result<()> {
        self.release_adopted();
        self.gates
            .entries
            .extend(gates.into_iter().map(|gate| WatchedGate {
                gate,
                watched: false,
                adopted: true,
            }));
        self.watch_gates(|mode| mode != AcceptMode::Mutex)
    }

    fn release_adopted(&mut self) {
        for entry in self.gates.entries.iter_mut().filter(|entry| entry.adopted) {
            if std::mem::take(&mut entry.watched) {
                let _ = self.epoll.delete(entry.gate.socket.as_fd());
            }
        }
        // They follow the lane's own gates, whose indexes are their tokens.
        self.gates.entries.retain(|entry| !entry.adopted);
    }

    /// Accepts the waiting connections of all gates without an event: the lane that got the event
    /// may be unable to accept.
    pub fn look<R: EventHandler>(&mut self, handler: &mut R) {
        for index in 0..self.gates.entries.len() {
            self.accept(handler, index);
        }
    }

    /// The number of connections that a lane with `connections` may add.
    pub fn room(&self, connections: usize) -> usize {
        self.gates
            .settings
            .connections_max
            .saturating_sub(connections)
    }

    /// Stops accepting. Returns the gates, whose queues may hold connections.
    pub fn close_gates(&mut self) -> Vec<LaneGate> {
        self.unwatch_gates(|_| true);
        self.disarm();
        self.gates
            .entries
            .drain(..)
            .map(|entry| entry.gate)
            .collect()
    }

    /// Accepts the connections in the queue of a gate that is about to be closed.
    ///
    /// Waiting datagrams are left: the next holder of the socket reads them, and without one the
    /// address is gone.
    pub fn accept_queued<R: EventHandler>(&mut self, handler: &mut R, gate: &LaneGate) {
        if gate.kind == Kind::Datagram {
            return;
        }
        for _ in 0..QUEUED_ACCEPTS_MAX {
            match socket::accept(gate.socket.as_fd()) {
                Ok((connection, peer)) => handler.accepted(self, gate.number, connection, peer),
                Err(error) => match accept_failure(&error) {
                    AcceptFailure::ThisConnection => {}
                    AcceptFailure::Nothing | AcceptFailure::Exhausted => return,
                },
            }
        }
    }

    /// Takes the mutex or ends a pause, and returns the longest wait.
    pub(super) fn before_wait(&mut self, timeout_ms: i32) -> i32 {
        if self.gates.paused {
            let now_ms = self.clock.now_ms();
            if now_ms < self.gates.paused_until_ms {
                let left_ms = self.gates.paused_until_ms - now_ms;
                return timeout_ms.min(left_ms as i32);
            }
            self.gates.paused = false;
            let _ = self.watch_gates(|mode| mode != AcceptMode::Mutex);
        }
        let Some((turn, mutex)) = self
            .gates
            .turn
            .as_mut()
            .zip(self.gates.settings.mutex.clone())
        else {
            return timeout_ms;
        };
        match turn.begin(&mutex) {
            Turn::Listen { arm } => {
                if arm {
                    let _ = self.watch_gates(|mode| mode == AcceptMode::Mutex);
                }
                timeout_ms
            }
            Turn::Rest { disarm } => {
                if disarm {
                    self.unwatch_gates(|mode| mode == AcceptMode::Mutex);
                }
                timeout_ms.min(self.gates.settings.mutex_delay_ms as i32)
            }
        }
    }

    /// Allows other lanes to accept.
    pub(super) fn end_accept_turn<R: EventHandler>(&mut self, handler: &R) {
        let settings = &self.gates.settings;
        if let (Some(turn), Some(mutex)) = (&mut self.gates.turn, &settings.mutex) {
            let most = settings.connections_max;
            turn.balance(most, most.saturating_sub(handler.connections()));
            turn.end(mutex);
        }
    }

    pub(super) fn accept<R: EventHandler>(&mut self, handler: &mut R, index: usize) {
        let Some(entry) = self.gates.entries.get(index).filter(|entry| entry.watched) else {
            return;
        };
        if entry.gate.kind == Kind::Datagram {
            let gate = entry.gate.clone();
            if self.room(handler.connections()) == 0 {
                // Datagrams of existing sessions are read in any case.
                handler.make_room(self);
            }
            handler.datagrams(self, &gate);
            return;
        }
        let (number, socket) = (entry.gate.number, entry.gate.socket.clone());
        let turns = if self.gates.settings.multi_accept {
            ACCEPTS_PER_TURN_MAX
        } else {
            1
        };
        for _ in 0..turns {
            let full = handler.connections() >= self.gates.settings.connections_max;
            if full && !handler.make_room(self) {
                self.pause(FULL_PAUSE_MS);
                return;
            }
            match socket::accept(socket.as_fd()) {
                Ok((connection, peer)) => handler.accepted(self, number, connection, peer),
                Err(error) => match accept_failure(&error) {
                    AcceptFailure::Nothing => return,
                    AcceptFailure::ThisConnection => {}
                    AcceptFailure::Exhausted => {
                        handler.accept_failed(self, number, &error);
                        if !handler.make_room(self) {
                            self.pause(self.gates.settings.mutex_delay_ms);
                            return;
                        }
                    }
                },
            }
        }
    }

    fn pause(&mut self, pause_ms: u64) {
        self.gates.paused = true;
        self.gates.paused_until_ms = self.clock.now_ms() + pause_ms;
        self.unwatch_gates(|_| true);
        self.disarm();
    }

    fn disarm(&mut self) {
        if let (Some(turn), Some(mutex)) = (&mut self.gates.turn, &self.gates.settings.mutex) {
            turn.disarmed(mutex);
        }
    }

    fn watch_gates(&mut self, wanted: impl Fn(AcceptMode) -> bool) -> io::Result<()> {
        let mut result = Ok(());
        for (index, entry) in self.gates.entries.iter_mut().enumerate() {
            if entry.watched || !wanted(entry.gate.mode) {
                continue;
            }
            let interest = entry.gate.mode.interest();
            let token = TOKEN_GATE + index as u64;
            match self.epoll.add(entry.gate.socket.as_fd(), interest, token) {
                Ok(()) => entry.watched = true,
                Err(error) => result = Err(error),
            }
        }
        result
    }

    fn unwatch_gates(&mut self, wanted: impl Fn(AcceptMode) -> bool) {
        for entry in &mut self.gates.entries {
            if entry.watched && wanted(entry.gate.mode) {
                entry.watched = false;
                let _ = self.epoll.delete(entry.gate.socket.as_fd());
            }
        }
    }
}

enum AcceptFailure {
    /// The queue is empty.
    Nothing,
    /// The client closed the connection while it waited.
    ThisConnection,
    /// Out of descriptors or memory.
    Exhausted,
}

fn accept_failure(error: &io::Error) -> AcceptFailure {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => AcceptFailure::Nothing,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
            AcceptFailure::Exhausted
        }
        // A network error from accept(2) belongs to the one connection.
        _ => AcceptFailure::ThisConnection,
    }
}
