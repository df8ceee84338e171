//! The accept modes, and nginx's accept mutex.
//!
//! The mutex only serves fairness: two lanes may safely accept at once, and one of them would find
//! the queue empty.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sys::epoll::Interest;

/// The way in which lanes share the connections of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcceptMode {
    /// One socket; one lane at a time waits on it (`accept_mutex on`).
    Mutex,
    /// One socket; all lanes wait on it, and the kernel wakes one (`accept_mutex off`).
    Shared,
    /// One socket per lane; the kernel chooses by hash (`reuseport`).
    Reuseport,
    /// One socket per lane; our program chooses (`reuseport=steer`).
    Steered,
    /// One socket of datagrams per lane; our program chooses by the connection IDs of QUIC.
    SteeredQuic,
}

impl AcceptMode {
    /// Whether every lane has a gate of its own.
    pub fn has_gate_per_lane(self) -> bool {
        match self {
            AcceptMode::Reuseport | AcceptMode::Steered | AcceptMode::SteeredQuic => true,
            AcceptMode::Mutex | AcceptMode::Shared => false,
        }
    }

    /// The name for logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            AcceptMode::Mutex => "accept_mutex",
            AcceptMode::Shared => "shared",
            AcceptMode::Reuseport => "reuseport",
            AcceptMode::Steered | AcceptMode::SteeredQuic => "steered",
        }
    }

    /// The events that a lane waits for. A shared gate wakes one lane only (Linux 4.5).
    pub fn interest(self) -> Interest {
        match self {
            AcceptMode::Shared => Interest::READ | Interest::EXCLUSIVE,
            AcceptMode::Mutex
            | AcceptMode::Reuseport
            | AcceptMode::Steered
            | AcceptMode::SteeredQuic => Interest::READ,
        }
    }
}

/// The mutex is free.
const FREE: usize = 0;

/// The lock that all lanes of a process share.
#[derive(Debug, Default)]
pub struct AcceptMutex {
    /// 0 or the holder's number plus 1.
    holder: AtomicUsize,
}

impl AcceptMutex {
    /// A free mutex.
    pub const fn new() -> AcceptMutex {
        AcceptMutex {
            holder: AtomicUsize::new(FREE),
        }
    }

    /// Takes the mutex for `lane` if it is free; never waits. `false` also if `lane` already holds
    /// it.
    pub fn try_acquire(&self, lane: usize) -> bool {
        self.holder
            .compare_exchange(FREE, lane + 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Releases the mutex if `lane` holds it, and returns whether it did. The process calls it too,
    /// for a lane that has ended unexpectedly.
    pub fn release(&self, lane: usize) -> bool {
        self.holder
            .compare_exchange(lane + 1, FREE, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// The lane that holds the mutex now.
    pub fn holder(&self) -> Option<usize> {
        self.holder.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// The treatment of a lane's gates in this turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Wait on them. `arm`: they are not registered yet.
    Listen {
        /// Register them first.
        arm: bool,
    },
    /// Do not accept, and try again after `accept_mutex_delay` at the latest. `disarm`: the gates
    /// are still registered.
    Rest {
        /// Unregister them first.
        disarm: bool,
    },
}

/// One lane's part in the accept mutex.
///
/// ```text
/// begin ─► Listen ─► wait, accept ─► balance ─► end ─► other events ─► begin
///      └─► Rest ───► wait at most accept_mutex_delay ───────────────────┘
/// ```
#[derive(Debug)]
pub struct AcceptTurn {
    lane: usize,
    is_armed: bool,
    rounds_to_rest: usize,
}

impl AcceptTurn {
    /// The part of lane number `lane`; its gates are not registered.
    pub fn new(lane: usize) -> AcceptTurn {
        AcceptTurn {
            lane,
            is_armed: false,
            rounds_to_rest: 0,
        }
    }

    /// Begins a turn. A lane that keeps the mutex leaves its gates registered.
    ///
    /// A full lane that pauses unregisters its gates. nginx leaves them registered until the next
    /// failed attempt, and so accepts connections that it wanted to leave to others.
    pub fn begin(&mut self, mutex: &AcceptMutex) -> Turn {
        let is_full = self.rounds_to_rest > 0;
        self.rounds_to_rest = self.rounds_to_rest.saturating_sub(1);
        if !is_full && mutex.try_acquire(self.lane) {
            let arm = !std::mem::replace(&mut self.is_armed, true);
            return Turn::Listen { arm };
        }
        Turn::Rest {
            disarm: std::mem::replace(&mut self.is_armed, false),
        }
    }

    /// Counts the turns that a lane must pause, after it has accepted: if fewer than an eighth of
    /// its connections are free, it pauses for as many turns as are missing.
    pub fn balance(&mut self, connections_max: usize, connections_free: usize) {
        self.rounds_to_rest = (connections_max / 8).saturating_sub(connections_free);
    }

    /// Whether the lane pauses for more than one turn.
    pub fn rests(&self) -> bool {
        self.rounds_to_rest > 1
    }

    /// Ends a pause that was counted by [`AcceptTurn::balance`]: no other lane has fewer
    /// connections, so nobody would accept meanwhile. nginx goes on to pause, for up to an eighth
    /// of its connections times `accept_mutex_delay`.
    pub fn end_rest(&mut self) {
        self.rounds_to_rest = self.rounds_to_rest.min(1);
    }

    /// Releases the mutex, after accepting and before all other work.
    pub fn end(&mut self, mutex: &AcceptMutex) {
        mutex.release(self.lane);
    }

    /// Records that the gates are not registered any more, for example after running out of
    /// descriptors. The lane pauses for one turn.
    pub fn disarmed(&mut self, mutex: &AcceptMutex) {
        mutex.release(self.lane);
        self.is_armed = false;
        self.rounds_to_rest = self.rounds_to_rest.max(1);
    }
}
