//! A peer in use by a request, and the result of the request.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use turnpike_lane::counters::Answer;
use turnpike_lane::sys::process::monotonic_ns;

use super::{FailReason, Mode, Peer};
use crate::address::Address;
use crate::peer::times::Until;

/// A peer that was chosen for a request. It counts as busy until this is dropped.
pub struct Picked {
    peer: Arc<Peer>,
    /// Whether the peer is the only one: its failures are then ignored.
    single: bool,
    /// The time that counts, if the request is among those in progress that are measured.
    inflight: Option<Until>,
    picked_ms: u64,
    /// Whether the time of the head was recorded.
    noted: bool,
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
            inflight,
            picked_ms: now_ms,
            noted: false,
        }
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

    /// Records the time of the response's head. Only `least_time header inflight` uses it; without
    /// it the end of the response counts.
    pub fn header_received(&mut self, now_ms: u64) {
        if self.inflight == Some(Until::Header) {
            self.inflight = None;
            self.noted = true;
            let header_ms = now_ms.saturating_sub(self.picked_ms);
            self.peer.state().times.header(header_ms);
            self.peer.state().times.done(now_ms, header_ms);
        }
    }

    /// Records that the peer was reached. For long sessions this already resets its failures.
    pub fn connected(&self, now_ms: u64) {
        self.worked(now_ms);
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
        let times = &self.peer.state().times;
        if !self.noted {
            times.header(header_ms);
        }
        times.response(response_ms);
        self.worked(now_ms);
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
        if self.inflight.is_some() {
            let now_ms = monotonic_ns() / 1_000_000;
            let took_ms = now_ms.saturating_sub(self.picked_ms);
            self.peer.state().times.done(now_ms, took_ms);
        }
        self.peer.state().active.fetch_sub(1, Ordering::Relaxed);
    }
}
