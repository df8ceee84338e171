//! A lane's clock: it is read once a turn and used many times.
//!
//! The date texts are only formatted when the second changes: formatting one for each response
//! would cost more than all other work for a small response.

use std::cell::Cell;

use turnpike_wire::date;

use crate::sys::process::{monotonic_ns, unix_ms};

/// The time as of the last [`Clock::update`].
pub struct Clock {
    monotonic_ns: Cell<u64>,
    unix_ms: Cell<u64>,
    http_date: Cell<[u8; 29]>,
    http_date_second: Cell<u64>,
}

impl Clock {
    /// A clock set to the current time.
    pub fn new() -> Self {
        let clock = Self {
            monotonic_ns: Cell::new(0),
            unix_ms: Cell::new(0),
            http_date: Cell::new([0; 29]),
            http_date_second: Cell::new(u64::MAX),
        };
        clock.update();
        clock
    }

    /// Reads the time: two calls into the vDSO, no system call.
    pub fn update(&self) {
        self.monotonic_ns.set(monotonic_ns());
        self.unix_ms.set(unix_ms());
    }

    /// Monotonic milliseconds; only differences have a meaning.
    pub fn now_ms(&self) -> u64 {
        self.monotonic_ns.get() / 1_000_000
    }

    /// Monotonic nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.monotonic_ns.get()
    }

    /// Milliseconds since 1970.
    pub fn unix_ms(&self) -> u64 {
        self.unix_ms.get()
    }

    /// Seconds since 1970.
    pub fn unix_seconds(&self) -> u64 {
        self.unix_ms.get() / 1000
    }

    /// The date in HTTP's format (RFC 9110, IMF-fixdate).
    pub fn http_date(&self) -> [u8; 29] {
        let second = self.unix_seconds();
        if self.http_date_second.get() != second {
            self.http_date_second.set(second);
            self.http_date.set(date::format(second as i64));
        }
        self.http_date.get()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
