//! A peer in use by a request, and the result of the request.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use turnpike_lane::counters::Answer;
use turnpike_lane::sys::process::monotonic_ns;

use super::{FailReason, Mode, Peer};
use crate::address::Address;
use crate::group::queue::Queue;
use crate::peer::times::Until;

/// A peer that was chosen for a request. It counts as busy until this is dropped.
pub struct Picked {
    peer: Arc<Peer>,
    /// Whether the peer is the only one: its failures are then ignored.
    single: bool,
    /// The time that counts, if the request is among those in progress that are measured.
    inflight: Cell<Option<Until>>,
    picked_ms: u64,
    /// The time that was recorded before the end.
    noted: Cell<Option<Until>>,
    /// The requests that wait for a peer with room.
    queue: Option<Arc<Queue>>,
}

impl Picked {
    /// A peer, chosen now; `single` and `inflight` as in the fields.
    pub(crate) fn new(
        peer: Arc<Peer>,
        single: bool,
        inflight: Option<Until>,
        now_ms: u64,
    ) -> Picked {
        if inflight.is_some() {
            peer.state().times.began(now_ms);
        }
        Picked {
            peer,
            single,
            inflight: Cell::new(inflight),
            picked_ms: now_ms,
            noted: Cell::new(None),
            queue: None,
        }
    }

    /// The same, and its end wakes a request of this queue.
    pub(crate) fn freeing(mut self, queue: Option<Arc<Queue>>) -> Picked {
        self.queue = queue;
        self
    }

    /// The peer.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// The address as text (`$upstream_addr`).
    pub fn name(&self) -> &str {
        self.peer.name()
    }

    /// The address.
    pub fn address(&self) -> &Address {
        self.peer.address()
    }

    /// Records a failure of the peer. `true`: the peer is now disabled (`upstream server
    /// temporarily disabled`).
    pub fn failed(self, reason: FailReason, now_ms: u64) -> bool {
        self.peer.state().count_failure(reason);
        if self.single {
            self.peer.state().fails.store(0, Ordering::Relaxed);
            return false;
        }
        self.peer.failed(now_ms)
    }

    /// Records the time of the response's head, or of its first byte: only `least_time` with
    /// `inflight` uses it, and without it all times are recorded at the end. The peer works, so
    /// that its failures are reset, whatever becomes of the rest: tunnels and streams of events
    /// have no good end.
    pub fn header_received(&self, now_ms: u64) {
        self.reached(Until::Header, now_ms);
        self.worked(now_ms);
    }

    /// Records that the peer was reached. For long sessions this already resets its failures.
    pub fn connected(&self, now_ms: u64) {
        self.reached(Until::Connect, now_ms);
        self.worked(now_ms);
    }

    fn reached(&self, until: Until, now_ms: u64) {
        if self.inflight.get() == Some(until) {
            self.inflight.set(None);
            self.noted.set(Some(until));
            let took_ms = now_ms.saturating_sub(self.picked_ms);
            let times = &self.peer.state().times;
            times.add(until, took_ms);
            times.done(now_ms, took_ms);
        }
    }

    /// Releases the peer for the next one without a failure: it answered with a status such as 404
    /// that another peer may improve.
    pub fn passed_over(self, now_ms: u64) {
        self.worked(now_ms);
    }

    /// Counts a complete response, for the metrics.
    pub fn count_answer(&self, answer: Answer) {
        self.peer.state().answers.add(answer);
    }

    /// Records a response, whatever its status. The times are those to the head and to the end of
    /// the response.
    pub fn succeeded(self, now_ms: u64, header_ms: u64, response_ms: u64) {
        self.took(Until::Header, header_ms);
        self.took(Until::LastByte, response_ms);
        self.worked(now_ms);
    }

    /// Records a session that has ended. The times are those of connecting to the peer, until its
    /// first byte, if there was one, and until the end.
    pub fn session_ended(
        self,
        now_ms: u64,
        connect_ms: u64,
        first_byte_ms: Option<u64>,
        session_ms: u64,
    ) {
        self.took(Until::Connect, connect_ms);
        if let Some(first_byte_ms) = first_byte_ms {
            self.took(Until::Header, first_byte_ms);
        }
        self.took(Until::LastByte, session_ms);
        self.worked(now_ms);
    }

    /// Adds a time, unless it was recorded when it was reached.
    fn took(&self, until: Until, took_ms: u64) {
        if self.noted.get() != Some(until) {
            self.peer.state().times.add(until, took_ms);
        }
    }

    fn worked(&self, now_ms: u64) {
        if self.single {
            self.peer.state().fails.store(0, Ordering::Relaxed);
        } else {
            self.peer.answered(now_ms);
        }
    }

    /// Whether the peer only serves requests that are bound to it.
    pub fn is_draining(&self) -> bool {
        self.peer.mode() == Mode::Draining
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        if self.inflight.get().is_some() {
            let now_ms = monotonic_ns() / 1_000_000;
            let took_ms = now_ms.saturating_sub(self.picked_ms);
            self.peer.state().times.done(now_ms, took_ms);
        }
        self.peer.state().active.fetch_sub(1, Ordering::Relaxed);
        if let Some(queue) = &self.queue {
            queue.wake();
        }
    }
}
