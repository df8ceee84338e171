//! Which lane accepts: the modes, and the accept mutex of nginx.
//!
//! The mutex guards nothing but fairness: two lanes that listened at once would both be right, and
//! one of them would find the queue empty.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sys::epoll::Interest;

/// How lanes share the connections of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcceptMode {
    /// One socket, and one lane at a time waits on it (`accept_mutex on`).
    Mutex,
    /// One socket on which all lanes wait, the kernel waking one (`accept_mutex off`).
    Shared,
    /// A socket a lane, the kernel choosing by hash (`reuseport`).
    Reuseport,
    /// A socket a lane, our program choosing (`reuseport=steer`).
    Steered,
}

impl AcceptMode {
    /// Whether every lane has a gate of its own.
    pub fn has_gate_per_lane(self) -> bool {
        matches!(self, AcceptMode::Reuseport | AcceptMode::Steered)
    }

    /// The name, as it is told to people.
    pub fn name(self) -> &'static str {
        match self {
            AcceptMode::Mutex => "accept_mutex",
            AcceptMode::Shared => "shared",
            AcceptMode::Reuseport => "reuseport",
            AcceptMode::Steered => "steered",
        }
    }

    /// What a lane's epoll asks about its gates. A shared gate wakes one lane only (Linux 4.5).
    pub fn interest(self) -> Interest {
        match self {
            AcceptMode::Shared => Interest::READ | Interest::EXCLUSIVE,
            AcceptMode::Mutex | AcceptMode::Reuseport | AcceptMode::Steered => Interest::READ,
        }
    }
}

/// Nobody holds the mutex.
const FREE: usize = 0;

/// The lock that all lanes of a process share.
#[derive(Debug, Default)]
pub struct AcceptMutex {
    /// 0 or the holder's number plus 1.
    holder: AtomicUsize,
}

impl AcceptMutex {
    /// A mutex that nobody holds.
    pub const fn new() -> AcceptMutex {
        AcceptMutex {
            holder: AtomicUsize::new(FREE),
        }
    }

    /// Takes it for `lane` if nobody holds it; never waits. `false` also when `lane` holds it.
    pub fn try_acquire(&self, lane: usize) -> bool {
        self.holder
            .compare_exchange(FREE, lane + 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Gives it back if `lane` holds it, and says whether it did. Also what the process does for a
    /// lane that has ended unexpectedly.
    pub fn release(&self, lane: usize) -> bool {
        self.holder
            .compare_exchange(lane + 1, FREE, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// The lane that holds the mutex at this moment.
    pub fn holder(&self) -> Option<usize> {
        self.holder.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// What a lane does with its gates in this round of its loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Wait on them. `arm`: they are not registered yet.
    Listen {
        /// Register them first.
        arm: bool,
    },
    /// Leave them to the others, and try again after `accept_mutex_delay` at the latest.
    /// `disarm`: they are still registered.
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

    /// Begins a round. A lane that keeps winning leaves its gates registered throughout.
    ///
    /// A lane that rests because it is full unregisters its gates; nginx leaves them until the next
    /// lost attempt, and so accepts what it wanted to leave to others.
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

    /// Counts how many rounds a lane shall rest, after it has accepted: as soon as fewer than an
    /// eighth of its connections are free, as many as are missing.
    pub fn balance(&mut self, connections_max: usize, connections_free: usize) {
        self.rounds_to_rest = (connections_max / 8).saturating_sub(connections_free);
    }

    /// Gives the mutex back, once the queue is emptied and before anything else is done.
    pub fn end(&mut self, mutex: &AcceptMutex) {
        mutex.release(self.lane);
    }

    /// Says that the gates are not registered any more: after running out of descriptors, say.
    /// The lane rests for one round.
    pub fn disarmed(&mut self, mutex: &AcceptMutex) {
        mutex.release(self.lane);
        self.is_armed = false;
        self.rounds_to_rest = self.rounds_to_rest.max(1);
    }
}
