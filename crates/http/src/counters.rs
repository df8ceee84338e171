//! What happened on a lane, counted where it happens and read from anywhere.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($( $(#[$doc:meta])* $name:ident, )+) => {
        /// One lane's counters. The lane alone writes them, so a plain load and store will do.
        #[derive(Default)]
        pub struct HttpCounters { $( $(#[$doc])* pub $name: Counter, )+ }
    };
}

counters! {
    /// Connections accepted.
    accepted,
    /// Connections accepted and not closed at once for want of room.
    handled,
    /// Requests whose head was read, or refused.
    requests,
    /// Connections whose request head is being read.
    reading,
    /// Connections with a request that is worked on or answered.
    writing,
    /// Connections that wait for their next request.
    waiting,
    /// Connections open.
    active,
    /// Idle connections that were closed to make room for new ones.
    made_room,
}

/// A number that one thread writes and many read.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn add(&self) {
        self.0.store(self.0.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Takes one off.
    pub fn sub(&self) {
        self.0
            .store(self.0.load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Reads it.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
