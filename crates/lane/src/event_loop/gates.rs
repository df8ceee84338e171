//! The accept path: the gates that a lane watches, and the number of connections that it accepts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::token::{Owner, Token};
use super::{EventHandler, EventLoop};
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

/// Part of a lane's connections that is left to those that end by themselves, and how many that are
/// at most. A few are enough: each is answered at once, and makes room again.
const SPARE_CONNECTIONS_PART: usize = 16;
const SPARE_CONNECTIONS_MAX: usize = 16;

/// The connections of a lane, which may hold so many, that may wait for others without a limit of
/// their own: requests for upstream servers, and sessions. At least one may.
pub fn waiting_connections_max(connections_max: usize) -> usize {
    let spare = (connections_max / SPARE_CONNECTIONS_PART).clamp(1, SPARE_CONNECTIONS_MAX);
    connections_max.saturating_sub(spare).max(1)
}

/// A receiver of a lane's state for the steering of connections. It is called in every turn, so it
/// must not enter the kernel.
pub trait Pulse: Send {
    /// The lane is working, and has this many connections.
    fn awake(&self, now_ns: u64, connections: u64);
    /// The lane waits for events: it is healthy, however long the wait is.
    fn asleep(&self, connections: u64);
    /// Whether the number of connections of any other lane that works is such a one.
    fn has_other_lane(&self, _now_ns: u64, _is_such: &dyn Fn(u64) -> bool) -> bool {
        false
    }
}

impl Pulse for LanePulse {
    fn awake(&self, now_ns: u64, connections: u64) {
        LanePulse::awake(self, now_ns, connections);
    }

    fn asleep(&self, connections: u64) {
        LanePulse::asleep(self, connections);
    }

    fn has_other_lane(&self, now_ns: u64, is_such: &dyn Fn(u64) -> bool) -> bool {
        self.other_loads(now_ns).any(is_such)
    }
}

/// The number of a gate: the protocol that it belongs to, and which of its gates it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateNumber {
    /// The protocol that serves it.
    pub owner: Owner,
    /// The place among the listens of that protocol's plan.
    pub place: u32,
}

/// A gate of a lane.
#[derive(Clone)]
pub struct LaneGate {
    /// The number for [`EventHandler::accepted`].
    pub number: GateNumber,
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
    /// Connections of a gate with the mutex were looked for in this turn.
    has_looked: bool,
}

struct WatchedGate {
    gate: LaneGate,
    watched: bool,
    /// The gate belongs to another lane, and is watched until that lane works again.
    adopted: bool,
    /// Connections are left to other lanes until the next tick.
    rests: bool,
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
                rests: false,
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
                rests: false,
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

    /// As [`EventLoop::room`], for connections that may last as long as their clients like: some
    /// places are left to others.
    pub fn room_for_waiting(&self, connections: usize) -> usize {
        waiting_connections_max(self.gates.settings.connections_max).saturating_sub(connections)
    }

    /// The most connections that the lane may hold.
    pub fn connections_max(&self) -> usize {
        self.gates.settings.connections_max
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
    pub(super) fn before_wait<R: EventHandler>(&mut self, handler: &R, timeout_ms: i32) -> i32 {
        if self.gates.paused {
            let now_ms = self.clock.now_ms();
            if now_ms < self.gates.paused_until_ms {
                let left_ms = self.gates.paused_until_ms - now_ms;
                return timeout_ms.min(left_ms as i32);
            }
            self.gates.paused = false;
            let _ = self.watch_gates(|mode| mode != AcceptMode::Mutex);
        }
        let rests = self.gates.turn.as_ref().is_some_and(AcceptTurn::rests);
        let nobody_accepts =
            rests && self.gates.heartbeat.is_some() && !self.has_lane_below(handler.connections());
        let Some((turn, mutex)) = self
            .gates
            .turn
            .as_mut()
            .zip(self.gates.settings.mutex.clone())
        else {
            return timeout_ms;
        };
        if nobody_accepts {
            turn.end_rest();
        }
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
        let has_looked = std::mem::take(&mut self.gates.has_looked);
        let settings = &self.gates.settings;
        if let (Some(turn), Some(mutex)) = (&mut self.gates.turn, &settings.mutex) {
            let most = settings.connections_max;
            if has_looked {
                turn.balance(most, most.saturating_sub(handler.connections()));
            }
            turn.end(mutex);
        }
    }

    pub(super) fn accept<R: EventHandler>(&mut self, handler: &mut R, index: usize) {
        let Some(entry) = self.gates.entries.get(index).filter(|entry| entry.watched) else {
            return;
        };
        if entry.gate.kind == Kind::Datagram {
            let gate = entry.gate.clone();
            handler.datagrams(self, &gate);
            return;
        }
        self.gates.has_looked |= entry.gate.mode == AcceptMode::Mutex;
        let (number, socket) = (entry.gate.number, entry.gate.socket.clone());
        let refuses = handler.refuses_when_full(number);
        if refuses && self.leaves_to_others(handler, index) {
            return;
        }
        let turns = if self.gates.settings.multi_accept {
            ACCEPTS_PER_TURN_MAX
        } else {
            1
        };
        for _ in 0..turns {
            let full = handler.connections() >= self.gates.settings.connections_max;
            if full && !refuses && !handler.make_room(self) {
                handler.stays_full(self);
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

    /// Whether a lane that could only refuse connections of a gate leaves them to other lanes,
    /// which share the gate and have room.
    fn leaves_to_others<R: EventHandler>(&mut self, handler: &R, index: usize) -> bool {
        let most = waiting_connections_max(self.gates.settings.connections_max);
        if handler.connections() < most || !self.has_lane_below(most) {
            return false;
        }
        let Some(entry) = self.gates.entries.get_mut(index) else {
            return false;
        };
        if entry.gate.mode.has_gate_per_lane() {
            return false;
        }
        // In mutex mode the lane's next turns are another's.
        if entry.gate.mode == AcceptMode::Shared && std::mem::take(&mut entry.watched) {
            entry.rests = true;
            let _ = self.epoll.delete(entry.gate.socket.as_fd());
        }
        true
    }

    /// Whether another lane that works has fewer connections than that.
    fn has_lane_below(&self, connections: usize) -> bool {
        self.has_other_lane(&|load| load < connections as u64)
    }

    fn has_other_lane(&self, is_such: &dyn Fn(u64) -> bool) -> bool {
        let heartbeat = self.gates.heartbeat.as_ref();
        heartbeat.is_some_and(|pulse| pulse.has_other_lane(self.clock.now_ns(), is_such))
    }

    /// Looks after gates that lanes share, at every tick: those that rest are watched again, and
    /// connections are accepted whose event came to a lane that has left them to others.
    pub(super) fn tick_gates<R: EventHandler>(&mut self, handler: &mut R) {
        let entries = &mut self.gates.entries;
        let mut resting = entries.iter_mut().filter(|entry| entry.rests);
        if resting.next().is_some() {
            entries.iter_mut().for_each(|entry| entry.rests = false);
            if !self.gates.paused {
                let _ = self.watch_gates(|mode| mode != AcceptMode::Mutex);
            }
        }
        let most = waiting_connections_max(self.gates.settings.connections_max);
        let is_full = |load| load >= most as u64;
        if handler.connections() >= most || !self.has_other_lane(&is_full) {
            return;
        }
        for index in 0..self.gates.entries.len() {
            if self.gates.entries[index].gate.mode == AcceptMode::Shared {
                self.accept(handler, index);
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
            if entry.watched || entry.rests || !wanted(entry.gate.mode) {
                continue;
            }
            let interest = entry.gate.mode.interest();
            let token = Token::Gate(index as u32).encode();
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
