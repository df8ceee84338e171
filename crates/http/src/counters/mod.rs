//! What happened on a lane, counted where it happens and read from anywhere.

mod close_reason;
mod reader;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use turnpike_lane::counters::Counter;
use turnpike_lane::counters::Histogram;

pub use close_reason::CloseReason;
use reader::LastReload;
pub use reader::{OWN_ROWS, ProcessCounts, WatchedGate};

use crate::h3::process::Http3Process;
use turnpike_plan::metrics::{Kind, Row};

macro_rules! counters {
    ($( $name:ident: $kind:ident $row:literal in $unit:literal, $help:literal; )+) => {
        /// One lane's counters. The lane alone writes them, so a plain load and store will do.
        #[derive(Default)]
        pub struct HttpCounters {
            $( #[doc = $help] pub $name: Counter, )+
            /// Requests by the status of their answer.
            pub statuses: Statuses,
            /// Closed connections, by [`CloseReason`].
            pub closed: [Counter; CloseReason::ALL.len()],
            /// From accept to the first byte of the first answer.
            pub first_byte: Histogram,
            /// From a request's first byte to the last of its answer.
            pub request_times: Histogram,
            /// What a round of the loop took that had something to do.
            pub rounds: Histogram,
        }

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
    pub row: Row,
    /// Where it is.
    pub counter: fn(&HttpCounters) -> &Counter,
}

counters! {
    accepted: Counter "connections_accepted" in "connections",
        "Connections that were accepted, or taken over from the serving process before.";
    handled: Counter "connections_handled" in "connections",
        "Accepted connections that were not closed at once for lack of room.";
    requests: Counter "requests" in "requests",
        "Requests with a complete or rejected head.";
    reading: Gauge "connections_reading" in "connections",
        "Connections on which part of a request head has arrived.";
    writing: Gauge "connections_writing" in "connections",
        "Connections with a request that is being processed or answered.";
    waiting: Gauge "connections_waiting" in "connections",
        "Idle connections that wait for a request.";
    active: Gauge "connections_active" in "connections",
        "Open connections.";
    made_room: Counter "connections_made_room" in "connections",
        "Idle or slow connections that were closed to make room for others.";
    streams: Gauge "http_streams_waiting" in "streams",
        "HTTP/2 requests that wait: for their body, an upstream server, or room to be sent.";
    streams_made_room: Counter "http_streams_made_room" in "streams",
        "HTTP/2 requests that were closed to make room for others, because their clients were \
         stalled.";
    streams_refused: Counter "http_streams_refused" in "streams",
        "HTTP/2 requests that were refused for lack of room.";
    handshakes: Counter "tls_handshakes" in "handshakes",
        "TLS handshakes with clients that were completed.";
    bytes_received: Counter "received_bytes" in "bytes",
        "Bytes of requests received from clients.";
    bytes_sent: Counter "sent_bytes" in "bytes",
        "Bytes of responses sent to clients.";
    file_waits: Counter "file_waits" in "reads",
        "Reads of files that were not in memory, by threads so that the lane did not wait.";
    moved: Counter "connections_moved" in "connections",
        "Connections that were handed to another lane, or to the next serving process.";
    quic_forwarded: Counter "quic_datagrams_forwarded" in "datagrams",
        "QUIC datagrams that reached the lane, and were forwarded to the lane of their \
         connection.";
    panics: Counter "panics" in "connections",
        "Connections that were closed because of an internal error of the server.";
    log_lines_lost: Counter "log_lines_lost" in "lines",
        "Access log lines that could not be written.";
    rescues: Counter "lane_rescues" in "rescues",
        "Times that the lane did not respond while connections waited for it.";
}

/// What the lanes of a process have in common to count with.
#[derive(Default)]
pub struct AllCounters {
    lanes: Mutex<Vec<(usize, Arc<HttpCounters>)>>,
    gates: Mutex<Vec<WatchedGate>>,
    process: Mutex<ProcessCounts>,
    /// When a configuration was last put in force, and whether the last one was.
    last_reload: Mutex<LastReload>,
    /// When the process began to count, in unix seconds.
    started_s: OnceLock<u64>,
    /// What the lanes share for HTTP/3.
    pub(crate) http3: Http3Process,
}

impl AllCounters {
    /// Counters for a new lane of that number: those of a lane that had it and has ended go on, so
    /// that lanes which come and go leave nothing behind.
    pub fn add_lane(&self, number: usize) -> Arc<HttpCounters> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |(own, counters): &&(usize, Arc<HttpCounters>)| {
            *own == number && Arc::strong_count(counters) == 1
        };
        if let Some((_, counters)) = lanes.iter().find(is_free) {
            return counters.clone();
        }
        let counters = Arc::new(HttpCounters::default());
        lanes.push((number, counters.clone()));
        counters
    }

    /// The counters of every lane that was ever started, in the order of their start.
    pub fn lanes(&self) -> Vec<Arc<HttpCounters>> {
        self.numbered().into_iter().map(|(_, lane)| lane).collect()
    }

    /// The same, with the lanes' numbers. A lane that is still finishing may have the number of one
    /// that was started after it.
    pub fn numbered(&self) -> Vec<(usize, Arc<HttpCounters>)> {
        self.lanes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many lanes run now. One that is still finishing and the one that was started in its
    /// place count once.
    pub(super) fn running(&self) -> usize {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let running = lanes
            .iter()
            .filter(|(_, counters)| Arc::strong_count(counters) > 1);
        let numbers: BTreeSet<usize> = running.map(|(number, _)| *number).collect();
        numbers.len()
    }

    /// One counter summed over all lanes.
    pub fn total(&self, counter: impl Fn(&HttpCounters) -> &Counter) -> u64 {
        self.lanes().iter().map(|lane| counter(lane).value()).sum()
    }
}

impl HttpCounters {
    /// A request was answered with this status, the response having so many bytes.
    pub(crate) fn answered(&self, status: u16, received_bytes: u64, sent_bytes: u64) {
        if let Some(counter) = self.statuses.0.get(usize::from(status)) {
            counter.add();
        }
        self.bytes_received.add_many(received_bytes);
        self.bytes_sent.add_many(sent_bytes);
    }

    /// A connection was closed.
    pub(crate) fn was_closed(&self, reason: CloseReason) {
        self.active.sub();
        self.closed[reason as usize].add();
    }
}

/// Requests by status: a cell for every number that a status may be.
pub struct Statuses([Counter; STATUSES]);

/// One past the greatest status.
const STATUSES: usize = 1000;

impl Default for Statuses {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

impl Statuses {
    /// The values that were seen, with how often each.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let all = self.0.iter().map(Counter::value).enumerate();
        all.filter(|(_, count)| *count > 0)
    }
}

/// Bytes of a request's first line that are noted.
const NOTED_BYTES: usize = 96;

/// The request that a lane has begun last: written by the lane, read by who wonders why it is
/// silent. A reader may see parts of two while the lane works; nobody asks then.
#[derive(Default)]
pub struct Doing {
    connection: AtomicU64,
    line: [AtomicU64; NOTED_BYTES / 8],
}

impl Doing {
    /// A request has begun: its connection's number, and its head.
    pub fn note(&self, connection: u64, head: &[u8]) {
        self.connection.store(connection, Relaxed);
        let head = &head[..head.len().min(NOTED_BYTES)];
        let (words, rest) = head.as_chunks::<8>();
        for (slot, word) in self.line.iter().zip(words) {
            slot.store(u64::from_ne_bytes(*word), Relaxed);
        }
        if let Some(slot) = self.line.get(words.len()) {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            slot.store(u64::from_ne_bytes(last), Relaxed);
        }
    }

    /// The connection's number and the first line, cut where it is long; `None` before the first.
    pub fn read(&self) -> Option<(u64, Vec<u8>)> {
        let connection = self.connection.load(Relaxed);
        let words = self
            .line
            .iter()
            .map(|word| word.load(Relaxed).to_ne_bytes());
        let line = words.flatten().take_while(|byte| *byte >= b' ').collect();
        (connection > 0).then_some((connection, line))
    }
}

#[cfg(test)]
mod metrics_tests;
#[cfg(test)]
mod tests;
