//! What is done with all connections of HTTP/3 of a lane: at its end, for room, and for lists.

use std::cell::Cell;
use std::rc::Rc;

use turnpike_lane::event_loop::EventLoop;

use crate::connection::connections::Connections;
use crate::counters::CloseReason;
use crate::h3::connection::Http3Connection;
use crate::streams::shared::Shared;

/// Connections of HTTP/3 that are closed at a time to make room.
const ROOM_CONNECTIONS_MAX: usize = 32;

impl Connections {
    /// Lets connections do something, each of those that have not ended.
    fn every_http3(&mut self, event_loop: &mut EventLoop, does: impl Fn(&mut Http3Connection)) {
        let Some(mut http3) = self.http3.take() else {
            return;
        };
        for number in http3.numbers() {
            self.turn_of_http3(event_loop, &mut http3, number, &does);
        }
        self.http3 = Some(http3);
    }

    /// Lets connections see that the lane ends: they tell their clients.
    pub(in crate::connection) fn end_http3(&mut self, event_loop: &mut EventLoop) {
        self.every_http3(event_loop, Http3Connection::take_turn);
    }

    /// Closes the connections that were accepted up to that time, in monotonic milliseconds.
    /// Returns how many there were.
    pub(in crate::connection) fn cut_http3(
        &mut self,
        event_loop: &mut EventLoop,
        until_ms: u64,
    ) -> usize {
        let cut = Cell::new(0);
        self.every_http3(event_loop, |connection| {
            if connection.serving.facts.accepted_ms <= until_ms {
                cut.set(cut.get() + 1);
                connection.cut(CloseReason::ShutdownTimeout);
            }
        });
        cut.get()
    }

    /// Closes idle connections to make room. Returns how many there were.
    pub(in crate::connection) fn close_idle_http3(&mut self, event_loop: &mut EventLoop) -> usize {
        let closed = Cell::new(0);
        self.every_http3(event_loop, |connection| {
            if closed.get() < ROOM_CONNECTIONS_MAX && connection.is_idle() {
                closed.set(closed.get() + 1);
                connection.cut(CloseReason::MadeRoom);
            }
        });
        closed.get()
    }

    /// Forgets first flights that do not go on.
    pub(in crate::connection) fn tick_http3(&mut self, now_ms: u64) {
        if let Some(http3) = &mut self.http3 {
            http3.endpoint.tick(now_ms);
            http3.flows.tick(now_ms);
        }
        let has_ended = self.http3.as_ref().is_some_and(|http3| http3.open == 0);
        if has_ended && self.is_draining() {
            // The process after this one need not ask any more.
            self.http3 = None;
        }
    }

    /// The streams of the connections, for lists.
    pub(in crate::connection) fn http3_streams(&self) -> impl Iterator<Item = &Rc<Shared>> {
        let connections = self.http3.iter().flat_map(|http3| http3.iter());
        connections.map(|connection| &connection.shared)
    }

    /// Takes up the plan in force where connections are idle, so that the one before it is not held
    /// until their next requests.
    pub(in crate::connection) fn http3_takes_plan(&mut self) {
        let connections = self
            .http3
            .iter_mut()
            .flat_map(|http3| &mut http3.connections);
        for connection in connections.flatten() {
            if connection.is_idle() {
                connection.serving.take_plan();
            }
        }
    }
}
