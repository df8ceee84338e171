//! Connections whose answer a watched socket of the lane will bring: no task waits for it.
//!
//! ```text
//!  served ──Await──► awaited ──the server sends──► resumed ─► answered, driven, awaited again
//!                       │ client gone, or too late ──► given up, or driven
//! ```

use turnpike_lane::event_loop::EventLoop;

use crate::connection::connections::Connections;
use crate::connection::open::Connection;
use crate::connection::slot::{Awaited, Slot};
use crate::connection::slots::Place;
use crate::counters::CloseReason;
use crate::exchange::Exchange;
use crate::phase::{Awaiting, Verdict};

impl Connections {
    /// Waits until the watched socket has something. The connection's own socket is watched
    /// meanwhile, for its closing.
    pub(in crate::connection) fn await_answer(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Connection,
        exchange: Box<Exchange>,
        awaiting: Box<dyn Awaiting>,
    ) {
        connection.input.rest();
        let (token, connection) = match place {
            Place::At(token) => (token, connection),
            Place::New => match self.insert(event_loop, connection) {
                Some(inserted) => inserted,
                None => {
                    self.recycle(exchange);
                    return;
                }
            },
        };
        let deadline_ms = awaiting.deadline_ms();
        let brief = match deadline_ms {
            0 => None,
            _ => event_loop.wait_until(token, deadline_ms),
        };
        awaiting.watched_socket().awaited_by(token);
        let awaited = Awaited {
            connection,
            exchange,
            awaiting,
            deadline_ms,
            brief,
            unread: false,
        };
        self.slots.put(token, Slot::Awaiting(awaited));
        self.count_writing(0);
    }

    /// The watched socket has something for the connection of that token.
    pub(in crate::connection) fn answer_ready(&mut self, event_loop: &mut EventLoop, token: u32) {
        self.resume_awaited(event_loop, token, |awaiting, exchange| {
            awaiting.ready(exchange)
        });
    }

    /// The client sends, or closes, while its answer is awaited.
    pub(in crate::connection) fn client_is_early(
        &mut self,
        event_loop: &mut EventLoop,
        token: u32,
        closed: bool,
    ) {
        let Some(Slot::Awaiting(awaited)) = self.slots.get_mut(token) else {
            return;
        };
        awaited.unread = true;
        if !closed || !awaited.awaiting.needs_client() {
            return;
        }
        self.end_awaited(event_loop, token, CloseReason::ClientAborted, |_| {});
    }

    /// Stops waiting for the answer at that place, if one is awaited there, and closes its
    /// connection. `note` adds to the exchange before its access log line is written.
    pub(in crate::connection) fn end_awaited(
        &mut self,
        event_loop: &mut EventLoop,
        token: u32,
        reason: CloseReason,
        note: fn(&mut Exchange),
    ) {
        let Some(awaited) = self.take_awaited(event_loop, token) else {
            return;
        };
        let Awaited {
            connection,
            mut exchange,
            awaiting,
            ..
        } = awaited;
        awaiting.abandoned(&mut exchange);
        note(&mut exchange);
        exchange.log_access();
        self.unpark(event_loop, Place::At(token));
        self.recycle(exchange);
        self.close(connection, reason);
    }

    /// The deadline of an answer may have come.
    pub(in crate::connection) fn awaited_due(&mut self, event_loop: &mut EventLoop, token: u32) {
        let Some(Slot::Awaiting(awaited)) = self.slots.get(token) else {
            return;
        };
        let deadline_ms = awaited.deadline_ms;
        if deadline_ms == 0 {
            return;
        }
        if deadline_ms > event_loop.clock.now_ms() {
            event_loop.wheel.insert(token, deadline_ms);
            return;
        }
        self.resume_awaited(event_loop, token, |awaiting, exchange| {
            awaiting.timed_out(exchange)
        });
    }

    /// Serves the request on, by what `happened` makes of it.
    fn resume_awaited(
        &mut self,
        event_loop: &mut EventLoop,
        token: u32,
        happened: impl FnOnce(Box<dyn Awaiting>, &mut Exchange) -> Verdict,
    ) {
        let Some(awaited) = self.take_awaited(event_loop, token) else {
            return;
        };
        let Awaited {
            connection,
            mut exchange,
            awaiting,
            unread,
            ..
        } = awaited;
        let verdict = happened(awaiting, &mut exchange);
        let outcome = exchange.resume(verdict);
        self.go_on(event_loop, token, connection, exchange, outcome, unread);
    }

    fn take_awaited(&mut self, event_loop: &mut EventLoop, token: u32) -> Option<Awaited> {
        let mut awaited = self.slots.take_awaited(token)?;
        if let Some(timer) = awaited.brief.take() {
            event_loop.deadlines.remove(timer);
        }
        self.count_writing(0);
        awaited.awaiting.watched_socket().leave();
        Some(awaited)
    }
}
