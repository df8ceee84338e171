//! Connections that speak HTTP/2: how they are recognised, parked and driven.
//!
//! ```text
//!  begun ─► a turn of the loop ─► parked ──readable, due──► a turn of the loop ─► parked again
//!                │ streams are open, the socket is full     │
//!                └──────────────► driven ◄──────────────────┘   driven ─► parked once it is idle
//! ```

use std::cell::RefCell;
use std::os::fd::AsFd;
use std::rc::Rc;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket_option;
use turnpike_wire::h2::{self, ConnectionRules, PREFACE};
use turnpike_wire::message::HeadRules;

use super::connections::Connections;
use super::open::Connection;
use super::parked::LATE_HEAD_MS;
use super::return_queue::{HandBackOnDrop, Left};
use super::slot::{DrivenWork, Slot};
use super::slots::Place;
use super::tls::security::Security;
use crate::counters::CloseReason;
use crate::h2::connection::{Http2Connection, Opening, Turn};
use crate::h2::drive::lingers;
use crate::h2::frames::Http2Frames;
use crate::lane::LaneShared;
use crate::plan::ServerIndex;
use crate::streams::serving::Serving;
use crate::streams::shared::{Shared, Work};
use turnpike_plan::tls;

/// Reads of one connection in a turn of the loop, each of up to `http2_recv_buffer_size`: what has
/// come, and the end behind it. One that sends faster is driven, so that others have their turn.
const READS_PER_TURN_MAX: usize = 2;

/// The protocol of a connection, by its TLS session or by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Http1,
    Http2,
    /// More bytes are needed.
    Unclear,
}

/// What a connection speaks that has had no request yet.
pub(super) fn spoken(connection: &Connection) -> Spoken {
    match &connection.security {
        Security::Secure(session) if *session.protocol == *tls::HTTP2 => return Spoken::Http2,
        Security::Plain => {}
        _ => return Spoken::Http1,
    }
    let plan = &connection.plan;
    let listen = plan.listen(connection.facts.listen);
    if !listen.http2 && !plan.server(listen.default_server).settings.http2.is_on {
        return Spoken::Http1;
    }
    by_first_bytes(connection.input.bytes())
}

fn by_first_bytes(bytes: &[u8]) -> Spoken {
    let count = bytes.len().min(PREFACE.len());
    match (bytes[..count] == PREFACE[..count], count) {
        // HTTP/2 refuses it as an invalid preface: HTTP/1 has no such first line either, and an
        // answer of HTTP/1 would be no frame.
        (false, _) if is_foreign_line(bytes) => Spoken::Http2,
        (false, _) => Spoken::Http1,
        (true, count) if count == PREFACE.len() => Spoken::Http2,
        (true, _) => Spoken::Unclear,
    }
}

/// Whether the first line is whole and has the parts of a request line, but names another protocol
/// than HTTP. Any other line is HTTP/1's to judge, as in nginx: `GET /` is a request of HTTP/0.9.
fn is_foreign_line(bytes: &[u8]) -> bool {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return false;
    };
    let words = || {
        let words = bytes[..end].split(u8::is_ascii_whitespace);
        words.filter(|word| !word.is_empty())
    };
    words().count() >= 3 && words().all(|word| !word.starts_with(b"HTTP/"))
}

/// The frames of a connection.
fn frames(
    lane: &LaneShared,
    connection: &Connection,
    server: ServerIndex,
) -> Rc<RefCell<Http2Frames>> {
    let settings = &connection.plan.server(server).settings;
    let wire = h2::Connection::new(ConnectionRules {
        streams_max: settings.http2.streams_max,
        stream_window: settings.http2.preread_bytes,
        head: HeadRules {
            line_bytes_max: settings.http2.field_bytes_max,
            head_bytes_max: settings.http2.list_bytes_max,
            ..settings.head_rules
        },
    });
    Rc::new(RefCell::new(Http2Frames::new(wire, lane.outputs())))
}

impl Connections {
    /// Serves a connection as one of HTTP/2 from now on.
    pub(super) fn begin_http2(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Connection,
    ) {
        let tls = match &connection.security {
            Security::Secure(session) => Some(session.clone()),
            _ => None,
        };
        let server = connection.context().server(tls.as_deref());
        let plan = &connection.plan;
        let root = plan.location(plan.server(server).root);
        if root.settings.tcp_nodelay && connection.facts.peer.inet().is_some() {
            // A socket that cannot do this is only slower.
            let _ = socket_option::set_no_delay(connection.transport.as_fd(), true);
            connection.no_delay = true;
        }
        let frames = frames(&self.lane, &connection, server);
        let (clock, places) = (&self.lane.clock, self.lane.stream_places());
        let shared = Shared::new(frames.clone(), clock, places, Work::default());
        let (transport, mut input, detached) = connection.detach();
        let opening = Opening {
            serving: Serving {
                lane: Rc::clone(&self.lane),
                plan: detached.plan,
                server,
                facts: detached.facts,
                proxy_header: detached.proxy_header,
                tls,
            },
            input: input.take_bytes(),
            frames,
            shared,
        };
        input.release();
        let mut connection = Http2Connection::new(opening, transport);
        let turn = connection.take_turn();
        self.go_on_http2(event_loop, place, connection, turn);
    }

    /// A parked connection has input, or its client has `closed` it.
    pub(super) fn http2_ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool) {
        if let Some(connection) = self.take_parked_http2(token) {
            connection.watch.event(closed);
            self.go_on_http2(event_loop, Place::At(token), connection, Turn::Idle);
        }
    }

    /// The deadline of a parked connection may have passed.
    pub(super) fn http2_due(&mut self, event_loop: &mut EventLoop, token: u32) {
        let Some(Slot::ParkedHttp2(connection)) = self.slots.get(token) else {
            return;
        };
        let Some(deadline_ms) = connection.deadline_ms() else {
            return;
        };
        if deadline_ms > event_loop.clock.now_ms() {
            event_loop.wheel.insert(token, deadline_ms);
            return;
        }
        if connection.has_input() {
            // It came in this very turn, or while the lane was held up.
            return self.http2_ready(event_loop, token, false);
        }
        let Some(mut connection) = self.take_parked_http2(token) else {
            return;
        };
        let turn = match connection.is_late() {
            Ok(()) => connection.take_turn(),
            Err(reason) => Turn::Ended(reason),
        };
        self.go_on_http2(event_loop, Place::At(token), connection, turn);
    }

    /// A connection comes back from its future, to be parked.
    pub(super) fn taken_back_http2(
        &mut self,
        event_loop: &mut EventLoop,
        token: u32,
        mut connection: Box<Http2Connection>,
    ) {
        let turn = match connection.watch.why_closed() {
            Some(why) => Turn::Ended(why.reason()),
            None => connection.take_turn(),
        };
        self.go_on_http2(event_loop, Place::At(token), connection, turn);
    }

    /// Lets parked connections tell their clients that the lane ends.
    pub(super) fn end_parked_http2(&mut self, event_loop: &mut EventLoop) {
        let is_parked = |(_, slot): &(u32, &Slot)| matches!(slot, Slot::ParkedHttp2(_));
        let parked = self.slots.iter().filter(is_parked);
        let tokens: Vec<u32> = parked.map(|(token, _)| token).collect();
        for token in tokens {
            if let Some(mut connection) = self.take_parked_http2(token) {
                let turn = connection.take_turn();
                self.go_on_http2(event_loop, Place::At(token), connection, turn);
            }
        }
    }

    /// Closes a parked connection that only waits for its next request, or for its first one too
    /// long, as its place is needed; returns whether it is one.
    pub(super) fn close_http2_at_rest(
        &mut self,
        event_loop: &mut EventLoop,
        token: u32,
        now_ms: u64,
    ) -> bool {
        let is_at_rest = match self.slots.get(token) {
            Some(Slot::ParkedHttp2(connection)) => {
                connection.shared().is_at_rest(now_ms, LATE_HEAD_MS)
            }
            _ => false,
        };
        if is_at_rest && let Some(mut connection) = self.take_parked_http2(token) {
            connection.leave();
            self.close_http2(
                event_loop,
                Place::At(token),
                connection,
                CloseReason::MadeRoom,
            );
        }
        is_at_rest
    }

    /// Closes a connection without waiting for its client.
    pub(super) fn close_http2(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Box<Http2Connection>,
        reason: CloseReason,
    ) {
        self.unpark(event_loop, place);
        self.lane.counters.was_closed(reason);
        drop(connection);
    }

    /// Takes a parked connection of HTTP/2 out, to be served.
    pub(super) fn take_parked_http2(&mut self, token: u32) -> Option<Box<Http2Connection>> {
        let slot = self.slots.get_mut(token)?;
        if !matches!(slot, Slot::ParkedHttp2(_)) {
            return None;
        }
        match std::mem::replace(slot, Slot::InTurn) {
            Slot::ParkedHttp2(connection) => {
                self.lane.counters.waiting.sub();
                Some(connection)
            }
            _ => None,
        }
    }

    /// Parks a connection after its turn, drives it, or closes it. One that could be parked reads
    /// what its socket holds first, since no other event tells of it.
    fn go_on_http2(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Box<Http2Connection>,
        mut turn: Turn,
    ) {
        for _ in 0..READS_PER_TURN_MAX {
            if !matches!(turn, Turn::Idle) || !connection.watch.is_readable() {
                break;
            }
            turn = match connection.read() {
                Ok(()) => connection.take_turn(),
                Err(reason) => Turn::Ended(reason),
            };
        }
        match turn {
            Turn::Idle if !connection.watch.is_readable() => {
                self.park_http2(event_loop, place, connection);
            }
            Turn::Ended(reason) if !lingers(reason) => {
                self.close_http2(event_loop, place, connection, reason);
            }
            Turn::Ended(reason) => {
                connection.end(reason);
                self.drive_http2(event_loop, place, connection);
            }
            // Of what it has still to read, the others have their turn before.
            Turn::Idle | Turn::Waits | Turn::WantsRun | Turn::WantsPause => {
                self.drive_http2(event_loop, place, connection);
            }
        }
    }

    fn park_http2(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Box<Http2Connection>,
    ) {
        let Some(token) = self.place_http2(event_loop, place, &connection) else {
            return;
        };
        connection.rest();
        if let Some(deadline_ms) = connection.deadline_ms() {
            event_loop.wheel.insert_if_earlier(token, deadline_ms);
        }
        self.lane.counters.waiting.add();
        self.slots.put(token, Slot::ParkedHttp2(connection));
    }

    fn drive_http2(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Box<Http2Connection>,
    ) {
        let Some(token) = self.place_http2(event_loop, place, &connection) else {
            return;
        };
        let watch = Rc::clone(&connection.watch);
        let work = DrivenWork::Streams(Rc::clone(connection.shared()));
        let slot = self.drive_at(token, watch, work);
        self.count_writing(0);
        let return_queue = Rc::clone(&self.return_queue);
        event_loop.drive(Box::pin(async move {
            let handed_back = HandBackOnDrop::new(&return_queue, &slot);
            let ended = connection.drive().await;
            handed_back.disarm();
            let left = match ended {
                None => Left::Http2(connection),
                Some(reason) => {
                    drop(connection);
                    Left::Ended(reason)
                }
            };
            return_queue.give_back(slot, left);
        }));
    }

    /// The place of a connection, at which its socket is watched. `None`: it cannot be.
    fn place_http2(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: &Http2Connection,
    ) -> Option<u32> {
        if let Place::At(token) = place {
            return Some(token);
        }
        match self.place(event_loop, connection.socket()) {
            Ok(token) => Some(token),
            Err(error) => {
                connection.log(Level::Alert, format_args!("epoll_ctl() failed ({error})"));
                self.lane.counters.was_closed(CloseReason::Failed);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
