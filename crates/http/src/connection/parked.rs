//! Parked connections: what they wait for, and what happens when it comes, or does not in time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use turnpike_lane::event_loop::EventLoop;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket_option;
use turnpike_plan::messages::CLIENT_TIMED_OUT;

use super::connections::{Connections, Ending};
use super::open::{Connection, RECEIVE_BYTES, move_to, receive};
use super::slot::{Await, DrivenWork, GivenUp, Half, More, Parked, Slot};
use super::slots::Place;
use crate::counters::{CloseReason, Counter};
use crate::exchange::{Action, Exchange};
use crate::h1::input::Input;
use crate::h1::request::give_up;

/// Reads of one connection in a turn.
const READS_PER_EVENT_MAX: usize = 16;

/// A lane whose time was not looked at for so long was held up, in milliseconds: three times the
/// pause between two looks.
const HELD_UP_MS: u64 = 300;

/// How long a drain gives time anew to clients that a lane was held up for, in milliseconds: a
/// machine that is that busy all the time does not get better by waiting.
const HELD_UP_GRACE_MS_MAX: u64 = 30_000;

/// Requests that have not come whole in this time, in milliseconds, are late: their connections are
/// closed where room is needed. What takes less may be a burst of honest clients.
pub(super) const LATE_HEAD_MS: u64 = 1_000;

/// Of late ones, this part is closed at a time; nginx's number for what it closes to make room.
pub(super) const LATE_HEADS_PART: usize = 8;

/// Bytes of a head that are collected without a look at them while no line ends; nginx's smallest
/// usual limit on a line, past which the answer may be 414 or 400.
const UNPARSED_BYTES_MAX: usize = 1024;

const _: () = assert!(UNPARSED_BYTES_MAX < RECEIVE_BYTES);

impl Connections {
    /// Parks a connection, at the place it had or at a new one.
    pub(super) fn park(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        waits_for: Await,
    ) -> Option<u32> {
        let now_ms = event_loop.clock.now_ms();
        let timeout_ms = match &waits_for {
            Await::Idle { timeout_ms, .. } => *timeout_ms,
            Await::First | Await::Rest(_) | Await::Handshake(_) => {
                self.header_timeout_ms(&connection)
            }
        };
        let since_ms = match &waits_for {
            Await::Rest(half) => half.started_ms,
            Await::Handshake(_) => connection.facts.accepted_ms,
            _ => now_ms,
        };
        let mut deadline_ms = if timeout_ms == 0 {
            0
        } else {
            since_ms.saturating_add(timeout_ms)
        };
        if self.is_draining()
            && let Some(grace_ms) = waits_for.grace_ms(now_ms)
        {
            // The turn may be a long one, and all of the time is to be given.
            event_loop.clock.update();
            deadline_ms = earlier(deadline_ms, event_loop.clock.now_ms() + grace_ms);
        }
        let parked = Parked {
            connection,
            waits_for,
            deadline_ms,
        };
        self.put_parked(event_loop, place, parked)
    }

    /// Puts a connection at the place it had or at a new one; with another lane when this one goes.
    pub(super) fn put_parked(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        parked: Parked,
    ) -> Option<u32> {
        if matches!(self.ending, Ending::Leaving { .. }) {
            let back = self.move_parked(event_loop, place, parked);
            return self.put_anew(event_loop, back?);
        }
        match place {
            Place::At(token) => Some(self.put_back(event_loop, token, parked)),
            Place::New => self.put_anew(event_loop, parked),
        }
    }

    /// Puts a connection at a new place.
    fn put_anew(&mut self, event_loop: &mut EventLoop, mut parked: Parked) -> Option<u32> {
        let (token, connection) = self.insert(event_loop, parked.connection)?;
        parked.connection = connection;
        Some(self.put_back(event_loop, token, parked))
    }

    /// Puts a connection at the place it has. It is a function of its own since a connection is
    /// large, and each way that one may take before costs copies.
    fn put_back(&mut self, event_loop: &mut EventLoop, token: u32, mut parked: Parked) -> u32 {
        // Idle ones are many: they hold no buffer.
        parked.connection.input.release();
        // A deadline that only moves on is left where it is in the wheel. It may be earlier than
        // the one before it: that of a head, or of another location's keep-alive.
        if parked.deadline_ms > 0 {
            event_loop
                .wheel
                .insert_if_earlier(token, parked.deadline_ms);
        }
        self.count_parked(&parked.waits_for);
        self.slots.put(token, Slot::Parked(parked));
        token
    }

    /// A slot for a connection that has none, watched from now on. `None`: it cannot be, and is
    /// closed.
    pub(super) fn insert(
        &mut self,
        event_loop: &mut EventLoop,
        connection: Connection,
    ) -> Option<(u32, Connection)> {
        match self.place(event_loop, connection.transport.as_fd()) {
            Ok(token) => Some((token, connection)),
            Err(error) => {
                self.watch_failed(connection, &error);
                None
            }
        }
    }

    /// A new slot, at which the socket is watched from now on.
    pub(super) fn place(
        &mut self,
        event_loop: &mut EventLoop,
        socket: BorrowedFd<'_>,
    ) -> io::Result<u32> {
        let token = self.slots.insert();
        let watched = event_loop.watch(socket, token);
        if watched.is_err() {
            self.slots.remove(token);
        }
        watched.map(|()| token)
    }

    fn watch_failed(&self, connection: Connection, error: &io::Error) {
        let message = format_args!("epoll_ctl() failed ({error})");
        let context = connection.context();
        context.log(Action::default(), Level::Alert, message);
        self.close(connection, CloseReason::Failed);
    }

    /// Gives a place up; the socket is unwatched by its closing, or by the caller.
    pub(super) fn unpark(&mut self, event_loop: &mut EventLoop, place: Place) {
        if let Place::At(token) = place
            && self.slots.remove(token)
        {
            event_loop.wheel.remove(token);
        }
    }

    /// Takes a parked connection out, with its place.
    pub(super) fn remove_parked(&mut self, token: u32) -> Option<Parked> {
        let parked = self.slots.take_parked(token)?;
        self.slots.remove(token);
        Some(parked)
    }

    /// Parks a connection whose head is not whole.
    pub(super) fn wait_for_rest(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        mut connection: Connection,
        exchange: Box<Exchange>,
    ) {
        let input = connection.input.take_bytes();
        let half = Half {
            input,
            started_ms: exchange.account.started_ms(),
        };
        self.recycle(exchange);
        self.park(event_loop, place, connection, Await::Rest(Box::new(half)));
    }

    /// Reads and serves until the socket holds no more. `closed`: the client has sent its last, so
    /// that the end is to be read too, of which nothing else would tell.
    pub(super) fn parked_ready(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool) {
        for reads in 0.. {
            // No further event reports what a TLS session has decrypted.
            if reads >= READS_PER_EVENT_MAX && !self.holds_input(token) {
                break;
            }
            match self.read_once(event_loop, token, closed) {
                More::Likely => {}
                More::Unlikely if closed => {}
                More::Unlikely | More::No => return,
            }
        }
        self.read_later(event_loop, token);
    }

    fn holds_input(&self, token: u32) -> bool {
        let parked = self.slots.parked(token);
        parked.is_some_and(|parked| parked.connection.transport.holds_input())
    }

    /// Others have waited: the rest of what a fast sender sends is read in another turn.
    pub(super) fn read_later(&mut self, event_loop: &mut EventLoop, token: u32) {
        if let Some(parked) = self.slots.parked(token) {
            let socket = parked.connection.transport.as_fd();
            event_loop.unwatch(socket);
            let _ = event_loop.watch(socket, token);
        }
    }

    fn read_once(&mut self, event_loop: &mut EventLoop, token: u32, closed: bool) -> More {
        let Some(slot) = self.slots.get_mut(token) else {
            return More::No;
        };
        match slot {
            Slot::Driven(driven) => {
                driven.watch.event(closed);
                return More::No;
            }
            Slot::Awaiting(_) => {
                self.client_is_early(event_loop, token, closed);
                return More::No;
            }
            Slot::ParkedHttp2(_) => {
                self.http2_ready(event_loop, token, closed);
                return More::No;
            }
            Slot::InTurn => return More::No,
            Slot::Parked(_) => {}
        }
        // Its parts stay together: a connection is large, and each taking apart is a copy.
        let Slot::Parked(mut parked) = std::mem::replace(slot, Slot::InTurn) else {
            return More::No;
        };
        self.count_unparked(&parked.waits_for);
        if let Await::Handshake(state) = parked.waits_for {
            return self.shake_hands(event_loop, Place::At(token), parked.connection, *state);
        }
        if let Await::Rest(half) = &parked.waits_for {
            parked.connection.input.put(&half.input);
        }
        match receive(&mut parked.connection) {
            Ok(0) => {
                self.went_away(event_loop, token, parked);
                More::No
            }
            Ok(received) => {
                let more = More::after(&parked.connection, received);
                self.serve_or_collect(event_loop, token, parked, received);
                more
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                parked.connection.input.release();
                self.count_parked(&parked.waits_for);
                self.slots.put(token, Slot::Parked(parked));
                More::No
            }
            Err(error) => {
                let failed = (&parked.waits_for, &error);
                self.receive_failed(event_loop, Place::At(token), parked.connection, failed);
                More::No
            }
        }
    }

    /// Serves what was received, or collects it where no line of the head can have ended.
    fn serve_or_collect(
        &mut self,
        event_loop: &mut EventLoop,
        token: u32,
        mut parked: Parked,
        received: usize,
    ) {
        let started_ms = match parked.waits_for {
            Await::Rest(half) if !may_end_line(parked.connection.input.bytes(), received) => {
                let input = parked.connection.input.take_bytes();
                let rest = Await::Rest(Box::new(Half { input, ..*half }));
                self.park(event_loop, Place::At(token), parked.connection, rest);
                return;
            }
            Await::Rest(half) => Some(half.started_ms),
            Await::First | Await::Idle { .. } | Await::Handshake(_) => None,
        };
        let connection = parked.connection;
        let exchange = self.exchange(&connection);
        self.serve(
            event_loop,
            Place::At(token),
            connection,
            exchange,
            started_ms,
        );
    }

    /// Says why nothing could be received, and closes the connection.
    pub(super) fn receive_failed(
        &mut self,
        event_loop: &mut EventLoop,
        place: Place,
        connection: Connection,
        (waits_for, error): (&Await, &io::Error),
    ) {
        let (level, why) = match error.kind() {
            io::ErrorKind::ConnectionReset => (Level::Info, format!("recv() failed ({error})")),
            // What a TLS session cannot read.
            io::ErrorKind::InvalidData => {
                (Level::Info, format!("SSL_read() failed (SSL: {error})"))
            }
            _ => (Level::Alert, format!("recv() failed ({error})")),
        };
        match waits_for {
            Await::Rest(half) => {
                self.head_given_up(&connection, half, GivenUp::failed(level, &why));
            }
            _ => {
                let context = connection.context();
                context.log(waits_for.action(), level, format_args!("{why}"));
            }
        }
        self.unpark(event_loop, place);
        self.close(connection, CloseReason::of(error));
    }

    /// The client closed: silently between requests, with a line in the middle of one.
    fn went_away(&mut self, event_loop: &mut EventLoop, token: u32, parked: Parked) {
        let mut reason = CloseReason::ClientClosed;
        if let Await::Rest(half) = &parked.waits_for {
            reason = CloseReason::ClientAborted;
            self.head_given_up(&parked.connection, half, GivenUp::CUT);
        }
        self.unpark(event_loop, Place::At(token));
        self.close(parked.connection, reason);
    }

    pub(super) fn parked_due(&mut self, event_loop: &mut EventLoop, token: u32) {
        match self.slots.get(token) {
            Some(Slot::Awaiting(_)) => return self.awaited_due(event_loop, token),
            Some(Slot::ParkedHttp2(_)) => return self.http2_due(event_loop, token),
            _ => {}
        }
        let Some(parked) = self.slots.parked(token) else {
            return;
        };
        let deadline_ms = parked.deadline_ms;
        if deadline_ms == 0 {
            return;
        }
        if deadline_ms > event_loop.clock.now_ms() {
            event_loop.wheel.insert(token, deadline_ms);
            return;
        }
        let idle = matches!(parked.waits_for, Await::First | Await::Idle { .. });
        if idle && has_input(&parked.connection) {
            // Its request came in this very turn, or while the lane was held up.
            self.parked_ready(event_loop, token, false);
            return;
        }
        if self.wait_again(event_loop, token) {
            return;
        }
        let Some(parked) = self.remove_parked(token) else {
            return;
        };
        let Parked {
            connection,
            waits_for,
            ..
        } = parked;
        self.count_unparked(&waits_for);
        if let Await::Rest(half) = &waits_for {
            self.head_given_up(&connection, half, GivenUp::late(CLIENT_TIMED_OUT));
        }
        if let Await::Handshake(_) = &waits_for {
            self.handshake_late(&connection, CLIENT_TIMED_OUT);
        }
        let reason = match waits_for {
            Await::First | Await::Idle { .. } if self.is_draining() => CloseReason::Drained,
            Await::First | Await::Rest(_) | Await::Handshake(_) => CloseReason::HeaderTimeout,
            Await::Idle { .. } => CloseReason::IdleTimeout,
        };
        self.close(connection, reason);
    }

    /// Gives the time of a drain anew where this lane was held up in it: most likely by something
    /// that held the client up too, so that its request is still to come. The same goes for what
    /// the next process takes once the link to it has room.
    fn wait_again(&mut self, event_loop: &mut EventLoop, token: u32) -> bool {
        let Ending::Draining { since_ms, .. } = self.ending else {
            return false;
        };
        let now_ms = event_loop.clock.now_ms();
        let was_held_up = now_ms.saturating_sub(self.ticked_ms) > HELD_UP_MS;
        let is_to_move = || {
            let parked = self.slots.parked(token);
            let successor = self.successor().zip(parked);
            successor.is_some_and(|(successor, parked)| successor.takes(parked))
        };
        if now_ms.saturating_sub(since_ms) > HELD_UP_GRACE_MS_MAX || !(was_held_up || is_to_move())
        {
            return false;
        }
        let Some(parked) = self.slots.parked_mut(token) else {
            return false;
        };
        let Some(grace_ms) = parked.waits_for.grace_ms(now_ms) else {
            return false;
        };
        parked.deadline_ms = now_ms + grace_ms;
        event_loop.wheel.insert(token, parked.deadline_ms);
        true
    }

    /// Logs a head that will not come whole; its connection is closed without an answer, as nginx
    /// does it. Part of a PROXY protocol's header is no request.
    pub(super) fn head_given_up(
        &self,
        connection: &Connection,
        half: &Half,
        given_up: GivenUp<'_>,
    ) {
        let mut exchange = self.exchange(connection);
        exchange.begin_request();
        exchange.account.begin(half.started_ms);
        let mut input = Input::new(self.lane.inputs());
        input.put(&half.input);
        give_up(&mut input, &mut exchange);
        exchange.account.set_action(Action::ReadingHeaders);
        exchange.log(given_up.level, format_args!("{}", given_up.why));
        let resets = exchange.location().settings.reset_timedout_connection;
        if resets && given_up.is_late() {
            let _ = socket_option::set_reset_on_close(connection.transport.as_fd());
        }
        if connection.proxy_header.is_some() || !exchange.listen().proxy_protocol {
            exchange.response.set_status(given_up.status);
            exchange.log_access();
        }
        self.recycle(exchange);
    }

    /// Closes up to `most` connections that wait for nothing but their next request; those of
    /// HTTP/2 that are not parked yet end in the next turn.
    pub(super) fn close_idle(&mut self, event_loop: &mut EventLoop, most: usize) -> usize {
        let capacity = self.slots.capacity();
        let now_ms = event_loop.clock.now_ms();
        let mut closed = 0;
        for step in 0..capacity {
            if closed == most {
                break;
            }
            let index = (self.room_cursor + step) % capacity;
            let token = index as u32;
            if self.close_http2_at_rest(event_loop, token, now_ms)
                || self.leaves_at_rest(token, now_ms)
            {
                closed += 1;
                self.room_cursor = index + 1;
                continue;
            }
            let is_idle = match self.slots.parked(token) {
                Some(parked) => parked.is_idle(now_ms),
                None => false,
            };
            if is_idle && let Some(parked) = self.remove_parked(token) {
                event_loop.wheel.remove(token);
                self.count_unparked(&parked.waits_for);
                self.close(parked.connection, CloseReason::MadeRoom);
                closed += 1;
                self.room_cursor = index + 1;
            }
        }
        closed
    }

    /// Has a driven connection of HTTP/2 end that only waits for its next request, or for its first
    /// one too long; returns whether it is one.
    fn leaves_at_rest(&mut self, token: u32, now_ms: u64) -> bool {
        let driven = self.slots.get_mut(token).and_then(Slot::driven_mut);
        let Some(driven) = driven else {
            return false;
        };
        match &driven.work {
            DrivenWork::Streams(streams) if streams.is_at_rest(now_ms, LATE_HEAD_MS) => {
                streams.leave();
            }
            _ => return false,
        }
        self.slots.begin_to_leave(token)
    }

    /// Closes the oldest of the connections whose request is late, up to `most`.
    pub(super) fn close_late_heads(&mut self, event_loop: &mut EventLoop, most: usize) -> usize {
        let now_ms = event_loop.clock.now_ms();
        let late = |(token, slot): (u32, &Slot)| {
            let since_ms = slot.parked()?.head_since_ms()?;
            let is_late = now_ms.saturating_sub(since_ms) >= LATE_HEAD_MS;
            is_late.then_some((since_ms, token))
        };
        let mut late: Vec<(u64, u32)> = self.slots.iter().filter_map(late).collect();
        if late.is_empty() {
            return 0;
        }
        let count = (late.len() / LATE_HEADS_PART).clamp(1, most);
        late.select_nth_unstable(count - 1);
        for (_, token) in &late[..count] {
            let Some(parked) = self.remove_parked(*token) else {
                continue;
            };
            event_loop.wheel.remove(*token);
            self.count_unparked(&parked.waits_for);
            if let Await::Rest(half) = &parked.waits_for {
                let why = "client was too slow to send its request, its connection is needed";
                self.head_given_up(&parked.connection, half, GivenUp::late(why));
            }
            if let Await::Handshake(_) = &parked.waits_for {
                let why = "client was too slow in its handshake, its connection is needed";
                self.handshake_late(&parked.connection, why);
            }
            self.close(parked.connection, CloseReason::MadeRoom);
        }
        count
    }

    /// Gives everything that has sent nothing of a request the time of a drain: a request may be
    /// on its way, and closing its connection would lose it.
    pub(super) fn hurry_waiting(&mut self, event_loop: &mut EventLoop) {
        // The turn may be a long one, and all of the time is to be given.
        event_loop.clock.update();
        let now_ms = event_loop.clock.now_ms();
        for (token, slot) in self.slots.iter_mut() {
            let Some(parked) = slot.parked_mut() else {
                continue;
            };
            let Some(grace_ms) = parked.waits_for.grace_ms(now_ms) else {
                continue;
            };
            parked.deadline_ms = earlier(parked.deadline_ms, now_ms + grace_ms);
            event_loop
                .wheel
                .insert_if_earlier(token, parked.deadline_ms);
        }
    }

    fn count_parked(&self, waits_for: &Await) {
        self.parked_counter(waits_for).add();
    }

    pub(super) fn count_unparked(&self, waits_for: &Await) {
        self.parked_counter(waits_for).sub();
    }

    /// Counts for `stub_status`, as nginx has them: a connection reads once bytes have come.
    fn parked_counter(&self, waits_for: &Await) -> &Counter {
        match waits_for {
            Await::Rest(_) | Await::Handshake(_) => &self.lane.counters.reading,
            Await::First | Await::Idle { .. } => &self.lane.counters.waiting,
        }
    }

    /// Lets every parked connection take up the present plan, so that the one before it is not held
    /// until their next requests.
    pub(super) fn parked_take_plan(&mut self) {
        let plan = self.plan.clone();
        for (_, slot) in self.slots.iter_mut() {
            match slot {
                Slot::Parked(parked) => move_to(&plan, &mut parked.connection),
                Slot::ParkedHttp2(connection) => connection.take_plan_at_rest(),
                Slot::InTurn | Slot::Driven(_) | Slot::Awaiting(_) => {}
            }
        }
    }

    /// Takes up the present plan at the start of a request, where the gate is still in it. A
    /// connection whose gate is gone is served by its old plan, and closed after that.
    pub(super) fn take_plan(&self, connection: &mut Connection, exchange: &mut Exchange) {
        move_to(&self.plan, connection);
        if !Rc::ptr_eq(&exchange.plan, &connection.plan) {
            exchange.requester.set_connection(connection.facts);
            exchange.plan = connection.plan.clone();
            exchange.leave_location();
        }
    }

    pub(super) fn header_timeout_ms(&self, connection: &Connection) -> u64 {
        let plan = &connection.plan;
        let listen = plan.listen(connection.facts.listen);
        plan.server(listen.default_server)
            .settings
            .client_header_timeout_ms
    }
}

/// The earlier of two deadlines, of which the first may be 0: never.
fn earlier(deadline_ms: u64, other_ms: u64) -> u64 {
    match deadline_ms {
        0 => other_ms,
        _ => deadline_ms.min(other_ms),
    }
}

/// Whether something that was sent is not read yet.
fn has_input(connection: &Connection) -> bool {
    connection.transport.peek().is_ok_and(|count| count > 0)
}

/// Whether the head is worth parsing again: a line may have ended, or be too long. A client that
/// sends byte by byte so costs no more than the lines it sends.
fn may_end_line(input: &[u8], received: usize) -> bool {
    let fresh = &input[input.len() - received..];
    memchr::memchr(b'\n', fresh).is_some() || input.len() >= UNPARSED_BYTES_MAX
}
