//! Connections that have to end, whatever they are at: `worker_shutdown_timeout` has passed since
//! the server began to end, or since another configuration took over from theirs.

use turnpike_lane::event_loop::EventLoop;

use super::connections::Connections;
use super::slot::{Await, GivenUp, Slot};
use super::slots::Place;
use crate::counters::CloseReason;
use crate::exchange::Exchange;
use crate::h1::watch::Why;

/// What the log says of a request that was not whole.
const WHY: &str = "the client had not sent its whole request when worker_shutdown_timeout passed";

impl Connections {
    /// Closes the connections that were accepted up to that time, in monotonic milliseconds.
    pub(super) fn cut_all(&mut self, event_loop: &mut EventLoop, until_ms: u64) {
        let is_old = |slot: &Slot| match slot {
            Slot::InTurn => false,
            Slot::Parked(parked) => parked.connection.facts.accepted_ms <= until_ms,
            Slot::ParkedHttp2(connection) => connection.watch.accepted_ms() <= until_ms,
            Slot::Driven(driven) => driven.watch.accepted_ms() <= until_ms,
            Slot::Awaiting(awaited) => awaited.connection.facts.accepted_ms <= until_ms,
        };
        let old = self.slots.iter().filter(|(_, slot)| is_old(slot));
        let old: Vec<u32> = old.map(|(token, _)| token).collect();
        for token in &old {
            self.cut_one(event_loop, *token);
        }
        let count = old.len() + self.cut_http3(event_loop, until_ms);
        if count > 0 {
            self.report(format_args!(
                "worker_shutdown_timeout has passed, {count} connections are closed"
            ));
        }
    }

    fn cut_one(&mut self, event_loop: &mut EventLoop, token: u32) {
        match self.slots.get(token) {
            // Its future sees to the rest, and logs its request.
            Some(Slot::Driven(driven)) => return driven.watch.close(Why::Cut),
            Some(Slot::Awaiting(_)) => {
                let reason = CloseReason::ShutdownTimeout;
                let note = Exchange::closed_by_shutdown;
                return self.end_awaited(event_loop, token, reason, note);
            }
            _ => {}
        }
        let reason = CloseReason::ShutdownTimeout;
        if let Some(connection) = self.take_parked_http2(token) {
            return self.close_http2(event_loop, Place::At(token), connection, reason);
        }
        let Some(parked) = self.remove_parked(token) else {
            return;
        };
        event_loop.wheel.remove(token);
        self.count_unparked(&parked.waits_for);
        match &parked.waits_for {
            Await::Rest(half) => {
                self.head_given_up(&parked.connection, half, GivenUp::late(WHY));
            }
            Await::Handshake(_) => {
                let why = "worker_shutdown_timeout passed before the end of the handshake";
                self.handshake_late(&parked.connection, why);
            }
            Await::First | Await::Idle { .. } => {}
        }
        self.close(parked.connection, reason);
    }
}
