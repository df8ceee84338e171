//! What happened on a lane, counted where it happens and read from anywhere.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::metrics::{Kind, Row};

macro_rules! counters {
    ($( $name:ident: $kind:ident $row:literal in $unit:literal, $help:literal; )+) => {
        /// One lane's counters. The lane alone writes them, so a plain load and store will do.
        #[derive(Default)]
        pub struct HttpCounters { $( #[doc = $help] pub $name: Counter, )+ }

        /// The table of them: what each is, and where.
        pub static COUNTERS: &[LaneRow] = &[
            $(LaneRow {
                row: Row {
                    name: $row,
                    kind: Kind::$kind,
                    unit: $unit,
                    labels: &["lane"],
                    help: $help,
                },
                counter: |counters| &counters.$name,
            },)+
        ];
    };
}

/// A counter that every lane has.
pub struct LaneRow {
    /// What it is.
    pub row: Row,
    /// Where it is.
    pub counter: fn(&HttpCounters) -> &Counter,
}

counters! {
    accepted: Counter "connections_accepted" in "connections",
        "Connections taken from a gate.";
    handled: Counter "connections_handled" in "connections",
        "Connections taken and not closed at once for want of room.";
    requests: Counter "requests" in "requests",
        "Requests whose head was read, or refused.";
    reading: Gauge "connections_reading" in "connections",
        "Connections of whose request head a part has come.";
    writing: Gauge "connections_writing" in "connections",
        "Connections with a request that is worked on or answered.";
    waiting: Gauge "connections_waiting" in "connections",
        "Connections that wait for a request.";
    active: Gauge "connections_active" in "connections",
        "Connections that are open.";
    made_room: Counter "connections_made_room" in "connections",
        "Idle connections that were closed to make room for new ones.";
    log_lines_lost: Counter "log_lines_lost" in "lines",
        "Lines of access logs that could not be written.";
}

/// Numbers that a lane takes from the process at a time: large enough that lanes seldom meet.
const SERIAL_BLOCK: u64 = 64;

/// What the lanes of a process have in common to count with.
#[derive(Default)]
pub struct AllCounters {
    lanes: Mutex<Vec<Arc<HttpCounters>>>,
    serials: AtomicU64,
}

impl AllCounters {
    /// Counters for a new lane.
    pub fn add_lane(&self) -> Arc<HttpCounters> {
        let counters = Arc::new(HttpCounters::default());
        self.lanes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(counters.clone());
        counters
    }

    /// The counters of every lane that was ever started, in the order of their start.
    pub fn lanes(&self) -> Vec<Arc<HttpCounters>> {
        self.lanes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// One counter summed over all lanes.
    pub fn total(&self, counter: impl Fn(&HttpCounters) -> &Counter) -> u64 {
        self.lanes().iter().map(|lane| counter(lane).value()).sum()
    }

    /// The first of a block of connection numbers, and the one behind its last.
    pub(crate) fn serial_block(&self) -> (u64, u64) {
        let first = self.serials.fetch_add(SERIAL_BLOCK, Relaxed) + 1;
        (first, first + SERIAL_BLOCK)
    }
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
